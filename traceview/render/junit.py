"""``check-dispatch`` as JUnit XML, which GitLab, Jenkins and most other CI systems show as test results.

One case per expectation; without a file of expectations, one per attention call and per finding. Findings that fail
the check are cases in any form, so that the report is red exactly when the verdict is. There is no one standard; the
elements and attributes are those of Jenkins' ``junit-10.xsd``.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from html import escape
from typing import TYPE_CHECKING, Final

from traceview import __version__
from traceview.attention import INFERRED
from traceview.findings import Severity
from traceview.render.conditions import conditions
from traceview.render.dispatch_text import shapes
from traceview.render.outcome import shortened
from traceview.render.units import duration, percent, saving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.dispatch import Dispatch
    from traceview.findings import Finding
    from traceview.render.outcome import Expectation, Outcome

MOST_NAME: Final = 200
"""Characters of a case's name: systems use it as a key."""

_NOT_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 forbids (production 2, Char), escaped or not."""


class _State(StrEnum):
    PASSED = "passed"
    FAILED = "failure"
    ERROR = "error"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class _Case:
    group: str
    name: str
    state: _State
    message: str = ""
    lines: tuple[str, ...] = ()


def render_junit(found: Outcome) -> str:
    """The document as text."""
    cases = list(_numbered(_cases(found)))
    counts = Counter(case.state for case in cases)
    totals = _attributes(
        name="traceview check-dispatch",
        tests=str(len(cases)),
        failures=str(counts[_State.FAILED]),
        errors=str(counts[_State.ERROR]),
    )
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites{totals}>"]
    lines.append(f"  <testsuite{totals}{_attributes(skipped=str(counts[_State.SKIPPED]))}>")
    lines.append("    <properties>")
    lines += [f"      <property{_attributes(name=name, value=value)}/>" for name, value in _properties(found)]
    lines.append("    </properties>")
    for case in cases:
        lines += _case_lines(case)
    lines += ["  </testsuite>", "</testsuites>"]
    return "\n".join(lines) + "\n"


def _properties(found: Outcome) -> Iterator[tuple[str, str]]:
    yield "traceview", __version__
    yield "verdict", found.verdict
    yield "summary", shortened(found.summary)
    yield from ((name or "trust", shortened(value)) for name, value in conditions(found.trace, found.imported))
    yield from (("note", shortened(note)) for note in found.notes)


def _cases(found: Outcome) -> Iterator[_Case]:
    # What the trace cannot tell is no failure of the program; it is an error exactly when it fails the run.
    untold = _State.ERROR if found.exit_code == 3 else _State.SKIPPED
    cases = [_of_expectation(one, untold) for one in found.expectations or ()]
    if found.expectations is None:
        cases += [_of_dispatch(row, untold, failed=found.verdict == "fail") for row in found.table.attention]
    cases += [
        _of_finding(one) for one in found.findings if found.expectations is None or one.severity is Severity.ERROR
    ]
    told = any(one.verdict == "inconclusive" and not one.accepted for one in found.expectations or ()) or (
        found.expectations is None and any(case.state is untold for case in cases)
    )
    if not cases or (found.verdict == "inconclusive" and not told):
        state = untold if found.verdict == "inconclusive" else _State.PASSED
        cases.append(_Case("traceview.check", "check-dispatch", state, shortened(found.summary)))
    yield from cases


def _of_expectation(one: Expectation, untold: _State) -> _Case:
    group = "traceview.expectations"
    if one.accepted:
        return _Case(group, one.text, _State.PASSED, lines=(one.observed, f"accepted: {one.accepted}"))
    if one.verdict == "pass":
        return _Case(group, one.text, _State.PASSED, lines=(one.observed,))
    if one.verdict == "skipped":
        return _Case(group, one.text, _State.SKIPPED, one.observed)
    state = _State.FAILED if one.verdict == "fail" else untold
    lines = (f"{one.place.path}:{one.place.line}: {one.text}", one.observed)
    return _Case(group, one.text, state, one.observed, lines)


def _of_dispatch(row: Dispatch, untold: _State, *, failed: bool) -> _Case:
    parts = [row.op or "op not recorded", row.implementation or "", shapes(row.inputs, tensors=2)]
    if row.direction != "forward":
        parts.append(row.direction)
    if row.stage:
        parts.append(f"in {row.stage}")
    said = (
        f"{row.verdict}: {row.count:,} calls, {duration(row.device_ns)} of device time"
        f" ({percent(row.share)} of the busy time), known by {row.evidence}"
    )
    lines = (said, *(reason.text for reason in row.reasons))
    state = _State.PASSED
    if row.verdict == "unknown":
        state = untold
    elif row.verdict == "slow" and failed and row.evidence not in INFERRED:
        state = _State.FAILED
    return _Case("traceview.dispatch", " ".join(part for part in parts if part), state, said, lines)


def _of_finding(finding: Finding) -> _Case:
    cost = "" if finding.cost_ns is None else saving(finding.cost_ns, finding.cost_of, 0)
    parts = [
        finding.title,
        f"where: {finding.where}",
        *finding.evidence,
        f"cost: {cost}" if cost else "",
        f"fix: {finding.fix}",
        f"false alarm if: {finding.false_alarm_if}",
    ]
    failed = finding.severity is Severity.ERROR
    where = finding.where or "no place recorded"
    return _Case(
        f"traceview.rules.{finding.code}",
        f"{finding.code} {finding.severity.value}, {where}",
        _State.FAILED if failed else _State.PASSED,
        finding.title,
        tuple(part for part in parts if part),
    )


def _numbered(cases: Iterator[_Case]) -> Iterator[_Case]:
    """Names are keys: where two cases of a group share one, the later ones get a number."""
    seen: Counter[tuple[str, str]] = Counter()
    for case in cases:
        name = shortened(case.name, MOST_NAME)
        seen[case.group, name] += 1
        number = seen[case.group, name]
        yield _Case(
            case.group, f"{name} ({number})" if number > 1 else name, case.state, shortened(case.message), case.lines
        )


def _case_lines(case: _Case) -> Iterator[str]:
    head = f"    <testcase{_attributes(name=case.name, classname=case.group)}"
    # A line feed in a name stays visible as such: the lines of the text are ours.
    text = "\n".join(shortened(line) for line in case.lines)
    if case.state is _State.PASSED:
        if not text:
            yield f"{head}/>"
            return
        yield f"{head}>"
        yield f"      <system-out>{_text(text)}</system-out>"
    elif case.state is _State.SKIPPED:
        yield f"{head}>"
        yield f"      <skipped{_attributes(message=case.message)}/>"
    else:
        yield f"{head}>"
        kind = "violated" if case.state is _State.FAILED else "inconclusive"
        yield (
            f"      <{case.state}{_attributes(type=kind, message=case.message)}>"
            f"{_text(text or case.message)}</{case.state}>"
        )
    yield "    </testcase>"


def _attributes(**values: str) -> str:
    return "".join(f' {name}="{_text(value)}"' for name, value in values.items())


def _text(text: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", text), quote=True)
