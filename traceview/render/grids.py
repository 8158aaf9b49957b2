"""Tables that text and Markdown share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from traceview.render.markdown import MOST_CELL, MOST_LINE, inert
from traceview.render.names import host_name
from traceview.render.outcome import shortened
from traceview.render.page import INDENT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    from traceview.render.page import Column, Page


@dataclass(frozen=True, slots=True)
class Grid:
    """A table with its heading and remarks; cells are plain text.

    ``above``: the first cell of each row is a sentence; as text it stands on a line of its own above the row.
    ``items``: sentences as a list, below all else.
    """

    heading: str
    columns: Sequence[Column]
    rows: list[list[str]]
    remarks: tuple[str, ...] = ()
    above: bool = False
    items: tuple[str, ...] = ()


def write_grid(page: Page, grid: Grid) -> None:
    """As text."""
    page.heading(grid.heading)
    if grid.rows and grid.above:
        lines = [line for first, *rest in grid.rows for line in (host_name(first, page.width - INDENT), rest)]
        page.table(grid.columns[1:], lines)
    elif grid.rows:
        page.table(grid.columns, grid.rows)
    for remark in grid.remarks:
        page.remark(remark)
    for item in grid.items:
        page.bullet(item)


def print_markdown(
    out: TextIO, title: str, verdict: str, facts: Sequence[tuple[str, str]], grids: Sequence[Grid]
) -> None:
    """As GitHub-flavoured Markdown; every text is inert, on one line, and of bounded length."""
    lines = [f"## {title}", "", f"**{_shown(verdict, 2 * MOST_LINE)}**", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {_shown(value, MOST_LINE)} |" for name, value in facts if value]
    for grid in grids:
        rule = "|".join("--:" if column.number else "---" for column in grid.columns)
        lines += ["", f"### {grid.heading}", ""]
        if grid.rows:
            lines += [f"| {' | '.join(column.heading for column in grid.columns)} |", f"|{rule}|"]
        # Leading spaces stand for nesting, which Markdown would drop.
        lines += [f"| {' | '.join(_markdown_cell(cell) for cell in row)} |" for row in grid.rows]
        lines += [line for remark in grid.remarks for line in ("", _shown(remark, 2 * MOST_LINE))]
        lines += [f"- {_shown(item, 2 * MOST_LINE)}" for item in grid.items]
    print("\n".join(lines), file=out)


def _markdown_cell(cell: str) -> str:
    bare = cell.lstrip(" ")
    return "\u2003" * ((len(cell) - len(bare)) // 2) + _shown(bare, MOST_CELL)


def _shown(text: str, width: int) -> str:
    # A line break or an escape sequence in a name would end the paragraph, or reach the terminal that shows the page.
    return inert(shortened(text, width))
