"""PyTorch profiler (Kineto) traces: ``.json`` and ``.json.gz``, every vintage since 2020."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from traceview.formats import Probe
    from traceview.timeline import Timeline

_KINETO_MARKS = (
    b'"schemaVersion"', b'"deviceProperties"', b'"distributedInfo"', b'"baseTimeNanoseconds"', b'"cpu_op"',
    b'"Operator"', b'"user_annotation"', b'"gpu_memcpy"', b'"cuda_runtime"', b'"python_function"', b'"ac2g"',
    b'"Kernel"', b'"kernel"', b'"cpu_instant_event"', b'"cuda_driver"', b'"cuda_sync"', b'"gpu_memset"',
    b'"gpu_user_annotation"', b'"xpu_runtime"', b'"privateuse1_runtime"', b'"mtia_runtime"', b'"PyTorch Profiler',
)  # fmt: skip
_MOST_HEAD = 48 << 20
"""As much as the reader takes before the events."""
_NO_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[\s*\]')
_FOREIGN_MARKS = (b'"/device:', b'"/host:CPU"', b'"highres-ticks"', b'"Ascend Hardware"', b'"CANN"')


class KinetoFormat:
    """Entry point of the format; heavy imports wait until a file is parsed."""

    name = "kineto"
    title = "PyTorch profiler (Kineto)"

    def sniff(self, probe: Probe) -> float:
        """By the JSON keys that Kineto writes; a trace that names another producer's processes is not ours."""
        text = probe.text.removeprefix(b"\xef\xbb\xbf").lstrip()
        if text[:1] not in (b"{", b"[") or any(mark in text for mark in _FOREIGN_MARKS):
            return 0.0
        marks = sum(mark in text for mark in _KINETO_MARKS)
        has_events = b'"traceEvents"' in text
        if marks and not has_events and text[:1] == b"{":
            # A long head (process groups of thousands of ranks, package lists) puts the events beyond what was seen.
            has_events = probe.holds(b'"traceEvents"', limit=_MOST_HEAD)
        if has_events:
            # Other tools use the same envelope: without a mark of ours, only an empty list of events can be ours.
            return min(0.5 + 0.2 * marks, 0.95) if marks else 0.5 * bool(_NO_EVENTS.search(text))
        if text[:1] == b"[":
            return 0.6 if marks and b'"ph"' in text else 0.0
        return 0.4 if marks else 0.05 * (probe.size > len(probe.head))

    def parse(self, path: Path, *, run: int, progress: Callable[[float], None] | None) -> Timeline:
        """Read one file; see :meth:`traceview.formats.Format.parse`."""
        from traceview.memory import large_blocks_apart, release_free
        from traceview.parsers.kineto.mapping import to_timeline
        from traceview.parsers.kineto.reader import read

        holder = [read(path, progress=progress)]
        release_free()
        with large_blocks_apart():
            # The mapping must hold the only reference, so that it can let go of what it has used.
            timeline = to_timeline(holder.pop(), path, run=run)
        release_free()
        return timeline


FORMAT = KinetoFormat()
