"""``check-dispatch`` as GitHub-flavoured Markdown, for comments on pull requests and for job summaries.

Names from a trace are whatever its author wrote, so every text is made inert: no HTML, no table cell, emphasis, link,
mention or formula comes out of a name. Characters with a meaning become entities, which Markdown never reads as
structure (CommonMark 0.31, section 2.5), and so work inside a table where a backslash before a bar does not always.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from traceview.render.conditions import conditions
from traceview.render.dispatch_text import in_stage, shapes
from traceview.render.outcome import shortened
from traceview.render.units import counted, duration, percent, saving

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from traceview.dispatch import Dispatch
    from traceview.findings import Finding
    from traceview.render.outcome import Expectation, Outcome

MOST_BYTES: Final = 65_000
"""A comment on GitHub or GitLab takes more, but not much more: 65,536 characters."""

MOST_CELL: Final = 160
MOST_LINE: Final = 600
MOST_EVIDENCE: Final = 8
_CLOSING_ROOM: Final = 400
"""Bytes kept free for the line that says what was left out."""

_MARKS: Final = re.compile(r"[\\`*<>&|~$]|\](?=[(\[:]|$)|(?<!\w)_|_(?!\w)|:(?=//)|(?i:(?<=www)\.)")
"""Emphasis, code, HTML, entities, cells, strike-through, formulas, the joint of a link, and bare links."""

_REFERENCE: Final = re.compile(r"@(?=\w)|#(?=\d)|(?<=GH)-(?=\d)")
_INVISIBLE: Final = "\u200b"


def render_markdown(found: Outcome, most_bytes: int = MOST_BYTES) -> str:
    """The report; it ends early, between two blocks and with a remark, where it would get longer than allowed.

    Args:
        found: The check.
        most_bytes: Most bytes of the UTF-8 text, at least 4,000.
    """
    page = _Sheet(most_bytes - _CLOSING_ROOM)
    page.add(["## traceview check-dispatch", "", f"**{found.verdict.upper()}**: {_sentence(found.summary)}", ""])
    page.add(_conditions(found))
    if found.expectations is not None:
        page.table("Expectations", ("verdict", "expected", "observed", "place"), _expectation_rows(found.expectations))
    _add_findings(page, found)
    attention = found.table.attention
    if attention:
        page.table(
            "Attention calls",
            ("verdict", "calls", "device time", "of busy", "implementation", "known by", "op and inputs"),
            (_attention_row(row) for row in attention),
            right=(1, 2, 3),
        )
    if found.notes:
        page.add(["### Notes", ""])
        for note in found.notes:
            page.add([f"- {inert(shortened(note, MOST_LINE))}"], ("note", "notes"))
        page.add([""])
    return page.text()


class _Sheet:
    """Blocks of lines up to a size; what does not fit is counted by kind."""

    def __init__(self, most_bytes: int) -> None:
        self._left = most_bytes
        self._lines: list[str] = []
        self._left_out: dict[tuple[str, str], int] = {}

    def add(self, lines: Sequence[str], kind: tuple[str, str] | None = None) -> None:
        """Add a block that must stay whole, if it fits; ``kind`` names one and several of what else is lost."""
        size = sum(len(line.encode("utf-8", "backslashreplace")) + 1 for line in lines)
        if size > self._left:
            self._left = 0  # Nothing smaller may follow: a gap in the middle would not be seen.
            if kind:
                self._left_out[kind] = self._left_out.get(kind, 0) + 1
            return
        self._left -= size
        self._lines += lines

    def table(
        self, heading: str, columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()
    ) -> None:
        """A table under a heading; cells are Markdown already."""
        rule = "|".join("--:" if at in right else "---" for at in range(len(columns)))
        self.add([f"### {heading}", "", f"| {' | '.join(columns)} |", f"|{rule}|"])
        for row in rows:
            self.add([f"| {' | '.join(row)} |"], (f"row of {heading.lower()}", f"rows of {heading.lower()}"))
        self.add([""])

    def text(self) -> str:
        lines = list(self._lines)
        if self._left_out:
            parts = [counted(n, *kind) for kind, n in self._left_out.items()]
            lines += ["", f"Left out, the report would be too long: {', '.join(parts)}. The JSON output has all."]
        return "\n".join(lines).rstrip("\n") + "\n"


def _conditions(found: Outcome) -> list[str]:
    lines = ["| | |", "|---|---|"]
    lines += [
        f"| {name} | {inert(shortened(value, MOST_LINE))} |"
        for name, value in conditions(found.trace, found.imported, found.findings)
    ]
    return [*lines, f"| exit code | {found.exit_code} |", ""]


def _expectation_rows(expectations: Sequence[Expectation]) -> Iterator[tuple[str, ...]]:
    for one in expectations:
        observed = _cell(one.observed)
        if one.accepted:
            observed += f"<br>accepted: {_cell(one.accepted)}"
        yield (
            one.verdict if one.verdict in ("pass", "skipped") else f"**{one.verdict}**",
            code(one.text),
            observed,
            code(f"{one.place.path}:{one.place.line}"),
        )


def _add_findings(page: _Sheet, found: Outcome) -> None:
    if not found.findings:
        return
    page.add(["### Findings", ""])
    for finding in found.findings:
        page.add(_finding(finding, found.table.busy_ns), ("finding", "findings"))


def _finding(finding: Finding, busy_ns: int) -> list[str]:
    title = f"<b>{finding.code}</b> {finding.severity.value}: {inert(shortened(finding.title, MOST_LINE))}"
    lines = [
        "<details>",
        f"<summary>{title}</summary>",
        "",
        f"- where: {code(finding.where)}",
    ]
    if finding.cost_ns is not None:
        lines.append(f"- cost: {saving(finding.cost_ns, finding.cost_of, busy_ns)}")
    lines += [f"- evidence: {inert(shortened(line, MOST_LINE))}" for line in finding.evidence[:MOST_EVIDENCE]]
    if len(finding.evidence) > MOST_EVIDENCE:
        lines.append(f"- evidence: {len(finding.evidence) - MOST_EVIDENCE} more lines in the JSON output")
    lines += [
        f"- known by: {finding.confidence.value}",
        f"- fix: {inert(shortened(finding.fix, MOST_LINE))}",
        f"- false alarm if: {inert(shortened(finding.false_alarm_if, MOST_LINE))}",
        "",
        "</details>",
        "",
    ]
    return lines


def _attention_row(row: Dispatch) -> tuple[str, ...]:
    implementation = row.implementation or "-"
    if row.direction != "forward":
        implementation += f" {row.direction}"
    if row.provider:
        implementation += f" ({row.provider})"
    known_by = row.evidence if row.attribution == "attributed" else f"{row.evidence}, {row.attribution}"
    inputs = shapes(row.inputs, tensors=2)
    return (
        row.verdict if row.verdict == "ok" else f"**{row.verdict}**",
        f"{row.count:,}",
        duration(row.device_ns),
        percent(row.share),
        _cell(implementation),
        known_by,
        code(f"{row.op or 'op not recorded'}{in_stage(row)} {inputs}".strip()),
    )


def _sentence(text: str) -> str:
    shown = inert(shortened(text, 2 * MOST_LINE))
    return shown if shown.endswith(".") else f"{shown}."


def _cell(text: str) -> str:
    return inert(shortened(text, MOST_CELL))


def code(text: str) -> str:
    """A name in a fixed-width font; ``<code>``, as a code span has no way to hold a bar safely in a table."""
    shown = shortened(text, MOST_CELL) or "-"
    return f"<code>{_entities(shown)}</code>"


def inert(text: str) -> str:
    """``text`` without meaning to Markdown, HTML, or GitHub's mentions and references."""
    # GitHub looks for mentions and references after entities are read, so only a character in between stops them.
    return _entities(_REFERENCE.sub(lambda match: match[0] + _INVISIBLE, text))


def _entities(text: str) -> str:
    return _MARKS.sub(lambda match: f"&#{ord(match[0])};", text)
