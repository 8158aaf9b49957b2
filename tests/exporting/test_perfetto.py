"""A Perfetto trace as the message types of the package `perfetto` read it."""

from __future__ import annotations

import io
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from authored_timeline import host, kernel, launch, op, timeline
from same_timeline import sample_inputs
from traceview import load
from traceview.errors import TraceviewError
from traceview.exporting import lanes, perfetto, records
from traceview.exporting.marks import find_marks, no_marks

messages = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


@dataclass
class Slice:
    track: int
    name: str
    category: str
    start: int
    end: int
    arguments: dict
    out: list
    into: list


@dataclass
class Read:
    tracks: dict = field(default_factory=dict)
    slices: list = field(default_factory=list)
    samples: list = field(default_factory=list)

    def path(self, uuid):
        track = self.tracks[uuid]
        return (*(self.path(track.parent_uuid) if track.parent_uuid else ()), track.name)


def read(data):
    """Everything in a trace; fails if an end has no begin, or slices of a track do not nest."""
    trace = messages.Trace()
    trace.ParseFromString(data)
    found, open_slices, last = Read(), defaultdict(list), -1
    words = {name: {} for name in ("event_categories", "event_names", "debug_annotation_names")}
    texts = {}
    for packet in trace.packet:
        assert packet.trusted_packet_sequence_id == 1
        for name, known in words.items():
            known.update({one.iid: one.name for one in getattr(packet.interned_data, name)})
        texts.update({one.iid: one.str.decode() for one in packet.interned_data.debug_annotation_string_values})
        if packet.HasField("track_descriptor"):
            assert packet.track_descriptor.uuid not in found.tracks
            found.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        assert packet.timestamp >= last
        last = packet.timestamp
        if event.type == END:
            open_slices[event.track_uuid].pop().end = packet.timestamp
        elif event.type == COUNTER:
            found.samples.append((event.track_uuid, packet.timestamp, event.counter_value))
        else:
            arguments = {}
            for one in event.debug_annotations:
                kind = one.WhichOneof("value")
                value = texts[one.string_value_iid] if kind == "string_value_iid" else getattr(one, kind)
                arguments[words["debug_annotation_names"][one.name_iid]] = value
            made = Slice(
                event.track_uuid, words["event_names"][event.name_iid],
                words["event_categories"][event.category_iids[0]], packet.timestamp, packet.timestamp, arguments,
                list(event.flow_ids), list(event.terminating_flow_ids),
            )  # fmt: skip
            found.slices.append(made)
            if event.type == BEGIN:
                open_slices[event.track_uuid].append(made)
    assert not any(open_slices.values())
    assert {one.track for one in found.slices} <= set(found.tracks)
    return found


def exported(whole, marks=None):
    out = io.BytesIO()
    moved = perfetto.write(whole, marks or find_marks(whole), out)
    return read(out.getvalue()), moved


def assert_all_there(whole, found):
    """Every event is one slice with its time, name, kind and links."""
    own = [one for one in found.slices if one.category != "traceview"]
    events = whole.events
    assert len(own) == events.height
    assert sum(one.end - one.start for one in own) == events["dur_ns"].sum()
    by_id = {one.arguments["id"]: one for one in own}
    assert len(by_id) == events.height
    columns = events.select(
        "id", "start_ns", "dur_ns", pl.col("name").cast(pl.String), pl.col("kind").cast(pl.String), "launch_id",
        "correlation", "bytes", "step",
    )  # fmt: skip
    launched = Counter()
    for row in columns.iter_rows(named=True):
        one = by_id[row["id"]]
        assert (one.start, one.end - one.start) == (row["start_ns"], row["dur_ns"])
        assert (one.name, one.category) == (row["name"], row["kind"])
        for name in ("launch_id", "correlation", "bytes", "step"):
            assert one.arguments.get(name) == row[name]
        if row["launch_id"] is None:
            assert one.into == []
        else:
            assert one.into == [row["id"] + 1]
            assert row["id"] + 1 in by_id[row["launch_id"]].out
            launched[row["launch_id"]] += 1
    assert {key: len(one.out) for key, one in by_id.items() if one.out} == dict(launched)


@pytest.mark.parametrize("path", sample_inputs(), ids=lambda path: path.name)
def test_every_sample_is_exported_whole(path):
    whole = load(path)
    marks = find_marks(whole)
    found, moved = exported(whole, marks)
    assert_all_there(whole, found)
    assert sum(one.category == "traceview" for one in found.slices) == len(marks.marks)
    beside = {uuid for uuid, track in found.tracks.items() if "(overlapping, " in track.name}
    assert sum(one.track in beside and one.category != "traceview" for one in found.slices) == moved


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["pytorch", "nsys", "xprof"])
def test_every_real_trace_is_exported_whole(folder, corpus):
    count = 0
    for path in sorted((corpus / folder).iterdir()):
        if path.stat().st_size > (120_000 if folder == "pytorch" else 900_000):
            continue
        try:
            whole = load(path)
        except TraceviewError:
            continue
        if whole.events.height > 7_000:
            continue  # Reading messages one by one takes a second for 20,000 of them.
        out = io.BytesIO()
        perfetto.write(whole, no_marks(whole), out)
        assert_all_there(whole, read(out.getvalue()))
        count += 1
    assert count >= 2


