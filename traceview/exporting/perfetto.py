"""A timeline as a Perfetto trace: protocol buffers that https://ui.perfetto.dev and ``trace_processor`` read.

The wire format is written here: a message object per event would take some twenty times as long, and the package
``perfetto`` is not needed to export. The tests read what is written with the message types of that package.

Source of the field numbers: ``trace_packet.proto``, ``interned_data/interned_data.proto`` and ``track_event/*.proto``
in ``protos/perfetto/trace`` of the repository google/perfetto.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Final

import numpy as np
import polars as pl

from traceview.exporting import lanes
from traceview.exporting.records import Rows, bytes_field, fixed64, number_field, tag, varint, varints
from traceview.exporting.tracks import Tracks, counters

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from traceview.exporting.marks import Mark, Marks
    from traceview.exporting.tracks import Track
    from traceview.timeline import Timeline

_PACKET: Final = 1
_TIMESTAMP, _SEQUENCE, _TRACK_EVENT, _INTERNED, _FLAGS, _DESCRIPTOR = 8, 10, 11, 12, 13, 60
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4
_SAME_SEQUENCE: Final = number_field(_SEQUENCE, 1) + number_field(_FLAGS, 2)
_CLEARED: Final = number_field(_SEQUENCE, 1) + number_field(_FLAGS, 3)
_AT_A_TIME: Final = 1 << 16
_BATCH: Final = 1 << 12
_OWN: Final = "traceview"

_NUMBERS: Final = ("id", "bytes", "flops", "correlation", "step", "launch_id", "op_id", "parent_id")
"""Columns of the events that become arguments, under these names."""
_TEXTS: Final = ("op", "stage", "family", "implementation", "dims", "dtypes")


def write(timeline: Timeline, marks: Marks, out: BinaryIO) -> int:
    """Write a trace.

    Args:
        timeline: With launches linked.
        marks: What to add to the events.
        out: Where to; written from front to back.

    Returns:
        How many slices lie on a track of their own because they overlap others of theirs without nesting.
    """
    tracks = Tracks(timeline)
    table = _Table(timeline, marks, tracks)
    out.write(_packet(_CLEARED))
    out.writelines(table.strings.packets())
    out.writelines(_packet(_descriptor(track)) for track in tracks.tracks)
    out.writelines(table.blocks())
    return table.moved


def _packet(content: bytes) -> bytes:
    return bytes_field(_PACKET, content)


def _descriptor(track: Track) -> bytes:
    """The content of the packet that describes a track."""
    parts = [number_field(1, track.uuid), bytes_field(2, track.name)]
    if track.parent:
        parts.append(number_field(5, track.parent))
    if track.tid is not None:
        thread = number_field(1, track.pid or 0) + number_field(2, track.tid) + bytes_field(5, track.name)
        parts.append(bytes_field(4, thread))
    elif track.pid is not None:
        parts.append(bytes_field(3, number_field(1, track.pid) + bytes_field(6, track.name)))
    elif track.counter is not None:
        parts.append(bytes_field(8, number_field(3, 3) if track.counter == "bytes" else bytes_field(6, track.counter)))
    return bytes_field(_DESCRIPTOR, b"".join(parts)) + number_field(_SEQUENCE, 1)


class _Strings:
    """Texts that are written once and then named by a number, from 1; one numbering for each use of them."""

    # Fields of InternedData: event_categories, event_names, debug_annotation_names, debug_annotation_string_values.
    CATEGORY, NAME, ARGUMENT, VALUE = 1, 2, 3, 29

    def __init__(self) -> None:
        self._of: dict[int, dict[str, int]] = {use: {} for use in (self.CATEGORY, self.NAME, self.ARGUMENT, self.VALUE)}

    def number(self, use: int, text: str) -> int:
        known = self._of[use]
        return known.setdefault(text, len(known) + 1)

    def column(self, use: int, texts: pl.Series) -> NDArray[np.int64]:
        """The number of each text, 0 for null."""
        distinct = texts.unique().drop_nulls().cast(pl.String)
        numbers = pl.Series([self.number(use, text) for text in distinct], dtype=pl.Int64)
        frame = pl.DataFrame({"text": distinct, "number": numbers})
        if texts.dtype in (pl.Categorical, pl.Enum):
            frame = frame.with_columns(pl.col("text").cast(texts.dtype))
        joined = texts.alias("text").to_frame().join(frame, on="text", how="left", maintain_order="left")
        return joined["number"].fill_null(0).to_numpy()

    def packets(self) -> Iterator[bytes]:
        entries = [
            bytes_field(use, number_field(1, number) + bytes_field(2, text))
            for use, known in self._of.items()
            for text, number in known.items()
        ]
        for start in range(0, len(entries), _BATCH):
            yield _packet(_SAME_SEQUENCE + bytes_field(_INTERNED, b"".join(entries[start : start + _BATCH])))


class _Table:
    """All packets of events as columns, in the order in which they are written."""

    def __init__(self, timeline: Timeline, marks: Marks, tracks: Tracks) -> None:
        self.strings = _Strings()
        events = timeline.events
        self._events = events
        self._height = events.height
        start = events["start_ns"].to_numpy()
        end = start + events["dur_ns"].to_numpy()
        lane = lanes.assign(tracks.of_event, start, end)
        self.moved = int((lane > 0).sum())
        track = tracks.of_event.copy()
        for row in np.flatnonzero(lane).tolist():
            track[row] = tracks.lane(int(track[row]), int(lane[row]))
        own = _own_slices(marks.marks, tracks)
        samples = list(_samples(timeline, tracks))
        self._marks = marks.marks
        self._start = np.concatenate([start, own[0]])
        self._end = np.concatenate([end, own[1]])
        self._track = np.concatenate([track, own[2]])
        self._name = np.concatenate(
            [
                self.strings.column(_Strings.NAME, events["name"]),
                np.array([self.strings.number(_Strings.NAME, mark.name) for mark in marks.marks], np.int64),
            ]
        )
        self._category = np.concatenate(
            [
                self.strings.column(_Strings.CATEGORY, events["kind"]),
                np.full(len(marks.marks), self.strings.number(_Strings.CATEGORY, _OWN), np.int64),
            ]
        )
        self._sample_time = np.concatenate([one[0] for one in samples]) if samples else np.zeros(0, np.int64)
        self._sample_value = np.concatenate([one[1] for one in samples]) if samples else np.zeros(0, np.int64)
        self._sample_track = np.concatenate([one[2] for one in samples]) if samples else np.zeros(0, np.int64)
        self._texts = self._text_arguments(timeline, marks)
        self._arguments = {name: self.strings.number(_Strings.ARGUMENT, name) for name in (*_NUMBERS, *_TEXTS)}
        self._facts = [self._mark_facts(mark) for mark in marks.marks]
        self._flows(events)

    def _text_arguments(self, timeline: Timeline, marks: Marks) -> dict[str, NDArray[np.int64]]:
        """For each argument the number of its text in every event, 0 for none."""
        events = timeline.events
        ops = events["name"].gather(events["op_id"])
        facts = events.select(
            pl.when(pl.col("device").is_not_null()).then(pl.col("name").cast(pl.String)).alias("name")
        ).join(marks.kernels, on="name", how="left", maintain_order="left")
        inputs = events.select("inputs").join(timeline.inputs, on="inputs", how="left", maintain_order="left")
        columns = {
            "op": ops, "stage": marks.stages, "family": facts["family"], "implementation": facts["implementation"],
            "dims": inputs["dims"], "dtypes": inputs["dtypes"],
        }  # fmt: skip
        return {name: self.strings.column(_Strings.VALUE, column) for name, column in columns.items()}

    def _mark_facts(self, mark: Mark) -> bytes:
        return b"".join(
            bytes_field(4, number_field(1, self.strings.number(_Strings.ARGUMENT, name)) + bytes_field(6, text))
            for name, text in mark.facts.items()
        )

    def _flows(self, events: pl.DataFrame) -> None:
        """An arrow from each host call to each piece of work that it launched, numbered by the work."""
        linked = events.filter(pl.col("launch_id").is_not_null()).select("id", "launch_id").sort("launch_id", "id")
        self._launched = linked["id"].to_numpy().astype(np.int64)
        self._launching = linked["launch_id"].to_numpy().astype(np.int64)
        self._is_launched = np.zeros(self._height, bool)
        self._is_launched[self._launched] = True

    def blocks(self) -> Iterator[bytes]:
        """The packets, a block at a time."""
        slices = np.flatnonzero(self._end > self._start)
        count, samples = len(self._start), len(self._sample_time)
        row = np.concatenate([slices, np.arange(count), np.arange(samples)])
        what = np.concatenate(
            [
                np.full(len(slices), _END, np.int8),
                np.where(self._end > self._start, _BEGIN, _INSTANT).astype(np.int8),
                np.full(samples, _COUNTER, np.int8),
            ]
        )
        time = np.concatenate([self._end[slices], self._start, self._sample_time])
        # What ends at a moment comes before what begins then, and of what ends the later begun comes first.
        tie = np.where(what == _END, -row, row)
        order = np.lexsort((tie, what != _END, time))
        for at in range(0, len(order), _AT_A_TIME):
            part = order[at : at + _AT_A_TIME]
            yield self._block(row[part], what[part], time[part])

    def _block(self, row: NDArray[np.int64], what: NDArray[np.int8], time: NDArray[np.int64]) -> bytes:
        count = len(row)
        is_sample = what == _COUNTER
        track = np.empty(count, np.int64)
        track[is_sample] = self._sample_track[row[is_sample]]
        track[~is_sample] = self._track[row[~is_sample]]
        event = Rows(count)
        event.field(tag(9, 0), what.astype(np.uint8)[:, None])
        event.field(tag(11, 0), varints(track, 4))
        sampled = np.flatnonzero(is_sample)
        event.field(tag(30, 0), varints(self._sample_value[row[sampled]], 10), sampled)
        opens = np.flatnonzero((what == _BEGIN) | (what == _INSTANT))
        source = row[opens]
        event.field(tag(10, 0), varints(self._name[source], 4), opens)
        event.field(tag(3, 0), self._category[source].astype(np.uint8)[:, None], opens)
        is_event = source < self._height
        self._describe(event, opens[is_event], source[is_event])
        for at, of in zip(opens[~is_event].tolist(), source[~is_event].tolist(), strict=True):
            if facts := self._facts[of - self._height]:
                event.constant(facts, np.array([at]))
        packet = Rows(count)
        packet.field(tag(_TIMESTAMP, 0), varints(time, 9))
        packet.constant(_SAME_SEQUENCE)
        packet.within(_TRACK_EVENT, event)
        trace = Rows(count)
        trace.within(_PACKET, packet)
        return trace.tobytes()

    def _describe(self, event: Rows, at: NDArray[np.intp], source: NDArray[np.int64]) -> None:
        """Arguments and flows of events: ``at`` in this block, ``source`` in the timeline."""
        for name, numbers in self._texts.items():
            value = numbers[source]
            has = value > 0
            content = varint(self._arguments[name])
            before = tag(4, 2) + varint(len(content) + 7) + tag(1, 0) + content + tag(17, 0)
            event.field(before, varints(value[has], 4), at[has])
        rows = self._events[source]
        for name in _NUMBERS:
            column = rows[name]
            has = column.is_not_null().to_numpy()
            content = varint(self._arguments[name])
            before = tag(4, 2) + varint(len(content) + 12) + tag(1, 0) + content + tag(4, 0)
            event.field(before, varints(column.drop_nulls().cast(pl.Int64).to_numpy(), 10), at[has])
        ends = self._is_launched[source]
        event.field(tag(48, 1), fixed64(source[ends] + 1), at[ends])
        low = np.searchsorted(self._launching, source, side="left")
        high = np.searchsorted(self._launching, source, side="right")
        many = high - low
        which = np.repeat(low, many) + np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
        event.field(tag(47, 1), fixed64(self._launched[which] + 1), np.repeat(at, many))


def _own_slices(
    marks: Iterable[Mark], tracks: Tracks
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Start, end and track of traceview's own slices."""
    marks = list(marks)
    if not marks:
        nothing = np.zeros(0, np.int64)
        return nothing, nothing, nothing
    root = tracks.add(_OWN)
    own = {name: tracks.add(name, root) for name in sorted({mark.track for mark in marks})}
    start = np.array([mark.start_ns for mark in marks], np.int64)
    end = np.array([mark.end_ns for mark in marks], np.int64)
    track = np.array([own[mark.track] for mark in marks], np.int64)
    lane = lanes.assign(track, start, end)
    placed = [tracks.lane(one, at) for one, at in zip(track.tolist(), lane.tolist(), strict=True)]
    return start, end, np.array(placed, np.int64)


def _samples(
    timeline: Timeline, tracks: Tracks
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
    """Time, value and track of every sample of a counter, each counter a track for each process."""
    start = timeline.events["start_ns"]
    for name, unit, frame in counters(timeline):
        rows = frame.with_columns(
            start_ns=start.gather(frame["id"]), process=timeline.events["process"].gather(frame["id"])
        )
        for device, part in _by_device(timeline, rows):
            track = tracks.add(f"{name}{device}", counter=unit)
            yield part["start_ns"].to_numpy(), part["value"].to_numpy(), np.full(part.height, track, np.int64)


def _by_device(timeline: Timeline, rows: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Samples apart by process and by the device whose memory they count."""
    if "Device Id" in timeline.details:
        ids = timeline.details["Device Id"].rename({"value": "which"})
        rows = rows.join(ids, on="id", how="left", maintain_order="left")
    else:
        rows = rows.with_columns(which=pl.lit(None, pl.Int64))
    for (_, which), part in rows.group_by("process", "which", maintain_order=True):
        said = "" if which is None else " (host)" if int(str(which)) < 0 else f" (device {which})"
        yield said, part
