"""The reader says the same as protobuf, for every plane, line, event and stat of real profiles."""

from __future__ import annotations

import importlib.util
import struct
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("google.protobuf")

from traceview.parsers.xprof import columns
from traceview.parsers.xprof.space import read_space
from traceview.parsers.xprof.wire import fields

_spec = importlib.util.spec_from_file_location("xspace_oracle", Path(__file__).with_name("xspace_oracle.py"))
oracle = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(oracle)

REAL = ["jax-conv-legacy-mi300", "jax08-gemm-mi300", "tf-bert-v100-multi-worker", "tpu-v6e-inference"]
KINDS = {
    "double_value": 2,
    "uint64_value": 3,
    "int64_value": 4,
    "str_value": 5,
    "bytes_value": 6,
    "ref_value": 7,
    "compressed_str_value": 8,
}


def as_bits(kind: str, value) -> int:
    if kind == "double_value":
        return struct.unpack("<Q", struct.pack("<d", value))[0]
    return value & (1 << 64) - 1


def stats_of(stats, names) -> dict[str, tuple[int, int | bytes]]:
    told = {}
    for stat in stats:
        kind, value = oracle.value(stat)
        if kind:
            name = names.get(stat.metadata_id, f"stat {stat.metadata_id}")
            told.setdefault(name, (KINDS[kind], value if isinstance(value, bytes) else as_bits(kind, value)))
    return told


@pytest.fixture(params=[True, False], ids=["compiled", "portable"])
def lane(request, monkeypatch):
    if request.param and not columns.COMPILED:
        pytest.skip("no compiled scanner in this installation")
    if not request.param:
        monkeypatch.setattr(columns, "_wire", None)


@pytest.mark.parametrize("name", REAL)
def test_every_plane_line_event_and_stat(profiles, name, lane):
    data = (profiles / f"{name}.xplane.pb").read_bytes()
    space, truth = read_space(data), oracle.read(data)
    assert space.cut_at is None
    assert space.losses.counts == {}
    assert [plane.name for plane in space.planes] == [plane.name.decode("utf-8", "replace") for plane in truth.planes]
    for plane, wanted in zip(space.planes, truth.planes, strict=True):
        stat_names = {entry.key: entry.value.name.decode("utf-8", "replace") for entry in wanted.stat_metadata}
        by_key = {entry.key: entry.value for entry in wanted.event_metadata}
        assert set(plane.stats) == set(stats_of(wanted.stats, stat_names))
        assert [line.id for line in plane.lines] == [line.id for line in wanted.lines]
        assert [line.timestamp_ns for line in plane.lines] == [line.timestamp_ns for line in wanted.lines]
        events = [event for line in wanted.lines for event in line.events]
        assert len(plane) == len(events)
        assert plane.offset_ps.tolist() == [event.offset_ps for event in events]
        assert plane.duration_ps.tolist() == [event.duration_ps for event in events]
        named = [by_key.get(event.metadata_id) for event in events]
        assert [plane.names[i].name for i in plane.name_of] == [
            "" if one is None else one.name.decode("utf-8", "replace") for one in named
        ]
        assert [plane.names[i].display_name for i in plane.name_of] == [
            "" if one is None else one.display_name.decode() for one in named
        ]
        same_event_stats(data, plane, events, stat_names)
        for entry, index in zip(wanted.event_metadata, range(len(wanted.event_metadata)), strict=True):
            told = stats_of(entry.value.stats, stat_names)
            assert {name: stat.kind for name, stat in plane.names[index].stats.items()} == {
                name: kind for name, (kind, _) in told.items()
            }


def same_event_stats(data, plane, events, stat_names):
    wanted: dict[str, dict[int, tuple]] = {}
    for row, event in enumerate(events):
        for name, value in stats_of(event.stats, stat_names).items():
            wanted.setdefault(name, {})[row] = value
    assert set(plane.columns) == set(wanted)
    for name, by_row in wanted.items():
        column = plane.columns[name]
        found = {}
        for row, kind, value, length in zip(
            *(getattr(column, part).tolist() for part in ("row", "kind", "value", "length")), strict=True
        ):
            found[row] = (kind, data[value : value + length] if kind in (5, 6, 8) else value)
        assert found == by_row, name


def test_the_two_scanners_agree_on_damaged_lines(profiles):
    """Bytes of real lines, changed at random: the same events, stats and losses, or the same refusal."""
    if not columns.COMPILED:
        pytest.skip("no compiled scanner in this installation")
    data = (profiles / "jax08-gemm-mi300.xplane.pb").read_bytes()
    rng = np.random.default_rng(1)
    whole = np.frombuffer(data, np.uint8)
    lines = [
        (start, end)
        for number, _, at, behind in fields(data, 0, len(data)) if number == 1
        for inner, _, start, end in fields(data, at, behind) if inner == 3
    ]  # fmt: skip
    read = refused = lost = 0
    for round_ in range(600):
        start, end = lines[round_ % len(lines)]
        piece = whole[start : min(end, start + 6000)].copy()
        for _ in range(int(rng.integers(0, 4))):
            piece[int(rng.integers(len(piece)))] = int(rng.integers(256))
        found = outcome(columns.read_line, piece)
        assert found == outcome(columns.read_line_portable, piece)
        refused += isinstance(found, int)
        read += not isinstance(found, int)
        lost += not isinstance(found, int) and sum(found[-3:]) > 0
    # Without all three the comparison would prove little.
    assert min(read, refused, lost) > 20


def outcome(read, piece):
    try:
        content = read(piece.tobytes(), piece, 0, len(piece))
    except columns.WireError as error:
        return error.at
    events = content.events
    return (
        content.own, events.metadata_id.tolist(), events.offset_ps.tolist(), events.duration_ps.tolist(),
        events.stat_event.tolist(), events.stat_id.tolist(), events.stat_kind.tolist(), events.stat_value.tolist(),
        events.stat_length.tolist(), events.lost_events, events.lost_stats, events.aggregated,
    )  # fmt: skip
