"""The tracks of a timeline: processes with their threads, devices with their streams, as a viewer shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from traceview import schema

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from traceview.timeline import Timeline

_MOST_ID: Final = (1 << 31) - 1
_NONE: Final = -1


@dataclass(frozen=True, slots=True)
class Track:
    """One track.

    Attributes:
        uuid: Its number, from 1.
        name: What it is called.
        parent: ``uuid`` of the track above it, 0 for none.
        pid: Process id; a track with a ``pid`` and no ``tid`` is the process itself.
        tid: Thread id.
        counter: It shows a value over time; the text is its unit.
    """

    uuid: int
    name: str
    parent: int = 0
    pid: int | None = None
    tid: int | None = None
    counter: str | None = None


class Tracks:
    """All tracks, and the one of each event.

    Args:
        timeline: The timeline.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.tracks: list[Track] = []
        self._lanes: dict[tuple[int, int], int] = {}
        self._pids, self._tids = _Ids(), _Ids()
        self._timeline = timeline
        self._processes = {row["process"]: self._process(row) for row in timeline.processes.iter_rows(named=True)}
        self._threads = {row["thread"]: self._thread(row) for row in timeline.threads.iter_rows(named=True)}
        self.of_event = self._of_events(timeline.events)

    def add(self, name: str, parent: int = 0, **more: Any) -> int:
        """A further track."""
        self.tracks.append(Track(len(self.tracks) + 1, name, parent, **more))
        return len(self.tracks)

    def lane(self, track: int, lane: int) -> int:
        """The track for slices of ``track`` that overlap others of it; ``track`` itself for lane 0."""
        if lane == 0:
            return track
        if (track, lane) not in self._lanes:
            own = self.tracks[track - 1]
            parent = track if own.tid is not None or own.pid is not None else own.parent
            self._lanes[track, lane] = self.add(f"{own.name} (overlapping, {lane + 1})", parent)
        return self._lanes[track, lane]

    def process_of_device(self, device: int) -> int:
        """The track above the streams of a device."""
        return self._devices[device]

    def _run_label(self, run: int) -> str:
        runs = self._timeline.runs
        if len(runs) == 1:
            return ""
        rank = runs[run].rank if run < len(runs) else None
        return f"rank {rank} " if rank is not None else f"file {run + 1} "

    def _process(self, row: dict[str, Any]) -> int:
        pid = self._pids.unique(row["pid"])
        said = f" (pid {row['pid']})" if row["pid"] is not None and row["pid"] != pid else ""
        return self.add(f"{self._run_label(row['run'])}{row['name'] or 'process'}{said}", pid=pid)

    def _thread(self, row: dict[str, Any]) -> int:
        process = self._processes[row["process"]]
        tid = self._tids.unique(row["tid"])
        said = f" (tid {row['tid']})" if row["tid"] is not None and row["tid"] != tid else ""
        return self.add(f"{row['name'] or 'thread'}{said}", process, pid=self.tracks[process - 1].pid, tid=tid)

    def _of_events(self, events: pl.DataFrame) -> NDArray[np.int64]:
        """Device rows to a track per device and stream, marks of it apart; host rows to their threads."""
        track = pl.Series("track", np.zeros(events.height, np.int64))
        keys = ["process", "thread", "device", "stream", "beside"]
        busy = pl.col("kind").is_in([*schema.BUSY_KINDS, "xla_module", "async_wait", "sync"])
        placed = events.select(
            pl.when(pl.col("device").is_null()).then("process").alias("process"),
            pl.when(pl.col("device").is_null()).then("thread").alias("thread"),
            "device",
            pl.when(pl.col("device").is_not_null()).then("stream").alias("stream"),
            (pl.col("device").is_not_null() & ~busy).alias("beside"),
        )
        distinct = placed.unique(maintain_order=True).sort(keys, nulls_last=True)
        self._devices: dict[int, int] = {}
        for row in self._timeline.devices.iter_rows(named=True):
            said = f": {row['name']}" if row["name"] else ""
            self._devices[row["device"]] = self.add(f"{self._run_label(row['run'])}device {row['ordinal']}{said}")
        tracks = [self._place(row) for row in distinct.iter_rows(named=True)]
        numbered = distinct.with_columns(pl.Series("track", tracks, dtype=pl.Int64))
        joined = placed.join(numbered, on=keys, how="left", nulls_equal=True, maintain_order="left")
        track = joined["track"]
        return track.to_numpy()

    def _place(self, row: dict[str, Any]) -> int:
        if row["device"] is not None:
            stream = "no stream" if row["stream"] is None else f"stream {row['stream']}"
            return self.add(f"{stream}, marks" if row["beside"] else stream, self._devices[row["device"]])
        if row["thread"] is not None:
            return self._threads[row["thread"]]
        if row["process"] is not None:
            return self.add("events without a thread", self._processes[row["process"]])
        return self.add("events without a process")


class _Ids:
    """Process or thread ids that no other file of the load uses: a viewer takes equal ids for one thing."""

    def __init__(self) -> None:
        self._used: set[int] = set()
        self._next = _MOST_ID

    def unique(self, wanted: int | None) -> int:
        if wanted is None or not 0 < wanted <= _MOST_ID or wanted in self._used:
            while self._next in self._used:
                self._next -= 1
            wanted = self._next
        self._used.add(wanted)
        return wanted


def counters(timeline: Timeline) -> Iterable[tuple[str, str, pl.DataFrame]]:
    """Values over time: name, unit, and a frame of ``id`` and ``value``, for each counter that is recorded."""
    details = timeline.details
    for key in ("Total Allocated", "Total Reserved"):
        if key in details and details[key].height:
            yield key, "bytes", details[key]
