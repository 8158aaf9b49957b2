"""The file is cut, or parts of it could not be read.

What it finds
    A file that ends before its own end or is damaged, and events, times or whole files that were lost while reading.

Why it costs
    Nothing by itself: whatever is missing is missing from every total.

Evidence it needs
    The import report, which counts what was skipped and lost.

When it is wrong
    What was lost may lie outside the part of interest.

Fix
    Copy the file again, wait until the profiler has written it, check the disk.

Scope and sources
    Every format: it is a statement about the trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traceview.count_words import count_words
from traceview.findings import Confidence, Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV903"
NAME: Final = "file-incomplete"
SEVERITY: Final = Severity.WARNING

_LOST: Final = "lost-"


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all that is missing."""
    report = facts.timeline.report
    lost = {kind: count for kind, count in report.counts.items() if kind.startswith(_LOST)}
    if not report.truncated and not lost:
        return
    total = sum(count.n for count in lost.values())
    what = "Parts of the file could not be used"
    if report.truncated:
        what = "The file is damaged" if report.damaged else "The file ends before its own end"
    yield Finding(
        code=CODE,
        severity=Severity.WARNING,
        title=f"{what}; {total:,} piece{'s were' if total != 1 else ' was'} lost" if total else what,
        where="the recording",
        evidence=tuple(
            f"{count_words(kind)}: {count.n:,}" + (f", first: {count.example[:120]}" if count.example else "")
            for kind, count in sorted(lost.items())
        ),
        cost_ns=None,
        confidence=Confidence.MEASURED,
        fix="Copy the file again, or record again and wait until it is written.",
        false_alarm_if="what is missing lies outside the part of interest",
    )
