"""Whatever the bytes are, the answer is a timeline that keeps its contract or one plain error."""

from __future__ import annotations

import gzip
import os
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traceview
from sample_traces import make_xprof
from sample_traces.xspace_bytes import Instruction, Space, blob, number, program, varint
from traceview.errors import TraceviewError
from traceview.parsers.xprof import columns, wire
from traceview.parsers.xprof.hlo import read_program
from traceview.parsers.xprof.space import read_space

WHOLE = make_xprof.authored()


def outcome(path, data: bytes) -> str:
    path.write_bytes(data)
    try:
        timeline = traceview.load(path)
        timeline.validate()
    except TraceviewError as error:
        return error.code if len(str(error)) < 600 else "wordy"
    return "read"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "host.xplane.pb"


def test_changed_bytes(path):
    rng = np.random.default_rng(7)
    codes = set()
    for _ in range(25):
        data = bytearray(WHOLE)
        for _ in range(int(rng.integers(1, 8))):
            data[int(rng.integers(len(data)))] = int(rng.integers(256))
        codes.add(outcome(path, bytes(data)))
    assert "read" in codes
    assert "wordy" not in codes


def test_cut_anywhere(path):
    cuts = [*range(0, 200, 9), *range(200, len(WHOLE), 993)]
    codes = [outcome(path, WHOLE[:cut]) for cut in cuts]
    assert codes[0] == "empty-file"
    assert {"xplane-damaged", "read"} <= set(codes)


def test_bytes_swapped_in_and_out(path):
    rng = np.random.default_rng(3)
    for _ in range(30):
        at, length = int(rng.integers(len(WHOLE))), int(rng.integers(1, 60))
        outcome(path, WHOLE[:at] + rng.bytes(length) + WHOLE[at + int(rng.integers(0, 60)) :])


@pytest.mark.parametrize(
    "body",
    [
        varint(1 << 3 | 2) + varint((1 << 64) - 1),
        varint(1 << 3 | 2) + varint(1 << 62) + b"abc",
        blob(1, blob(2, "/host:CPU") + varint(3 << 3 | 2) + varint((1 << 63) + 5)),
        blob(1, blob(2, "/host:CPU") + blob(3, blob(4, varint(4 << 3 | 2) + varint((1 << 64) - 1)))),
        blob(1, blob(2, "/host:CPU") + blob(3, blob(4, b"\xff" * 40))),
        blob(1, blob(2, "/host:CPU") + blob(3, b"\x80" * 30)),
        blob(1, blob(2, "/host:CPU") + b"\x1b\x1c"),
    ],
    ids=["length of all bits", "length beyond the file", "line beyond the file", "stat beyond its event", "number without end",
         "line without end", "group"],
)  # fmt: skip
def test_lengths_and_numbers_that_lie(path, body):
    assert outcome(path, blob(1, blob(2, "/host:CPU")) + body) in ("read", "xplane-damaged")


def test_extreme_times(path):
    space = Space()
    plane = space.plane("/device:TPU:0")
    line = plane.line("XLA Ops", -(1 << 63), timestamp_ns=(1 << 63) - 1)
    for offset, duration in [(0, 0), ((1 << 63) - 1, (1 << 63) - 1), (-1, 5), (1 << 62, 1 << 62), (5, -(1 << 63))]:
        line.events.append(number(1, plane.name_id("op")) + number(2, offset) + number(3, duration))
    assert outcome(path, space.encode()) == "read"


def test_programs_that_call_and_stack_in_circles():
    """A fusion that is made of itself, and frames that are each other's parents, end."""
    text = program("jit_f", {"a": [Instruction("f", "fusion", (2, 2), ("f",), called="a")]}, entry="a")
    frame = lambda parent: blob(4, number(1, 1) + number(2, parent))  # noqa: E731  # two lines of one shape
    text += blob(1, blob(17, blob(1, "x.py") + blob(3, number(1, 1) + number(3, 4)) + frame(2) + frame(1)))
    made = read_program(text, 0, len(text))
    (instruction,) = made.by_name.values()
    instruction.frame = 1
    assert made.stack(instruction) == ["x.py:4", "x.py:4"]
    assert made.inside(instruction) == [instruction]
    from traceview.parsers.xprof.attention_chains import chains

    assert chains(made) == {}


