"""Short names of devices and processes that no two of one timeline share: by rank, else by file.

Files of several hosts each have a device 0. Where ranks are recorded they tell these apart; where not, or where two
files claim one rank, what differs in the names of the files does.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import PurePath

    from traceview.timeline import Timeline

_PART: Final = "SparseCore"
_MOST_PLACE: Final = 16
"""Characters of a file in a label."""


def file_labels(paths: Sequence[PurePath]) -> tuple[str, ...]:
    """A short name for each of several files: what differs in their names, else in the folders they lie in."""
    names = [path.name.split(".")[0] or path.name for path in paths]
    depth = 1
    folders = [path.parts[:-1] for path in paths]
    while len(set(names)) < len(names) and depth <= max(map(len, folders), default=0):
        above = [parts[-depth] if depth <= len(parts) else "" for parts in folders]
        same = len(set(names)) == 1 and len(set(above)) == len(above)
        names = above if same else [f"{folder}/{name}" for folder, name in zip(above, names, strict=True)]
        depth += 1
    if max(map(len, names), default=0) > _MOST_PLACE and len(names) > 1:
        letters = enumerate(zip(*names, strict=False))
        common = next((at for at, column in letters if len(set(column)) > 1), min(map(len, names)))
        while common and names[0][common - 1].isalnum():
            common -= 1
        names = [f"...{name[common:]}" if common > len("...") else name for name in names]
    return tuple(names if len(set(names)) == len(names) else (f"file {at}" for at in range(1, len(names) + 1)))


def device_places(timeline: Timeline) -> dict[int, str]:
    """For each device that its number and rank do not tell from another one, the short name of its file."""
    rows = timeline.devices.to_dicts()
    own = Counter((row["ordinal"], timeline.runs[row["run"]].rank, _part(row["name"])) for row in rows)
    files = file_labels([run.path for run in timeline.runs])
    shared = {
        row["device"]: files[row["run"]]
        for row in rows
        if own[row["ordinal"], timeline.runs[row["run"]].rank, _part(row["name"])] > 1
    }
    return shared if len(timeline.runs) > 1 else {}


def device_label(ordinal: int, name: str | None, rank: int | None, place: str | None) -> str:
    """``device 0``, ``rank 1 device 0``, ``worker-b device 0``.

    Args:
        ordinal: Device number in its file.
        name: Product name, if recorded.
        rank: Rank of its file, if recorded.
        place: Short name of its file, if that is needed.
    """
    words = [*([place] if place else []), *([] if rank is None else [f"rank {rank}"]), f"device {ordinal}{_part(name)}"]
    return " ".join(words)


def device_labels(timeline: Timeline) -> dict[int, str]:
    """The label of each device."""
    places = device_places(timeline)
    return {
        row["device"]: device_label(
            row["ordinal"], row["name"], timeline.runs[row["run"]].rank, places.get(row["device"])
        )
        for row in timeline.devices.iter_rows(named=True)
    }


def process_labels(timeline: Timeline, processes: Sequence[int | None]) -> dict[int | None, str]:
    """A label for each of some processes: its rank, else its file, else its key."""
    run_of = dict(timeline.processes.select("process", pl.col("run")).iter_rows())
    files = file_labels([run.path for run in timeline.runs])

    def candidates(process: int | None) -> tuple[str, ...]:
        run = run_of.get(process)
        if process is None or run is None:
            return ("process",)
        rank = timeline.runs[run].rank
        ranked = () if rank is None else (f"rank {rank}", f"{files[run]} rank {rank}")
        filed = (files[run], f"{files[run]} process {process}") if len(timeline.runs) > 1 else ()
        return (*ranked, *filed, f"process {process}")

    every = {process: candidates(process) for process in processes}
    uses = Counter(name for names in every.values() for name in names)
    return {process: next((name for name in names if uses[name] == 1), names[-1]) for process, names in every.items()}


def _part(name: str | None) -> str:
    """A TPU's sparse cores have the number of the chip's core that they stand beside."""
    return f" {name[name.index(_PART) :]}" if name and _PART in name else ""
