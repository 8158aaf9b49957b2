"""What a check found, in the one form that the CI renderers share: an ordered list of remarks with their places.

A trace has no source line of its own. A remark therefore points at the line of the expectation that is violated, or at
the Python call site when the trace was recorded with stacks, or at the trace file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from traceview.findings import Severity
from traceview.render.names import middle_cut, plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from traceview.dispatch import DispatchTable
    from traceview.errors import ExitCode
    from traceview.expectations.model import ExpectationResult
    from traceview.findings import Finding
    from traceview.gate import CheckResult
    from traceview.report import ImportSummary, TraceInfo

EXPECTATION: Final = "expectation"
"""Rule id of a violated expectation."""

INCONCLUSIVE: Final = "inconclusive"
"""Rule id of what the trace cannot tell."""

MOST_TEXT: Final = 1000
"""Characters of one text in an annotation or a result: a name in a trace can be of any length."""

_CALL_SITE: Final = re.compile(r"(?:^|[,;] )(?P<path>[^,;\n]*\.pyx?)\((?P<line>\d+)\): ")


class Level(StrEnum):
    """How bad a remark is, worst first."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Place:
    """A file, and a line of it if it is known. Relative to where the check ran, if the file lies below that."""

    path: str
    line: int | None


@dataclass(frozen=True, slots=True)
class Expectation:
    """One judged expectation.

    Attributes:
        place: Line of the file of expectations.
        text: What was expected, in one line.
        verdict: ``"pass"``, ``"fail"``, ``"inconclusive"`` or ``"skipped"``.
        observed: What the trace shows.
        accepted: Why a violation does not count, ``None`` if it counts.
    """

    place: Place
    text: str
    verdict: str
    observed: str
    accepted: str | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """A check with everything that a renderer may show.

    Attributes:
        verdict: ``"pass"``, ``"fail"`` or ``"inconclusive"``.
        summary: The verdict in one sentence.
        exit_code: What the program ends with, options considered.
        trace: Which trace.
        imported: How its import went.
        table: What ran.
        findings: Worst first.
        expectations: In the order of their file; ``None`` if no file was given.
        notes: Remarks on the check itself.
        root: Folder in which the check ran, to which places are relative; ``""`` leaves paths as they are.
    """

    verdict: str
    summary: str
    exit_code: int
    trace: TraceInfo
    imported: ImportSummary
    table: DispatchTable
    findings: tuple[Finding, ...]
    expectations: tuple[Expectation, ...] | None = None
    notes: tuple[str, ...] = ()
    root: str = ""


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing that a CI system shows at a place.

    Attributes:
        rule: Rule code, :data:`EXPECTATION` or :data:`INCONCLUSIVE`.
        level: How bad it is.
        title: One sentence.
        details: More lines: evidence, what to do.
        places: Where; the first is the main one. Never empty.
        finding: The finding it is about, if any.
        expectation: The expectation it is about, if any.
    """

    rule: str
    level: Level
    title: str
    details: tuple[str, ...]
    places: tuple[Place, ...]
    finding: Finding | None = None
    expectation: Expectation | None = None


def outcome(
    result: CheckResult, trace: TraceInfo, imported: ImportSummary, exit_code: ExitCode, *, root: str = ""
) -> Outcome:
    """Gather what the renderers need.

    Args:
        result: The check.
        trace: Which trace.
        imported: How its import went.
        exit_code: What the program ends with.
        root: Folder in which the check ran; absolute paths below it become relative to it.
    """
    return Outcome(
        verdict=result.verdict.value,
        summary=result.summary,
        exit_code=int(exit_code),
        trace=trace,
        imported=imported,
        table=result.table,
        findings=result.findings,
        expectations=None
        if result.expectations is None
        else tuple(_expectation(one, root) for one in result.expectations),
        notes=result.notes,
        root=root,
    )


def _expectation(judged: ExpectationResult, root: str) -> Expectation:
    return Expectation(
        place=Place(relative(judged.path, root), judged.line),
        text=judged.text,
        verdict=judged.verdict.value,
        observed=judged.observed,
        accepted=judged.accepted,
    )


def remarks(found: Outcome) -> tuple[Remark, ...]:
    """Everything that is not simply right, worst first; within a level expectations before findings."""
    trace = Place(relative(found.trace.files[0], found.root), None)
    # What cannot be told is as bad as an error exactly when it is what fails the run.
    untold = Level.ERROR if found.exit_code == 3 else Level.WARNING
    listed = [
        *(_of_expectation(one, untold) for one in found.expectations or () if one.verdict in ("fail", "inconclusive")),
        *(_of_finding(one, trace, found.root) for one in found.findings),
    ]
    if found.verdict == "inconclusive" and all(one.rule != INCONCLUSIVE for one in listed):
        listed.insert(0, Remark(INCONCLUSIVE, untold, shortened(found.summary), (), (trace,)))
    order = list(Level)
    return tuple(sorted(listed, key=lambda one: order.index(one.level)))


def _of_expectation(one: Expectation, untold: Level) -> Remark:
    violated = one.verdict == "fail"
    level = Level.NOTE if one.accepted else Level.ERROR if violated else untold
    said = "violated" if violated else "not to be told from this trace"
    if one.accepted:
        said += ", accepted"
    return Remark(
        rule=EXPECTATION if violated else INCONCLUSIVE,
        level=level,
        title=shortened(f"{said}: {one.text}"),
        details=_lines([one.observed, f"accepted: {one.accepted}" if one.accepted else ""]),
        places=(one.place,),
        expectation=one,
    )


def _of_finding(finding: Finding, trace: Place, root: str) -> Remark:
    level = {Severity.ERROR: Level.ERROR, Severity.WARNING: Level.WARNING, Severity.INFO: Level.NOTE}
    return Remark(
        rule=finding.code,
        level=level[finding.severity],
        title=shortened(finding.title),
        details=_lines([*finding.evidence, f"fix: {finding.fix}", f"false alarm if: {finding.false_alarm_if}"]),
        places=call_sites(finding.where, root) or (trace,),
        finding=finding,
    )


def _lines(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(shortened(text) for text in texts if text)


def shortened(text: str, width: int = MOST_TEXT) -> str:
    """``text`` without control characters, of at most ``width`` characters, all of which can be written as UTF-8."""
    # A file name that is no text holds stand-ins for its bytes, which no encoding takes.
    return middle_cut(plain(text).encode("utf-8", "backslashreplace").decode(), width)


def call_sites(where: str, root: str = "") -> tuple[Place, ...]:
    """The Python lines that a finding's ``where`` names, e.g. ``"Attention, model/attn.py(338): forward"``."""
    found = (
        Place(relative(match["path"].strip(), root), int(match["line"]) or None) for match in _CALL_SITE.finditer(where)
    )
    return tuple(dict.fromkeys(found))


def relative(path: str, root: str) -> str:
    """``path`` with forward slashes, relative to ``root`` if it lies below it."""
    path = path.replace("\\", "/")
    root = root.replace("\\", "/").rstrip("/")
    path = path.removeprefix(f"{root}/") if root else path
    return path.removeprefix("./")
