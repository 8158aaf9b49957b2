"""Device work has no launch in the file.

What it finds
    Device work that the import could link to no launch, more than one piece in a hundred; and, in a file of several
    processes, device work that answers no launch of any of them.

Why it costs
    Nothing by itself: it is unknown which op asked for this work, so rules that need the op are blind to it.

Evidence it needs
    Correlation ids.

When it is wrong
    Work launched before the window opened always looks like this; it is a matter of how much.

Fix
    Use a profiler schedule with a warm-up step, or synchronise before the recording starts.

Scope and sources
    Every format: it is a statement about the trace. pytorch ``torch/profiler/profiler.py`` (``schedule``), read in
    source code 2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traceview.findings import Severity
from traceview.rules.import_evidence import note_findings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.findings import Finding
    from traceview.rules.base import Facts

CODE: Final = "TV902"
NAME: Final = "launch-missing"
SEVERITY: Final = Severity.WARNING


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for each such remark of the import that limits what the trace can tell."""
    return note_findings(
        facts,
        CODE,
        fix="Use a schedule with a warm-up step, or synchronise before the recording starts.",
        false_alarm_if="the work belongs to the step before the window",
    )