def test_tracks_arguments_and_arrows():
    whole = timeline(
        op("aten::mm", 0, 10, thread=0, dims=[[2, 3]], dtypes=["float"]),
        launch(1, 7, thread=0),
        kernel("ampere_sgemm_32x32_sliced1x4_nn", 20, 30, 7, stream=7),
        kernel("other", 20, 25, None, device=1, stream=3),
    )
    found, moved = exported(whole)
    assert moved == 0
    paths = {one.name: found.path(one.track) for one in found.slices if one.category != "traceview"}
    assert paths == {
        "aten::mm": ("process", "thread"),
        "cudaLaunchKernel": ("process", "thread"),
        "ampere_sgemm_32x32_sliced1x4_nn": ("device 0: NVIDIA H100", "stream 7"),
        "other": ("device 1: NVIDIA H100", "stream 3"),
    }
    thread = next(track for track in found.tracks.values() if track.HasField("thread"))
    assert (thread.thread.pid, thread.thread.tid, thread.thread.thread_name) == (100, 1000, "thread")
    gemm = next(one for one in found.slices if one.name.startswith("ampere"))
    assert gemm.arguments["op"] == "aten::mm"
    assert gemm.arguments["family"] == "gemm"
    assert next(one for one in found.slices if one.name == "aten::mm").arguments["dims"] == "[[2, 3]]"


def test_overlapping_slices_lie_beside_their_track():
    whole = timeline(
        kernel("a", 0, 10), kernel("b", 5, 15), kernel("c", 6, 20), kernel("d", 15, 16), kernel("e", 15, 15)
    )
    found, moved = exported(whole)
    names = {one.name: found.path(one.track)[1:] for one in found.slices if one.category == "kernel"}
    assert names == {
        "a": ("stream 7",), "b": ("stream 7 (overlapping, 2)",), "c": ("stream 7 (overlapping, 3)",),
        "d": ("stream 7",), "e": ("stream 7",),
    }  # fmt: skip
    assert moved == 2


def test_findings_and_stages_have_tracks(tmp_path):
    sample = next(path for path in sample_inputs() if path.name.startswith("flash-requested-math"))
    found, _ = exported(load(sample))
    own = defaultdict(list)
    for one in found.slices:
        if one.category == "traceview":
            own[found.path(one.track)].append(one)
    (finding, *_) = own["traceview", "findings"]
    assert finding.name.startswith("TV102: 6 SDPA calls fell back to math")
    assert finding.arguments["severity"] == "error"
    assert {"evidence", "fix", "wrong if"} <= set(finding.arguments)
    assert {one.name for one in own["traceview", "stages"]}


def test_memory_is_a_counter():
    rows = [(at, 100 * at, device) for at, device in ((0, -1), (1, 0), (2, 0))]
    allocated = pl.DataFrame([row[:2] for row in rows], schema={"id": pl.UInt32, "value": pl.Int64}, orient="row")
    device = pl.DataFrame([row[::2] for row in rows], schema={"id": pl.UInt32, "value": pl.Int64}, orient="row")
    whole = timeline(*(host("counter", "[memory]", at, at, thread=0) for at in (5, 6, 7)))
    found, _ = exported(replace(whole, details={"Total Allocated": allocated, "Device Id": device}))
    samples = [(found.tracks[uuid].name, *rest) for uuid, *rest in found.samples]
    assert samples == [
        ("Total Allocated (host)", 5000, 0), ("Total Allocated (device 0)", 6000, 100), ("Total Allocated (device 0)", 7000, 200),
    ]  # fmt: skip


def test_two_files_share_no_process():
    sample = next(path for path in sample_inputs() if path.name == "two-ranks")
    whole = load(sample)
    found, _ = exported(whole, no_marks(whole))
    processes = [track for track in found.tracks.values() if track.HasField("process")]
    assert len({track.process.pid for track in processes}) == len(processes) == whole.processes.height
    assert {track.name.split(" ")[0] + track.name.split(" ")[1] for track in processes} == {"rank0", "rank1"}


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 12)), max_size=25))
def test_slices_of_a_lane_nest(rows):
    rows = sorted(rows, key=lambda row: (row[1], -row[2]))
    track, start, length = (np.array([row[at] for row in rows], np.int64) for at in range(3))
    lane = lanes.assign(track, start, start + length)
    for key in set(zip(track.tolist(), lane.tolist(), strict=True)):
        open_ends = []
        for one in np.flatnonzero((track == key[0]) & (lane == key[1])):
            begin, end = int(start[one]), int(start[one] + length[one])
            if begin == end:
                continue
            while open_ends and open_ends[-1] <= begin:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1]
            open_ends.append(end)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5))
def test_padded_numbers_are_read_as_they_are(numbers):
    rows = records.Rows(len(numbers))
    rows.field(records.tag(4, records.VARINT), records.varints(np.array(numbers, np.int64), 10))
    data = rows.tobytes()
    width = len(data) // len(numbers)
    for at, number in enumerate(numbers):
        one = messages.DebugAnnotation()
        one.ParseFromString(data[at * width : (at + 1) * width])
        assert one.int_value == number
