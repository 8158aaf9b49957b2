"""A timeline as Chrome trace JSON, in the words of the PyTorch profiler, so that viewers and traceview read it.

Source of the form: "Trace Event Format" (the document that chrome://tracing links to), and the keys that Kineto writes
(``libkineto/src/output_json.cpp``). Kinds that Kineto has no word for keep their own; see ``docs/commands/convert.md``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import numpy as np
import polars as pl

from traceview.exporting import lanes
from traceview.exporting.tracks import Tracks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.exporting.marks import Marks
    from traceview.exporting.tracks import Track
    from traceview.timeline import Timeline

_ROWS: Final = 1 << 16
_HOST: Final = {
    "op": "cpu_op", "api": "cuda_runtime", "sync": "cuda_runtime", "annotation": "user_annotation",
    "python": "python_function", "counter": "cpu_instant_event", "compile": "user_annotation",
}  # fmt: skip
_DEVICE: Final = {
    "collective": "kernel", "xla_op": "kernel", "graph": "kernel", "memcpy": "gpu_memcpy", "memset": "gpu_memset",
    "annotation": "gpu_user_annotation", "sync": "cuda_sync",
}  # fmt: skip
"""Kind to category; a kind that is missing is its own."""
_INPUTS: Final = {
    "dims": "Input Dims", "dtypes": "Input type", "strides": "Input Strides", "concrete": "Concrete Inputs",
}  # fmt: skip
_PLAIN: Final = (str, int, float, bool)


def write(timeline: Timeline, marks: Marks, out: BinaryIO) -> int:
    """Write a trace.

    Args:
        timeline: With launches linked.
        marks: Stages and kernels become arguments of the events; tracks of traceview's own are left out.
        out: Where to; written from front to back.

    Returns:
        How many slices lie on a track of their own because they overlap others of theirs without nesting.
    """
    tracks = Tracks(timeline)
    events = timeline.events
    start = events["start_ns"].to_numpy()
    lane = lanes.assign(tracks.of_event, start, start + events["dur_ns"].to_numpy())
    track = tracks.of_event.copy()
    for row in np.flatnonzero(lane).tolist():
        track[row] = tracks.lane(int(track[row]), int(lane[row]))
    places = _places(tracks.tracks)
    out.write(_head(timeline))
    out.write(",\n".join(_names(tracks.tracks, places)).encode())
    place = pl.DataFrame(
        {"pid": [places[one][0] for one in track.tolist()], "tid": [places[one][1] for one in track.tolist()]},
        schema={"pid": pl.Int64, "tid": pl.Int64},
    )
    arguments = _Arguments(timeline, marks)
    for at in range(0, events.height, _ROWS):
        lines = _lines(events.slice(at, _ROWS), place.slice(at, _ROWS), arguments.part(at, _ROWS))
        out.write(_joined(lines))
    for lines in _flows(events, place):
        out.write(_joined(lines))
    out.write(b"\n]}\n")
    return int((lane > 0).sum())


def _joined(lines: pl.Series) -> bytes:
    return "".join(f",\n{line}" for line in lines).encode("utf-8", "replace")


def _head(timeline: Timeline) -> bytes:
    """Everything before the events: what the recording says of itself, and the devices."""
    run = timeline.runs[0]
    head: dict[str, Any] = {"schemaVersion": 1}
    head |= {key: value for key, value in run.metadata.items() if isinstance(value, _PLAIN)}
    if len(timeline.runs) == 1 and run.rank is not None:
        head["distributedInfo"] = {"rank": run.rank, "world_size": run.world_size}
    columns = {"ordinal": "id", "name": "name", "compute_major": "computeMajor", "compute_minor": "computeMinor",
               "memory_bytes": "totalGlobalMem", "sm_count": "numSms"}  # fmt: skip
    devices = timeline.devices.unique("ordinal", keep="first", maintain_order=True)
    head["deviceProperties"] = [
        {key: row[column] for column, key in columns.items() if row[column] is not None}
        for row in devices.iter_rows(named=True)
    ]
    if run.origin_unix_ns is not None:
        head["baseTimeNanoseconds"] = run.origin_unix_ns
    head["displayTimeUnit"] = "ns"
    return json.dumps(head)[:-1].encode() + b', "traceEvents": [\n'


def _places(tracks: list[Track]) -> dict[int, tuple[int, int]]:
    """Process and thread number of each track; those of no process get numbers that no process has."""
    used = {track.pid for track in tracks if track.pid is not None}
    own: dict[int, int] = {}
    places = {}
    for track in tracks:
        root = track
        while root.parent:
            root = tracks[root.parent - 1]
        if root.pid is not None:
            pid = root.pid
        else:
            # Small numbers, as the profiler gives its devices.
            pid = own.get(root.uuid, -1)
            if pid < 0:
                pid = next(number for number in range(len(used) + len(own) + 1) if number not in used)
                own[root.uuid] = pid
                used.add(pid)
        places[track.uuid] = (pid, track.tid if track.tid is not None else (1 << 40) + track.uuid)
    return places


def _names(tracks: list[Track], places: dict[int, tuple[int, int]]) -> Iterator[str]:
    for track in tracks:
        pid, tid = places[track.uuid]
        whole = not track.parent
        event = {"ph": "M", "name": "process_name" if whole else "thread_name", "pid": pid, "tid": 0 if whole else tid}
        yield json.dumps({**event, "ts": 0, "args": {"name": track.name}})


class _Arguments:
    """The arguments of the events as text: what was recorded, then what traceview found."""

    def __init__(self, timeline: Timeline, marks: Marks) -> None:
        self._timeline, self._marks = timeline, marks
        details = timeline.details
        read = getattr(details, "read", details.__getitem__)
        self._details = []
        taken = set(_INPUTS.values()) | {"correlation", "device", "stream", "bytes", "flops"}
        for key in details:
            name = key.removesuffix(" (text)")
            if name in taken:
                continue
            frame = read(key)
            if frame.schema["value"] == pl.Categorical:
                frame = frame.with_columns(_texts(frame["value"]))
            self._details.append((name, frame["id"].to_numpy(), frame["value"]))

    def part(self, at: int, count: int) -> pl.Series:
        events = self._timeline.events.slice(at, count)
        columns: list[pl.Series] = [
            events[name].cast(pl.String).alias(name) for name in ("correlation", "bytes", "flops")
        ]
        ordinal = self._timeline.devices.select("device", "ordinal")
        device = events.select("device").join(ordinal, on="device", how="left", maintain_order="left")["ordinal"]
        columns += [device.cast(pl.String).alias("device"), events["stream"].cast(pl.String)]
        inputs = events.select("inputs").join(self._timeline.inputs, on="inputs", how="left", maintain_order="left")
        columns += [inputs[column].alias(name) for column, name in _INPUTS.items()]
        for name, ids, values in self._details:
            low, high = (int(one) for one in np.searchsorted(ids, [at, at + events.height]))
            if low < high:
                texts = values.slice(low, high - low).cast(pl.String)
                frame = pl.DataFrame({"row": ids[low:high] - np.uint32(at), "text": texts})
                rows = pl.DataFrame({"row": np.arange(events.height, dtype=np.uint32)})
                frame = frame.unique("row", keep="first")
                columns.append(rows.join(frame, on="row", how="left", maintain_order="left")["text"].alias(name))
        recorded = {name for name, *_ in self._details}
        columns += [column for column in self._found(events, at) if column.name not in recorded]
        pairs = [
            pl.when(column.is_not_null())
            .then(pl.concat_str(pl.lit(f"{json.dumps(column.name)}: "), pl.lit(column)))
            .alias(str(number))
            for number, column in enumerate(columns)
        ]
        frame = events.select(pairs)
        return frame.select(pl.concat_str(pl.all(), separator=", ", ignore_nulls=True)).to_series().fill_null("")

    def _found(self, events: pl.DataFrame, at: int) -> list[pl.Series]:
        op = self._timeline.events["name"].gather(events["op_id"])
        device_name = events.select(pl.when(pl.col("device").is_not_null()).then(pl.col("name").cast(pl.String)))
        facts = device_name.join(self._marks.kernels, on="name", how="left", maintain_order="left")
        return [
            _quoted(op).alias("op"), _quoted(self._marks.stages.slice(at, events.height)).alias("stage"),
            _quoted(facts["family"]).alias("family"), _quoted(facts["implementation"]).alias("implementation"),
        ]  # fmt: skip


def _quoted(texts: pl.Series) -> pl.Series:
    """Each text as JSON."""
    return _each(texts, json.dumps)


def _texts(values: pl.Series) -> pl.Series:
    """Details that are JSON text as they are; a recorded text that is no JSON (NaN, for one) in quotes."""

    def checked(text: str) -> str:
        try:
            json.loads(text, parse_constant=_refuse)
        except (ValueError, RecursionError):
            return json.dumps(text)
        return text.replace("\n", " ")

    return _each(values, checked)


def _refuse(name: str) -> None:
    raise ValueError(name)


def _each(texts: pl.Series, change: Any) -> pl.Series:
    """A function of each distinct text."""
    distinct = texts.unique().drop_nulls().cast(pl.String)
    table = pl.DataFrame({"old": distinct, "new": pl.Series([change(text) for text in distinct], dtype=pl.String)})
    joined = texts.cast(pl.String).alias("old").to_frame().join(table, on="old", how="left", maintain_order="left")
    return joined["new"].alias(texts.name)


def _us(column: str) -> pl.Expr:
    """Nanoseconds as microseconds with three places, exactly."""
    value = pl.col(column)
    return pl.concat_str((value // 1000).cast(pl.String), pl.lit("."), (value % 1000).cast(pl.String).str.zfill(3))


def _lines(events: pl.DataFrame, place: pl.DataFrame, arguments: pl.Series) -> pl.Series:
    on_host = pl.col("device").is_null()
    kind = pl.col("kind").cast(pl.String)
    category = pl.when(on_host).then(kind.replace(_HOST)).otherwise(kind.replace(_DEVICE))
    instant = on_host & (kind == "counter") & (pl.col("dur_ns") == 0)
    frame = events.hstack([_quoted(events["name"]).alias("label"), arguments.alias("args"), *place.get_columns()])
    return frame.select(
        pl.concat_str(
            pl.when(instant).then(pl.lit('{"ph": "i", "s": "t", "cat": "')).otherwise(pl.lit('{"ph": "X", "cat": "')),
            category, pl.lit('", "name": '), "label", pl.lit(', "pid": '), "pid", pl.lit(', "tid": '), "tid",
            pl.lit(', "ts": '), _us("start_ns"),
            pl.when(instant).then(pl.lit("")).otherwise(pl.concat_str(pl.lit(', "dur": '), _us("dur_ns"))),
            pl.lit(', "args": {'), "args", pl.lit("}}"),
        )
    ).to_series()  # fmt: skip


def _flows(events: pl.DataFrame, place: pl.DataFrame) -> Iterator[pl.Series]:
    """An arrow from each launching call to each piece of work, numbered by the work."""
    linked = events.select("id", "launch_id", "start_ns").hstack(place).filter(pl.col("launch_id").is_not_null())
    for at in range(0, linked.height, _ROWS):
        part = linked.slice(at, _ROWS)
        launches = part["launch_id"]
        begins = part.select("id").with_columns(
            start_ns=events["start_ns"].gather(launches), pid=place["pid"].gather(launches),
            tid=place["tid"].gather(launches),
        )  # fmt: skip
        for phase, rows in (('"s"', begins), ('"f", "bp": "e"', part)):
            yield rows.select(
                pl.concat_str(
                    pl.lit(f'{{"ph": {phase}, "cat": "ac2g", "name": "ac2g", "id": '), "id", pl.lit(', "pid": '), "pid",
                    pl.lit(', "tid": '), "tid", pl.lit(', "ts": '), _us("start_ns"), pl.lit("}"),
                )
            ).to_series()  # fmt: skip