def test_a_gzip_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("traceview.parsers.kineto.source.FREE_BYTES", 1 << 20)
    path = tmp_path / "host.xplane.pb.gz"
    big = blob(1, blob(2, "/host:CPU") + blob(3, bytes(64)))
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(big[:64])
        for _ in range(8):
            file.write(bytes(1 << 20))
    with pytest.raises(TraceviewError) as caught:
        traceview.load(path)
    assert caught.value.code == "too-large"


def test_a_packed_space_is_read(tmp_path):
    path = tmp_path / "host.xplane.pb.gz"
    path.write_bytes(gzip.compress(WHOLE))
    timeline = traceview.load(path)
    timeline.validate()
    assert timeline.events.height == 133
    assert "op_name" in timeline.details
    path.write_bytes(gzip.compress(WHOLE)[:-60])
    assert traceview.load(path).report.truncated


def test_beyond_two_gigabytes(tmp_path):
    """Positions of 64 bits throughout. The file is sparse: one plane claims 2.2 GB of nothing."""
    path = tmp_path / "host.xplane.pb"
    size = 2_200_000_000
    inner = varint(1 << 3) + varint(1) + varint(6 << 3 | 2) + varint(size)
    stat = varint(6 << 3 | 2) + varint(len(inner) + size) + inner
    plane = blob(2, "/host:CPU") + stat
    with path.open("wb") as file:
        file.write(varint(1 << 3 | 2) + varint(len(plane) + size) + plane)
        file.seek(size, os.SEEK_CUR)
        file.write(WHOLE)
    timeline = traceview.load(path)
    assert path.stat().st_size > 2**31
    assert timeline.events.height == 133
    assert '"jit(train_step)/psum"' in timeline.details["op_name"]["value"].to_list()


@given(st.lists(st.integers(0, (1 << 64) - 1), min_size=1, max_size=30), st.integers(0, 3))
def test_numbers_read_one_by_one_and_all_at_once(values, cut):
    data = b"".join(varint(value) for value in values)
    starts = np.cumsum([0, *(len(varint(value)) for value in values)])[:-1].astype(np.int64)
    end = len(data) - min(cut, len(varint(values[-1])) - 1)
    found, behind, sound = wire.varints(np.frombuffer(data, np.uint8), starts, np.full(len(values), end, np.int64))
    for index, value in enumerate(values):
        try:
            wanted = wire.varint(data, int(starts[index]), end)
        except wire.WireError:
            assert not sound[index]
        else:
            assert sound[index]
            assert (int(found[index]), int(behind[index])) == wanted == (value, int(starts[index]) + len(varint(value)))


@given(st.binary(max_size=120))
def test_any_bytes_as_a_line(data):
    octets = np.frombuffer(data, np.uint8)
    try:
        portable = columns.read_line_portable(data, octets, 0, len(data))
    except wire.WireError as error:
        portable = error.at
    try:
        found = columns.read_line(data, octets, 0, len(data))
    except wire.WireError as error:
        found = error.at
    if isinstance(portable, int) or isinstance(found, int):
        assert portable == found
    else:
        assert portable.own == found.own
        assert portable.events.metadata_id.tolist() == found.events.metadata_id.tolist()
        assert portable.events.stat_value.tolist() == found.events.stat_value.tolist()


@given(st.binary(max_size=200))
def test_any_bytes_as_a_space(data):
    space = read_space(data) if data else None
    assert space is None or all(len(plane.name_of) == len(plane.offset_ps) for plane in space.planes)


@given(st.floats())
def test_doubles_keep_their_bits(value):
    space = Space()
    space.plane("/host:CPU").line("python", 1).event("a", 0, 1, x=float(value))
    (plane,) = read_space(space.encode()).planes
    assert plane.columns["x"].value.tolist() == [struct.unpack("<Q", struct.pack("<d", value))[0]]
