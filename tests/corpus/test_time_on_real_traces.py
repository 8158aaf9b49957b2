"""Steps, time and stages of real traces, against published or independently computed figures."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import polars as pl
import pytest

from traceview import load
from traceview.accounting import device_times, process_times
from traceview.amdahl import speedup
from traceview.busy import measure
from traceview.errors import TraceviewError
from traceview.stage_table import STAGES, stage_table
from traceview.stages import assign_stages
from traceview.steps import STEPS, find_steps, step_times
from traceview.time_report import step_timeline

PUBLISHED = {
    # TensorBoard's PyTorch plugin, its own test of these two files: microseconds of an average step.
    "resnet50-v100-workers0.pt.trace.json.gz": {
        "wall": 177592, "kernel": 98589, "memcpy": 1915, "memset": 89, "communication": 0, "runtime": 2908,
        "data_loading": 59262, "cpu": 13674, "other": 1156,
    },
    "resnet50-v100-workers4.pt.trace.json.gz": {
        "wall": 141068, "kernel": 99145, "runtime": 10564, "data_loading": 1186, "cpu": 22665, "other": 4251,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_steps_as_tensorboard_shows_them(corpus, name):
    timeline = load(corpus / "pytorch" / name)
    [found] = process_times(timeline, find_steps(timeline).steady)
    times = {"wall": found.wall_ns, **found.parts}
    assert {part: round(times[part] / found.steps / 1000) for part in PUBLISHED[name]} == PUBLISHED[name]


def test_each_step_as_tensorboard_shows_it(corpus):
    """Every step of the first sample, part by part, as its result file has them."""
    text = (corpus / "expected" / "tb_plugin_test_result_check_file.txt").read_text()
    table = json.loads(text.splitlines()[0])["steps"]
    names = [column["name"] for column in table["columns"] if column["type"] == "number"]
    timeline = load(corpus / "pytorch" / "resnet50-v100-workers0.pt.trace.json.gz")
    steps = find_steps(timeline).steps
    keys = dict(zip(["Kernel", "Memcpy", "Memset", "Runtime", "DataLoader", "CPU Exec", "Other"],
                    ["kernel", "memcpy", "memset", "runtime", "data_loading", "cpu", "other"], strict=True))  # fmt: skip
    assert len(table["rows"]) == steps.height == 6
    for row, number in zip(table["rows"], steps["number"], strict=True):
        assert row[0] == str(number)
        [found] = process_times(timeline, steps.filter(pl.col("number") == number))
        values = [value for value in row[1:] if not isinstance(value, str)]
        assert {keys[name]: value for name, value in zip(names, values, strict=True)} == {
            part: ns // 1000 for part, ns in found.parts.items() if part != "communication"
        }
        assert int(re.search(r"Total: (\d+)us", row[2])[1]) == found.wall_ns // 1000


def test_exposed_communication(corpus):
    """Published: 38.343 of 56.518 ms, without recomputed work and fills. Those hide 3.3 ms more of it."""
    timeline = load(corpus / "pytorch" / "resnet-act-checkpoint-mi300.json.gz")
    staged = assign_stages(timeline).timeline
    work = staged.device_work.filter(pl.col("launch_id").is_not_null())
    recomputed = pl.col("stage").cast(pl.String).str.starts_with("backward/").fill_null(value=False)
    alone = measure(work.filter(~recomputed & (pl.col("kind") != "memset")), device=0)
    assert alone.exposed_communication_ns / 1e6 == pytest.approx(38.3431845, abs=1e-4)
    assert alone.span_ns / 1e6 == pytest.approx(56.518, abs=0.001)
    steps = find_steps(timeline)
    [found] = device_times(timeline, steps.steady)
    assert found.wall_ns / 1e6 == pytest.approx(56.518, abs=0.001)
    assert found.collective_ns + found.hidden_collective_ns == pytest.approx(47.2003e6, abs=1e3)
    assert found.collective_ns / 1e6 == pytest.approx(35.089, abs=0.001)


WALLS = {
    # name: {stage: (wall ms, busy ms)}, computed apart by script from the same files.
    "flux1-sage-mi300.json.gz": {"denoise": (172.96, 171.13), "text_encoder": (40.53, 24.83), "decoder": (5.14, 5.14)},
    "resnet-ddp-v100-ns-timestamps.pt.trace.json.gz": {
        "forward": (156.38, 150.43), "backward": (319.36, 316.50), "optimizer": (5.57, 5.53),
    },
    "vllm-eager-b200.json.gz": {"prefill/forward": (79.20, 11.51), "prefill/logits": (2.32, 0.06)},
    "owlv2-large-h100.json.gz": {"data_loading": (619.05, 0.0)},
    "resnet50-v100-workers0.pt.trace.json.gz": {"data_loading": (355.57, 0.0), "optimizer": (9.06, 7.88)},
}  # fmt: skip


@pytest.mark.parametrize("name", WALLS)
def test_wall_time_of_stages(corpus, name):
    table = stage_table(load(corpus / "pytorch" / name)).stages
    for stage, (wall, busy) in WALLS[name].items():
        [row] = table.filter(pl.col("stage") == stage).to_dicts()
        assert row["wall_ns"] / 1e6 == pytest.approx(wall, abs=0.03), stage
        assert row["device_busy_ns"] / 1e6 == pytest.approx(busy, abs=0.03), stage


def test_data_loading_is_a_third_of_the_step(corpus):
    table = stage_table(load(corpus / "pytorch" / "resnet50-v100-workers0.pt.trace.json.gz"))
    [row] = table.stages.filter(pl.col("stage") == "data_loading").to_dicts()
    assert row["share"] == pytest.approx(0.3337, abs=1e-4)
    table = stage_table(load(corpus / "pytorch" / "resnet50-v100-workers4.pt.trace.json.gz"))
    [row] = table.stages.filter(pl.col("stage") == "data_loading").to_dicts()
    assert row["share"] == pytest.approx(0.0084, abs=1e-4)


def test_a_step_of_a_serving_engine(corpus):
    steps = find_steps(load(corpus / "pytorch" / "vllm-prefilldecode-piecewise-rocm.json.gz")).steps
    [step] = steps.to_dicts()
    assert (step["phase"], step["requests"], step["prefill_tokens"], step["decode_tokens"]) == ("mixed", 46, 8155, 37)
    # The time of its device work, as published; its host range lasts 26.35 ms.
    assert (step["end_ns"] - step["start_ns"]) / 1e6 == pytest.approx(156.466, abs=0.001)
    assert (step["host_end_ns"] - step["host_start_ns"]) / 1e6 == pytest.approx(26.35, abs=0.01)


def test_everything_adds_up_on_every_file(corpus):
    """Stage sums, device parts and host parts equal the wall time to the nanosecond."""
    checked = 0
    for path in sorted([*(corpus / "pytorch").iterdir(), *(corpus / "nsys").iterdir(), *(corpus / "xprof").iterdir()]):
        try:
            timeline = load(path)
        except TraceviewError:
            continue  # A format whose parser is not installed, or no trace at all.
        steps = step_timeline(timeline)
        STEPS.validate(steps.table.steps)
        for one in steps.devices or ():
            assert sum(ns for _, ns in one.parts) == one.wall_ns, path.name
        for one in steps.processes:
            assert sum(one.parts.values()) == one.wall_ns, path.name
        table = stage_table(timeline, steps=steps.table)
        if table.stages is None:
            assert table.unattributed_ns == table.wall_ns, path.name
        else:
            STAGES.validate(table.stages)
            assert table.stages["own_wall_ns"].sum() + table.unattributed_ns == table.wall_ns, path.name
        checked += 1
    assert checked >= 30


def test_percentiles_are_those_of_numpy(corpus):
    steps = find_steps(load(corpus / "pytorch" / "resnet-ddp-v100-ns-timestamps.pt.trace.json.gz")).steady
    walls = (steps["end_ns"] - steps["start_ns"]).to_numpy()
    times = step_times(steps)
    assert (times.p50_ns, times.p90_ns, times.p99_ns) == tuple(np.percentile(walls, [50, 90, 99]))
    assert times.p50_ns / 1e6 == pytest.approx(95.66, abs=0.01)


def test_stages_of_a_recording_without_a_device(corpus):
    """find_centers takes 52.60 % of the time that is in stages: without the rest, a ceiling of 2.11.

    Another 2.4 % of the wall time lie between the ranges, so of the wall it is 51.4 %, and the ceiling 2.06.
    """
    try:
        timeline = load(corpus / "nsys" / "centerformer-nvtx-only.sqlite")
    except TraceviewError:
        pytest.skip("no parser of Nsight Systems here")
    [row] = stage_table(timeline).stages.filter(pl.col("stage") == "find_centers").to_dicts()
    assert row["share_of_attributed"] == pytest.approx(0.5260, abs=1e-4)
    assert speedup(row["share_of_attributed"], math.inf) == pytest.approx(2.11, abs=0.005)
    assert row["share"] == pytest.approx(0.5137, abs=1e-3)
    assert row["speedup_if_removed"] == pytest.approx(2.056, abs=0.01)
