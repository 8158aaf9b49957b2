"""Which files of a folder are the recording: the XSpace of each host, and of several runs the last one.

TensorBoard's layout is ``<logdir>/plugins/profile/<run>/<host>.xplane.pb``, with a viewer file of the same host beside
it and results of XProf's own analyses, which are no recordings.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_SUFFIXES: Final = (".xplane.pb", ".xplane.pb.gz", ".trace.json.gz", ".trace.json")


def choose(paths: Sequence[Path]) -> dict[Path, str]:
    """Which of these files are left out, and why.

    Args:
        paths: Files of the format that were found in one folder or by one pattern.
    """
    left_out: dict[Path, str] = {}
    runs = {
        path.parent
        for path in paths
        if path.parent.parent.name == "profile" and path.parent.parent.parent.name == "plugins"
    }
    if len(runs) > 1:
        last = max(runs, key=lambda run: (run.name, str(run)))
        for path in paths:
            if path.parent in runs and path.parent != last:
                left_out[path] = (
                    f"it is of the run {path.parent.name}, and {last.name} is a later one; give its folder to read it"
                )
    hosts: dict[tuple[Path, str], list[Path]] = defaultdict(list)
    for path in paths:
        if path not in left_out:
            hosts[path.parent, _host(path)].append(path)
    for files in hosts.values():
        whole = [path for path in files if _is_xspace(path)]
        if whole:
            left_out.update(
                (path, f"{whole[0].name} is of the same host and holds more") for path in files if not _is_xspace(path)
            )
    return left_out


def _host(path: Path) -> str:
    return next((path.name.removesuffix(suffix) for suffix in _SUFFIXES if path.name.endswith(suffix)), path.name)


def _is_xspace(path: Path) -> bool:
    return path.name.endswith((".xplane.pb", ".xplane.pb.gz"))
