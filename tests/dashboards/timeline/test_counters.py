"""Values over time: which counters a trace has, and that thinning loses no peak."""

from __future__ import annotations

import json

import polars as pl
import pytest

from traceview import load
from traceview.dashboards.timeline.counters import MOST_POINTS, SAMPLES, counters
from traceview.dashboards.timeline.lanes import draw
from traceview.dashboards.timeline.payload import payload


def memory(at, total, reserved, *, device, pid=1):
    args = {"Total Allocated": total, "Total Reserved": reserved, "Device Id": device, "Device Type": int(device >= 0)}
    return {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": pid, "tid": 1, "ts": at, "args": args}


def value(at, name, **args):
    return {"ph": "C", "name": name, "pid": 1, "tid": 1, "ts": at, "args": args}


@pytest.fixture
def loaded(tmp_path):
    def get(*events):
        op = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0.0, "dur": 1000.0}
        path = tmp_path / "counters.json"
        path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [op, *events]}))
        return load(path)

    return get


def values(found, number):
    return found.samples.filter(pl.col("series") == number).select("at", "value").rows()


def test_memory_is_a_counter_for_each_device_and_one_that_never_changes_is_none(loaded):
    found = counters(
        loaded(
            memory(10.0, 100, 512, device=0), memory(20.0, 300, 512, device=0), memory(30.0, 200, 512, device=0),
            memory(15.0, 8, 0, device=-1), memory(25.0, 0, 0, device=-1),
        )
    )  # fmt: skip
    SAMPLES.validate(found.samples)
    assert [(one.label, one.unit, one.least, one.most, one.events) for one in found.series] == [
        ("device 0 memory · allocated", "bytes", 100.0, 300.0, 3),
        ("host memory · allocated", "bytes", 0.0, 8.0, 2),
    ]
    assert values(found, 0) == [(10_000.0, 100.0), (20_000.0, 300.0), (30_000.0, 200.0)]
    assert found.drawn == 5


def test_any_counter_with_numbers_is_one_and_words_are_none(loaded):
    timeline = loaded(
        value(10.0, "GPU power", watt=100.5), value(20.0, "GPU power", watt=250),
        value(10.0, "state", of="idle"), value(20.0, "state", of="busy"), value(5.0, "once", n=1),
    )  # fmt: skip
    found = counters(timeline)
    assert [(one.label, one.unit, one.most) for one in found.series] == [("GPU power · watt", "", 250.0)]
    drawing = draw(timeline)
    assert drawing.left_out == {"counter": 3}
    sent = payload(drawing, trace="t")
    assert sent["counters"] == [
        {"label": "GPU power · watt", "unit": "", "least": 100.5, "most": 250.0, "events": 2},
    ]
    assert sent["samples"].height == 2


def test_the_memory_of_two_processes_is_told_apart(loaded):
    found = counters(loaded(*(memory(at, at * pid, 0, device=0, pid=pid) for pid in (1, 2) for at in (10.0, 20.0))))
    assert [one.label for one in found.series] == [f"process {pid} · device 0 memory · allocated" for pid in (1, 2)]


def test_of_many_samples_every_peak_is_kept(loaded):
    many = [memory(1.0 + at, 1_000 + at % 7, 0, device=0) for at in range(3 * MOST_POINTS)]
    many[4321]["args"]["Total Allocated"] = 10**12
    many[1234]["args"]["Total Allocated"] = 1
    found = counters(loaded(*many))
    kept = values(found, 0)
    assert len(kept) < 2 * MOST_POINTS
    assert max(kept, key=lambda one: one[1]) == ((1.0 + 4321) * 1000, 1e12)
    assert min(kept, key=lambda one: one[1]) == ((1.0 + 1234) * 1000, 1.0)
    assert kept == sorted(kept)
    assert (found.series[0].events, found.drawn) == (3 * MOST_POINTS, 3 * MOST_POINTS)


def test_a_trace_without_counters_has_none(opened):
    found = counters(opened("nsys").timeline)
    assert (found.series, found.drawn) == ((), 0)
    SAMPLES.validate(found.samples)


def test_the_memory_of_real_recordings(corpus):
    torch = counters(load(corpus / "pytorch" / "owlv2-large-h100.json.gz"))
    assert [(one.label, one.most) for one in torch.series] == [
        ("device 0 memory · allocated", 2_707_847_680.0),
        ("host memory · allocated", 152_680_988.0),
    ]
    tpu = counters(load(corpus / "xprof" / "tpu-v6e-inference.xplane.pb"))
    assert [one.label for one in tpu.series] == [f"device {n} memory · allocated" for n in range(4)]
