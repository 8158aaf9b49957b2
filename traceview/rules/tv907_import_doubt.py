"""The import has a doubt about the trace that no other rule speaks of.

What it finds
    Remarks of the import that limit what the trace can tell and that are not about lost or missing work: several files
    whose clocks could not be aligned or that were not recorded together, a rank that is there twice, events without a
    duration, device work that could belong to either of two processes, and whatever a parser of another package says.

Why it costs
    Nothing by itself: answers that depend on what is doubted are bounds or guesses.

Evidence it needs
    The import report.

When it is wrong
    The doubt may concern a part that no answer depends on.

Fix
    Read the remark: it names what is doubted. Several files: give only those of one run, recorded at the same time.
    One file: export or record it again, whole.

Scope and sources
    Every format: it is a statement about the trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traceview.findings import Severity
from traceview.rules.import_evidence import ANY_OTHER, note_findings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.findings import Finding
    from traceview.rules.base import Facts

CODE: Final = ANY_OTHER
NAME: Final = "import-doubt"
SEVERITY: Final = Severity.WARNING

_ONE_RUN: Final = "Give only the files of one run, recorded at the same time and with one profiler."
_FIXES: Final = {
    "clocks-not-aligned": _ONE_RUN,
    "recordings-apart": _ONE_RUN,
    "rank-twice": "Give one recording of each rank.",
    "several-processes": "Record each process to a file of its own.",
    "duration-missing": "Stop the profiler before the program ends, so that it writes how long each event took.",
    "export-partial": "Export the recording again without --tables and --times.",
    "schema-unknown": "Update traceview, or export with an older version of Nsight Systems.",
    "no-device-work": "Let the program end, or stop the recording, after the device has finished.",
    "host-only": "Record the device too, and read the profile of the machine that holds it.",
    "viewer-file": "Give the xplane.pb of the same run.",
    "viewer-file-capped": "Give the xplane.pb of the same run.",
    "cut-off": "Copy the file again, or record again and wait until it is written.",
    "": "Record again if an answer that matters depends on what is doubted.",
}
"""By kind of remark; what a parser of another package says can be anything."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for each such remark of the import that limits what the trace can tell."""
    return note_findings(
        facts,
        CODE,
        fix=_FIXES,
        false_alarm_if="no answer of interest depends on what is doubted",
    )
