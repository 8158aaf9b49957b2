"""What each stage takes and what a change of it can win. Times are in microseconds."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from authored_timeline import host, kernel, launch, op, timeline
from traceview.amdahl import speedup, speedup_by
from traceview.stage_table import STAGES, stage_table
from traceview.stages import stage_patterns


def annotation(name, start, end, **more):
    return host("annotation", name, start, end, **more)


def rows(*events, given=()):
    table = stage_table(timeline(*events), stage_patterns(given))
    if table.stages is None:
        return {}, table
    STAGES.validate(table.stages)
    assert table.stages["own_wall_ns"].sum() + table.unattributed_ns == table.wall_ns
    assert table.stages.filter(pl.col("depth") == 0)["wall_ns"].sum() + table.unattributed_ns == table.wall_ns
    return {row["stage"]: row for row in table.stages.to_dicts()}, table


def test_amdahl():
    assert speedup(0.1, 3) == pytest.approx(1 / (0.9 + 0.1 / 3))
    assert 1 - 1 / speedup(0.1, 3) == pytest.approx(0.0667, abs=1e-4)
    assert speedup(0.526, math.inf) == pytest.approx(2.11, abs=0.005)
    assert speedup(1.0, math.inf) is None
    assert speedup_by(100, 25) == pytest.approx(4 / 3)
    assert speedup_by(100, 100) is None


def test_sequential_stages():
    """
    host      |= load ==|= work =|         |
    device              |  ==== a ====|    |      a is launched in work
              0         40  50        80   100
    """
    found, table = rows(
        annotation("ProfilerStep#1", 0, 100), annotation("load", 0, 40), annotation("work", 40, 60),
        launch(45, 1), kernel("a", 50, 80, 1),
    )  # fmt: skip
    assert table.wall_ns == 100_000
    load, work = found["load"], found["work"]
    assert (load["wall_ns"], load["device_busy_ns"], load["idle_ns"], load["share"]) == (40_000, 0, 40_000, 0.4)
    # The device runs for it until 80, though its host range ends at 60; before, it is idle inside the range.
    assert (work["wall_ns"], work["device_busy_ns"], work["idle_ns"], work["host_ns"]) == (
        40_000,
        30_000,
        10_000,
        20_000,
    )
    assert (table.unattributed_busy_ns, table.unattributed_idle_ns) == (0, 20_000)
    assert load["speedup_if_removed"] == pytest.approx(1 / 0.6)
    assert load["speedup_if_2x"] == pytest.approx(1 / 0.8)
    assert (work["count"], work["kernels"], work["launches"]) == (1, 1, 1)


def test_overlapped_stages_count_once():
    """b runs beside a on another stream: what they share belongs to a, which started first."""
    found, table = rows(
        annotation("ProfilerStep#1", 0, 100), annotation("first", 0, 10), annotation("second", 10, 20),
        launch(5, 1), launch(15, 2), kernel("a", 20, 60, 1), kernel("b", 40, 90, 2, stream=8),
    )  # fmt: skip
    assert (found["first"]["device_busy_ns"], found["second"]["device_busy_ns"]) == (40_000, 30_000)
    assert (found["first"]["overlapped_ns"], found["second"]["overlapped_ns"]) == (0, 20_000)
    assert table.unattributed_ns == 10_000


def test_communication_behind_computation_is_hidden():
    found, _ = rows(
        annotation("ProfilerStep#1", 0, 100), annotation("reduce", 0, 10), annotation("forward", 10, 20),
        launch(5, 1), launch(15, 2), kernel("nccl", 20, 60, 1, kind="collective", stream=8), kernel("gemm", 40, 90, 2),
    )  # fmt: skip
    assert (found["reduce"]["device_busy_ns"], found["reduce"]["overlapped_ns"]) == (20_000, 20_000)
    assert found["forward"]["device_busy_ns"] == 50_000


def test_nested_stages():
    found, _ = rows(
        annotation("ProfilerStep#1", 0, 100), annotation("## forward ##", 0, 50), annotation("## forward:attn ##", 10, 30),
        launch(5, 1), launch(15, 2), kernel("a", 50, 60, 1), kernel("b", 60, 90, 2),
    )  # fmt: skip
    outer, inner = found["forward"], found["forward/attn"]
    assert (outer["depth"], inner["depth"]) == (0, 1)
    assert (outer["device_busy_ns"], inner["device_busy_ns"]) == (40_000, 30_000)
    assert (outer["wall_ns"], outer["own_wall_ns"], inner["wall_ns"]) == (90_000, 40_000, 50_000)
    assert list(found) == ["forward", "forward/attn"]


def test_percentiles_over_steps():
    events = []
    for number, length in enumerate([30, 35, 20, 50]):
        start = 100 * number
        events += [
            annotation(f"ProfilerStep#{number}", start, start + 100), annotation("work", start, start + 10),
            launch(start + 1, number), kernel("a", start + 10, start + 10 + length, number),
        ]  # fmt: skip
    found, table = rows(*events)
    spans = np.array([30, 35, 20, 50]) * 1000 + 10_000
    assert (found["work"]["p50_ns"], found["work"]["p99_ns"]) == tuple(np.percentile(spans, [50, 99]))
    assert (found["work"]["repeats"], table.counted) == ("steps", 4)


def test_percentiles_over_calls_where_there_are_no_steps():
    """The time of a call is that of its work on the device, not of its host range."""
    events = [annotation("ProfilerStep#1", 0, 200)]
    for number, length in enumerate([10, 12, 40]):
        events += [
            annotation("denoise", 10 * number, 10 * number + 2), launch(10 * number + 1, number),
            kernel("a", 50 + 50 * number, 50 + 50 * number + length, number),
            kernel("b", 50 + 50 * number, 55 + 50 * number, number, stream=8),
        ]  # fmt: skip
    found, _ = rows(*events)
    assert found["denoise"]["repeats"] == "calls"
    assert (found["denoise"]["p50_ns"], found["denoise"]["p99_ns"]) == tuple(
        np.percentile([10_000, 12_000, 40_000], [50, 99])
    )
    assert found["denoise"]["count"] == 3


def test_warm_up_is_not_counted():
    events = []
    at = 0
    for number, length in enumerate([400, 100, 100, 100]):
        events += [annotation(f"ProfilerStep#{number}", at, at + length), annotation("work", at, at + length // 2)]
        at += length
    found, table = rows(*events)
    assert (table.wall_ns, table.counted, found["work"]["count"]) == (300_000, 3, 3)


def test_without_a_stage_everything_is_unattributed():
    found, table = rows(annotation("ProfilerStep#1", 0, 100), launch(1, 1), kernel("a", 10, 30, 1))
    assert (found, table.stages) == ({}, None)
    assert (table.unattributed_busy_ns, table.unattributed_idle_ns, table.wall_ns) == (20_000, 80_000, 100_000)
    assert table.notes[0].startswith("no stage is known: ")


def test_much_time_in_no_stage_is_said():
    _, table = rows(annotation("ProfilerStep#1", 0, 100), annotation("work", 0, 50))
    assert table.notes == ("50.0 % of the time is in no stage: mark the rest to learn more",)


def test_a_stage_at_the_floor_of_the_hardware():
    """A product of 2 x 4096^3 FLOP in bf16 takes at least 0.139 ms on an H100; it took 1 ms of 2."""
    shapes, dtypes = [[4096, 4096], [4096, 4096]], ["c10::BFloat16", "c10::BFloat16"]
    linked = timeline(
        annotation("ProfilerStep#1", 0, 2000), annotation("work", 0, 20),
        op("aten::mm", 1, 10, dims=shapes, dtypes=dtypes), launch(2, 1), kernel("gemm", 100, 1100, 1),
    )  # fmt: skip
    named = linked.devices.with_columns(name=pl.lit("NVIDIA H100 80GB HBM3"))
    from dataclasses import replace

    [row] = stage_table(replace(linked, devices=named)).stages.to_dicts()
    floor_ns = 2 * 4096**3 / 989.4e12 * 1e9
    assert row["floor_known_share"] == 1
    assert row["speedup_at_floor"] == pytest.approx(2e6 / (1e6 + floor_ns), rel=1e-5)
    unknown = linked.devices.with_columns(name=pl.lit("a card of 2031"))
    assert stage_table(replace(linked, devices=unknown)).stages["speedup_at_floor"].to_list() == [None]


def test_a_host_only_trace_is_split_by_its_ranges():
    """
    As a detector labels its frames, without device work. The stage of 52.6 % can make the whole 2.11 times as fast.
    """
    parts = {"reader": 3, "backbone": 14, "transformer_forward": 16, "find_centers": 53, "post_processing": 14}
    events, at = [], 0
    for _ in range(4):
        for name, length in parts.items():
            events.append(annotation(name, at, at + length))
            at += length
    found, table = rows(*events)
    assert table.wall_ns == 400_000
    assert {name: row["share"] for name, row in found.items()} == {name: us / 100 for name, us in parts.items()}
    centers = found["find_centers"]
    assert centers["speedup_if_removed"] == pytest.approx(1 / 0.47)
    # The stages repeat in the same order, so each round is a step.
    assert table.steps.source == "repeating stages"
    assert (table.counted, centers["count"], centers["repeats"], centers["p50_ns"]) == (4, 4, "steps", 53_000)


def test_the_floor_of_work_with_recorded_flop():
    """1e9 FLOP take at least 5.08 us at the highest published peak of a TPU v5e, 197 bf16 or 394 int8 TFLOP/s."""
    from dataclasses import replace

    linked = timeline(annotation("ProfilerStep#1", 0, 100), kernel("fusion", 10, 60, kind="xla_op", correlation=None))
    fusion = linked.events["kind"].cast(pl.String) == "xla_op"
    events = linked.events.with_columns(flops=pl.when(fusion).then(pl.lit(2 * 10**9, pl.Int64)))
    scope = pl.DataFrame(
        {"id": events.filter(fusion)["id"], "value": pl.Series(['"jit(f)/mlp/dot_general"'], dtype=pl.Categorical)}
    )
    named = linked.devices.with_columns(name=pl.lit("TPU v5 lite"))
    [row] = stage_table(replace(linked, events=events, devices=named, details={"op_name": scope})).stages.to_dicts()
    assert (row["stage"], row["floor_known_share"]) == ("mlp", 1)
    floor_ns = int(2e9 / 394e12 * 1e9)
    assert row["speedup_at_floor"] == pytest.approx(100_000 / (50_000 + floor_ns))


def test_stages_that_take_no_time_of_a_step_are_no_table():
    """The only annotated range lies after the steps."""
    found, table = rows(
        annotation("ProfilerStep#0", 0, 10), annotation("ProfilerStep#1", 10, 20), annotation("save", 30, 40),
        launch(1, 1), kernel("a", 2, 6, 1), launch(11, 2), kernel("a", 12, 16, 2),
    )  # fmt: skip
    assert (found, table.stages, table.sources) == ({}, None, ())
    assert table.notes[0].startswith("no stage is known: no stage of the trace takes time in the counted steps")


def test_a_thread_whose_events_last_no_time_is_not_autograds():
    """Steps of no length; a share of nothing is not a large share."""
    found, table = rows(
        *(annotation(f"ProfilerStep#{at}", 10 * at, 10 * at) for at in range(3)), launch(1, 1), kernel("a", 2, 6, 1)
    )
    assert (found, table.stages, table.sources) == ({}, None, ())


def test_percentiles_are_over_the_steps_in_which_a_stage_takes_time():
    """Five steps of 10 us; `often` takes 2, 4 and 6 us of three of them, `rare` 3 us of two."""
    events = [annotation(f"ProfilerStep#{at}", 10 * at, 10 * at + 10) for at in range(5)]
    events += [annotation("often", 10 * at + 1, 10 * at + 1 + us) for at, us in ((1, 2), (2, 4), (4, 6))]
    events += [annotation("rare", 10 * at + 1, 10 * at + 4) for at in (0, 3)]
    found, _ = rows(*events)
    assert (found["often"]["p50_ns"], found["often"]["repeats"]) == (4_000, "steps")
    assert (found["rare"]["p50_ns"], found["rare"]["p99_ns"], found["rare"]["repeats"]) == (None, None, None)
