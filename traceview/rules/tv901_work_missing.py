"""Launches have no device work in the file.

What it finds
    Kernel or graph launches that the import could link to no device work, more than one in a hundred.

Why it costs
    Nothing by itself: the trace is incomplete. Device time, busy time and counts are lower bounds, and idle time is an
    upper bound.

Evidence it needs
    Launch calls with correlation ids.

When it is wrong
    Work launched at the very end of the window may finish after it. Where nothing but graph replays is missing, TV905
    says so.

Fix
    Record fewer steps, call ``torch.cuda.synchronize()`` before the profiler stops, raise the CUPTI buffer size.

Scope and sources
    Every format: it is a statement about the trace. That CUPTI drops activity when its buffers run full is general
    knowledge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traceview.findings import Severity
from traceview.rules.import_evidence import note_findings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.findings import Finding
    from traceview.rules.base import Facts

CODE: Final = "TV901"
NAME: Final = "work-missing"
SEVERITY: Final = Severity.WARNING


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for each such remark of the import that limits what the trace can tell."""
    return note_findings(
        facts,
        CODE,
        fix="Record fewer steps and synchronise before the profiler stops.",
        false_alarm_if="the work finished after the recording stopped",
    )
