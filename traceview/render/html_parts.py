"""Pieces of a static HTML page: every text is escaped here, and nowhere else is HTML put together.

A page holds no script, refers to nothing outside of itself, and says so to the browser: its policy allows the one style
sheet that it carries, by its hash, and nothing more.
"""

from __future__ import annotations

import base64
import hashlib
from html import escape
from typing import TYPE_CHECKING, Final

from traceview.render.names import plain
from traceview.render.outcome import shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from traceview.render.grids import Grid

MOST_CELL: Final = 200
MOST_TEXT: Final = 1000
"""Characters of a cell and of a paragraph: a name in a trace can be of any length."""

STYLE: Final = """
:root { color-scheme: light dark; --text: #1f2328; --faint: #59636e; --ground: #ffffff; --panel: #f4f6f8;
  --line: #d5dae0; --bad: #b3261e; --good: #1a7f5a; --unsure: #6b7480; --link: #0060a8; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e8eb; --faint: #a5adb6; --ground: #14171b; --panel: #1d2227;
  --line: #343b43; --bad: #ff8a80; --good: #5fd3a4; --unsure: #a5adb6; --link: #7cc0ff; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", Arial, sans-serif; }
main { max-width: 980px; margin: 0 auto; padding: 24px 20px 48px; }
h1 { font-size: 1.05rem; font-weight: 600; margin: 0 0 4px; color: var(--faint); overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 32px 0 8px; }
h3 { font-size: 1rem; margin: 0 0 6px; overflow-wrap: anywhere; }
p { margin: 6px 0; overflow-wrap: anywhere; }
.verdict { border-left: 5px solid var(--unsure); padding: 4px 0 4px 14px; margin: 12px 0; }
.verdict.fail, .finding.error { border-left-color: var(--bad); }
.verdict.pass { border-left-color: var(--good); }
.verdict strong { font-size: 1.25rem; line-height: 1.35; display: block; overflow-wrap: anywhere; }
.word { font-weight: 600; } .fail .word, .error .word { color: var(--bad); } .pass .word { color: var(--good); }
.faint, .remark, caption { color: var(--faint); } .remark { font-size: .87rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 3px 16px; margin: 12px 0; }
dt { color: var(--faint); } dd { margin: 0; overflow-wrap: anywhere; }
.figures { display: flex; flex-wrap: wrap; gap: 10px; padding: 0; margin: 16px 0; list-style: none; }
.figures li { background: var(--panel); border-radius: 8px; padding: 10px 14px; flex: 1 1 150px; }
.figures b { display: block; font-size: 1.3rem; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; }
.scroll:focus-visible { outline: 2px solid var(--link); }
table { border-collapse: collapse; width: 100%; font-size: .87rem; }
th, td { text-align: left; padding: 4px 10px 4px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
thead th { color: var(--faint); font-weight: 500; white-space: nowrap; }
tbody th { font-weight: 400; } th, td { overflow-wrap: anywhere; min-width: 3.5em; }
th.n, td.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.d1 { padding-left: 1.2em; } .d2 { padding-left: 2.4em; } .d3 { padding-left: 3.6em; } .d4 { padding-left: 4.8em; }
.finding { background: var(--panel); border-left: 5px solid var(--unsure); border-radius: 0 8px 8px 0;
  padding: 12px 16px; margin: 10px 0; }
.finding dl { margin: 3px 0 0; grid-template-columns: 7.5em 1fr; } .finding ul { margin: 0; padding-left: 1.1em; }
figure { margin: 8px 0; } figure svg { max-width: 100%; height: auto; display: block; }
footer { margin-top: 40px; border-top: 1px solid var(--line); padding-top: 8px; font-size: .87rem; }
@media print { :root { color-scheme: light; --text: #000; --faint: #444; --ground: #fff; --panel: #fff; --line: #bbb;
  --bad: #a00; --good: #060; --unsure: #555; }
  body { font-size: 10.5pt; } main { max-width: none; padding: 0; } h2, h3 { break-after: avoid; }
  .finding, .figures li, figure, tr { break-inside: avoid; } .scroll { overflow: visible; }
  .finding, .figures li { border: 1px solid var(--line); } * { print-color-adjust: exact; } }
"""
"""The only style sheet of a page; fixed text, nothing from a trace."""


def words(text: str, most: int = MOST_TEXT) -> str:
    """Text as HTML: safe in an element and in a quoted attribute, control characters shown, of bounded length."""
    return escape(shortened(plain(text), most), quote=True)


def document(title: str, body: str) -> str:
    """A whole page.

    Args:
        title: Plain text.
        body: HTML, made by the functions of this module.
    """
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{words(title, 200)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph; ``kind`` is a class of :data:`STYLE`."""
    return f"<p{_class(kind)}>{words(text)}</p>"


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Names and values; a name that is empty goes on with the one before."""
    rows = [f"<dt>{words(name)}</dt><dd>{words(value)}</dd>" for name, value in pairs if value]
    return f"<dl>{''.join(rows)}</dl>" if rows else ""


def bullets(texts: Sequence[str]) -> str:
    """A list."""
    return f"<ul>{''.join(f'<li>{words(text)}</li>' for text in texts)}</ul>" if texts else ""


def section(heading: str, *parts: str) -> str:
    """A section with its heading; nothing if it has no content."""
    content = "\n".join(part for part in parts if part)
    return f"<section>\n<h2>{words(heading)}</h2>\n{content}\n</section>" if content else ""


def grid_section(grid: Grid | None) -> str:
    """A table that text and Markdown have as well, with its heading and remarks."""
    if grid is None:
        return ""
    remarks = [paragraph(text, "remark") for text in grid.remarks]
    return section(grid.heading, _table(grid) if grid.rows else "", *remarks)


def _table(grid: Grid) -> str:
    head = "".join(
        f'<th scope="col"{_class("n" if column.number else "")}>{words(column.heading)}</th>' for column in grid.columns
    )
    lines = []
    for row in grid.rows:
        cells = []
        for at, (cell, column) in enumerate(zip(row, grid.columns, strict=True)):
            bare = cell.lstrip(" ")
            depth = min((len(cell) - len(bare)) // 2, 4)
            kind = "n" if column.number else f"d{depth}" if depth else ""
            text = words(bare, MOST_CELL)
            heads = at == 0 and not column.number
            cells.append(f'<th scope="row"{_class(kind)}>{text}</th>' if heads else f"<td{_class(kind)}>{text}</td>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    label = words(grid.heading, MOST_CELL)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{label}">\n<table>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n" + "\n".join(lines) + "\n</tbody>\n</table>\n</div>"
    )


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
