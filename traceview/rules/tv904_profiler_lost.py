"""The profiler says that its own record is incomplete or distorted.

What it finds
    Remarks of the profiler in the file: records that it dropped, an early stop, a range profiler that serialised
    kernels.

Why it costs
    Nothing by itself: times and counts are not those of an ordinary run.

Evidence it needs
    Metadata of the file, and the messages of the profiler in it.

When it is wrong
    The remark may concern records that no answer depends on.

Fix
    Record again, shorter, without hardware counters.

Scope and sources
    Any profiler that logs its losses: it is a statement about the trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traceview.findings import Severity
from traceview.rules.import_evidence import note_findings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.findings import Finding
    from traceview.rules.base import Facts

CODE: Final = "TV904"
NAME: Final = "profiler-lost"
SEVERITY: Final = Severity.WARNING


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for each such remark of the import that limits what the trace can tell."""
    return note_findings(
        facts,
        CODE,
        fix="Record again, for a shorter time and without hardware counters.",
        false_alarm_if="the lost records are of no concern for the question",
    )
