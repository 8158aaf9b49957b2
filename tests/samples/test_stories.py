"""What the truth tables say beyond attention: findings, stages, copies, iterations, launches. The product agrees."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

import sample_traces
from traceview import samples
from traceview.busy import busy
from traceview.gap_report import gap_report
from traceview.gate import check
from traceview.loading import load
from traceview.report import report
from traceview.steady_state import find_steady_state
from traceview.transfers import transfers

FOLDER = Path(sample_traces.__file__).parent
TRUTHS = {
    path.name.removesuffix(".truth.json"): json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.truth.json"))
}


def having(key):
    """Names of the samples whose truth table answers that."""
    return [name for name, truth in TRUTHS.items() if key in truth]


@pytest.fixture(scope="module")
def timelines():
    """Each sample is loaded once."""
    loaded = {}

    def of(name):
        if name not in loaded:
            loaded[name] = load(FOLDER / TRUTHS[name]["trace"])
        return loaded[name]

    return of


@pytest.mark.parametrize("name", having("findings"))
def test_findings(name, timelines):
    codes = {finding.code for finding in check(timelines(name)).findings}
    assert sorted(codes) == TRUTHS[name]["findings"]


@pytest.mark.parametrize("name", having("repeated_copies_per_step"))
def test_copies_that_come_back(name, timelines):
    table = transfers(timelines(name), find_steady_state(timelines(name)))
    again = table.filter(pl.col("repeated_each_step") & (pl.col("kind") == "HtoD") & (pl.col("bytes") >= 1 << 20))
    assert round(again["per_step"].sum()) == TRUTHS[name]["repeated_copies_per_step"]
    assert round((again["bytes"] * again["per_step"]).sum()) == TRUTHS[name]["repeated_host_to_device_bytes"]


@pytest.mark.parametrize("name", having("converted_weights_per_step"))
def test_weights_that_are_converted_again(name, timelines):
    truth = TRUTHS[name]
    table = transfers(timelines(name), find_steady_state(timelines(name)))
    (row,) = table.filter(pl.col("repeated_each_step") & (pl.col("bytes") > 1 << 20)).iter_rows(named=True)
    assert row["kind"] == "HtoH"
    assert row["per_step"] == truth["converted_weights_per_step"]
    assert row["bytes"] * row["per_step"] == truth["converted_bytes_per_step"]


@pytest.mark.parametrize("name", having("iterations"))
def test_iterations_of_the_engine(name, timelines):
    phases = Counter(step.phase for step in report(timelines(name)).steps)
    assert phases == TRUTHS[name]["iterations"]


@pytest.mark.parametrize("name", having("launch_bound"))
def test_launches(name, timelines):
    truth = TRUTHS[name]
    (fed,) = gap_report(timelines(name)).devices.iter_rows(named=True)
    assert fed["launch_bound"] == truth["launch_bound"]
    calls = timelines(name).events.filter(pl.col("name").cast(pl.String) == "cudaGraphLaunch")
    assert calls.height == truth["graph_launches"]


STAGED = [
    "image-pipeline-before.cuda-authored", "image-pipeline-after.cuda-authored", "audio-decoder.cuda-authored",
    "flash-requested-math-ran.cuda-authored", "flash-requested-flash-ran.cuda-authored",
    "flash-requested-math-ran.nsys-authored", "flash-requested-flash-ran.nsys-authored",
]  # fmt: skip


@pytest.mark.parametrize("name", STAGED)
def test_stages(name, timelines):
    """Every step counts: none of these samples has a warm-up."""
    table = report(timelines(name)).stages.stages
    found = {row["stage"]: (row["count"], row["device_busy_ns"]) for row in table.iter_rows(named=True)}
    for row in TRUTHS[name]["stages"]:
        stage = row["stage"].removeprefix("traceview.stage:")
        assert found[stage] == (row["count"], row["device_busy_ns"]), stage


def test_the_straggler_works_while_the_others_wait():
    timeline = load(samples.paths("straggler"))
    ordinals = dict(timeline.devices.select("device", "ordinal").iter_rows())
    spent = {ordinals[one.device]: one for one in busy(timeline)}
    late = json.loads((FOLDER / "straggler" / "rank0.cuda-authored.truth.json").read_text())["straggler"]
    others = [one for rank, one in spent.items() if rank != late]
    assert len(others) == 3
    assert all(one.exposed_communication_ns > 3 * spent[late].exposed_communication_ns for one in others)
    assert all(1.3 * one.computation_ns < spent[late].computation_ns for one in others)
    nccl = timeline.device_work.filter(pl.col("kind") == "collective")
    assert set(Counter((nccl["start_ns"] + nccl["dur_ns"]).to_list()).values()) == {4}


@pytest.mark.parametrize("pair", [p for p in samples.pairs() if p.name != "image-pipeline-tpu"], ids=lambda p: p.name)
def test_a_pair_is_faster_after(pair):
    """The median step of the second half of each story is shorter, and the first has what the second has not."""
    before, after = (load(samples.paths(name)) for name in (pair.before, pair.after))
    medians = [
        pl.Series([step.wall_ns for step in report(timeline).steps], dtype=pl.Int64).median()
        for timeline in (before, after)
    ]
    assert medians[1] < 0.5 * medians[0]
