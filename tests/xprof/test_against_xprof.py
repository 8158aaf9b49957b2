"""The same files through XProf itself: where both answer the same question, the answers are the same."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import traceview
from traceview.xprof_figures import xprof_figures

# The folder of these tests has the same name, and without the package it is what is found: a namespace, no file.
SPEC = importlib.util.find_spec("xprof")
if SPEC is None or SPEC.origin is None:
    pytest.skip("xprof is not installed", allow_module_level=True)

ASK = Path(__file__).with_name("xprof_answers.py")


@pytest.fixture(scope="module")
def asked(profiles, tmp_path_factory):
    def ask(name):
        folder = tmp_path_factory.mktemp(name)
        path = Path(shutil.copy(profiles / f"{name}.xplane.pb", folder))
        done = subprocess.run(
            [sys.executable, str(ASK), str(path)], capture_output=True, text=True, timeout=300, check=True
        )
        (line,) = [line for line in done.stdout.splitlines() if line.startswith("ANSWERS ")]
        return json.loads(line.removeprefix("ANSWERS ")), pl.read_parquet(f"{path}.parquet"), traceview.load(path)

    return ask


def test_figures_of_a_tpu(asked):
    answers, _, timeline = asked("tpu-v6e-inference")
    figures = xprof_figures(timeline)
    metrics = answers["profile"]["byProgram"]["metrics"]
    assert figures.total_ps == int(metrics["rawTime"])
    assert figures.flops == int(metrics["rawFlops"])
    overview = answers["overview"]
    assert f"{figures.idle_share:.1%}" == overview["device_idle_time_percent"]
    assert f"{figures.duty_cycle:.1%}" == overview["device_duty_cycle_percent"]
    assert overview["device_type"] == timeline.devices["name"][0]


@pytest.mark.parametrize(
    ("name", "category"), [("tpu-v6e-inference", "hlo_op"), ("jax-conv-legacy-mi300", "kernel_name")]
)
def test_ops_and_kernels_one_by_one(asked, name, category):
    """Each op or kernel: how often, and for how long. XProf cuts each duration to whole nanoseconds."""
    _, table, timeline = asked(name)
    theirs = (
        table.filter(
            pl.col("device").str.contains("(?i)tpu|gpu") & pl.col(category).is_not_null() & (pl.col(category) != "")
        )
        .group_by(name=pl.col(category))
        .agg(count=pl.len(), ns=(pl.col("end_ns") - pl.col("start_ns")).sum())
    )
    kinds = ["xla_op", "collective", "async_wait", "kernel", "memcpy"]
    ours = (
        timeline.events.filter(pl.col("device").is_not_null() & pl.col("kind").is_in(kinds))
        .group_by(name=pl.col("name").cast(pl.String))
        .agg(count=pl.len(), ns=pl.col("dur_ns").sum())
    )
    joined = ours.join(theirs, on="name", suffix="_theirs", how="full")
    assert joined.height > 4
    assert joined["count"].to_list() == joined["count_theirs"].to_list()
    assert ((joined["ns"] - joined["ns_theirs"]).abs() <= joined["count"]).all()
