"""XProf profiles of JAX, TensorFlow and PyTorch/XLA: ``.xplane.pb``, and ``.trace.json.gz`` where only that is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from traceview.formats import Probe
    from traceview.timeline import Timeline


class XprofFormat:
    """Entry point of the format; heavy imports wait until a file is parsed."""

    name = "xprof"
    title = "XProf (JAX, TensorFlow, XLA)"

    def sniff(self, probe: Probe) -> float:
        """By the structure of the first message, or by the process names of a viewer file."""
        from .sniff import looks_like_viewer_json, looks_like_xspace

        if looks_like_xspace(probe):
            return 0.95
        return 0.9 if looks_like_viewer_json(probe) else 0.0

    def parse(self, path: Path, *, run: int, progress: Callable[[float], None] | None) -> Timeline:
        """Read one file; see :meth:`traceview.formats.Format.parse`."""
        from .reading import read

        return read(path, run=run, progress=progress)

    def choose(self, paths: Sequence[Path]) -> dict[Path, str]:
        """Which files of a folder are left out, and why; see :class:`traceview.formats.Choosing`."""
        from .run_folder import choose

        return choose(paths)


FORMAT = XprofFormat()
