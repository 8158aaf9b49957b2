"""What each kind of count of an import report means, in words that a number can follow.

Kinds are for programs; people read words. A kind that a parser of another package makes up is shown as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traceview.timeline import Count

_WORDS: Final[Mapping[str, str]] = {
    # Facts about the recording, of any format.
    "correlation-reused": "launches whose correlation number another launch has too",
    "launch-captured": "launches that were captured into a graph and ran nothing by themselves",
    "correlation-from-flow": "launches found by the arrows of the file instead of a correlation number",
    "op-by-external-id": "device events whose op is known by an id instead of a launch",
    "duration-missing": "events without a duration, counted as instants",
    "unknown-value": "values that are newer than this reader",
    "lost-file": "files that could not be read",
    "lost-time-far-off": "events whose time lies far from the rest of the recording, left out",
    "lost-time-zero": "events at time zero, where no clock was set, left out",
    "lost-negative-duration": "events that end before they start, left out",
    # Kineto.
    "repaired-backslash": "strings with backslashes that are no JSON escapes, kept as they are",
    "repaired-quote": "strings with quotes that were not escaped, taken as text",
    "repaired-utf8": "stretches that are no UTF-8, replaced",
    "repaired-surrogate": "names with half of a character, replaced",
    "repaired-word": "words that are no JSON values (nan, inf), taken as no value",
    "repaired-number": "numbers that are no JSON numbers, read by their meaning",
    "repaired-comma": "commas too many or too few, passed over",
    "repaired-time-in-quotes": "times in quotes, read as numbers",
    "repaired-deep-value": "arguments nested too deeply, kept as text",
    "lost-event": "events damaged beyond repair",
    "lost-time": "events without a time",
    "lost-duration": "events whose duration is no number, kept without it",
    "lost-text": "stretches of text that belong to no event",
    "lost-cut": "events in whose middle the file ends",
    "lost-argument": "arguments dropped because their names are too many",
    "lost-metadata": "facts about the recording that could not be read",
    "lost-trailing": "events after the end of the trace",
    "lost-unsupported-phase": "events of a kind (ph) that is not known, left out",
    # Nsight Systems.
    "repaired-text": "texts that are no UTF-8, repaired",
    "repaired-field": "fields of the wrong type, repaired",
    "lost-field": "fields that could not be read",
    "lost-rows": "rows that could not be read",
    "lost-table": "tables that could not be read",
    "lost-name": "rows whose name is not in the file",
    "lost-without-start": "rows without a start, left out",
    "lost-nvtx-type": "NVTX events of a type that is not known, left out",
    "lost-sizes": "sizes of operators that are cut or damaged",
    "event-without-time": "CUDA events whose time was not collected",
    "graph-and-nodes": "graph launches recorded both as a block and node by node",
    "backtrace-row": "second rows of a call, from --cudabacktrace",
    "other-call-class": "calls of a class that is not known",
    "repeated-overhead": "overheads that two tables hold, counted once",
    "repeated-range": "calls that two tables hold, counted once",
    "range-type-missing": "NVTX rows of which the file does not say what they are, taken for ranges",
    "open-range": "ranges that were open when the recording ended",
    "range-without-thread": "ranges that do not say on which thread they are",
    "call-without-end": "host calls and ranges without an end, counted as instants",
    "range-across-threads": "ranges that end on another thread",
    "profiler-warning": "warnings and errors of the profiler",
    # XProf.
    "lost-stat": "facts about events that could not be read",
    "lost-aggregated-event": "events with a number of occurrences instead of a time, left out",
    "name-missing": "events whose name is not in the file",
    "derived-row": "rows that repeat others in another form, left out",
    "sparse-core-row": "operations of sparse cores, which run beside the work of the core",
    "unknown-plane-row": "events of planes that are not known, kept as other events",
    "async-copy-in-flight": "copies that run beside the work of the core",
    "end-mark": "marks of an end, not counted as work",
    "nested-call-mark": "marks that repeat the call around them",
    "tpu-module": "programs that ran on a TPU",
    "tpu-module-linked": "programs that ran on a TPU, with the call that launched them",
}


def count_words(kind: str) -> str:
    """The kind in words; a kind that is not known as it is."""
    return _WORDS.get(kind, kind)


def losses(counts: Mapping[str, Count]) -> str:
    """What was lost, kind by kind: ``events damaged beyond repair: 2; tables that could not be read: 1``."""
    return "; ".join(
        f"{count_words(kind)}: {count.n:,}" for kind, count in sorted(counts.items()) if kind.startswith("lost-")
    )
