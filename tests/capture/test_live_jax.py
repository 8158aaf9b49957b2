"""Recorded with JAX on this CPU: what the program planted is found."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from live_frameworks import live
from traceview.capture import profile_jax, stage
from traceview.errors import TraceviewError
from traceview.recompile_report import recompile_report
from traceview.sidecars import sidecar_of
from traceview.stage_table import stage_table
from traceview.stages import assign_stages

jax = live("jax")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

STEPS = 4
SLEEP_NS = 20_000_000


@pytest.fixture(scope="module", autouse=True)
def _on_the_cpu():
    jax.config.update("jax_platforms", "cpu")


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Four steps with a sleep, marks inside the compiled program, weights from the host, and a new shape in step 2."""
    path = tmp_path_factory.mktemp("planted") / "planted.xplane.pb"
    weights = [np.ones((256, 256), np.float32) * at for at in range(3)]

    @jax.jit
    def model(x, first, second):
        with stage("encode"):
            x = x @ first
        with stage("denoise/attention"):
            x = jax.nn.softmax(x @ x.T) @ x
        return x @ second

    with profile_jax(path, warmup=1, steps=STEPS, sync_steps=True, contract={"model": "planted"}) as run:
        for step in range(STEPS + 1):
            with stage("load"):
                time.sleep(SLEEP_NS / 1e9)
                on_device = [jax.device_put(weight) for weight in weights]
            with stage("run"):
                result = model(jax.numpy.ones((128 if step < 3 else 192, 256)), *on_device[:2])
            run.step(result)
    return run


def test_the_stages_are_those_of_the_program(planted):
    table = stage_table(planted.timeline)
    stages = set(table.stages["stage"])
    assert {"load", "run", "run/encode", "run/denoise", "run/denoise/attention"} <= stages
    staged = assign_stages(planted.timeline)
    assert dict(staged.ranges["stage"].value_counts().iter_rows()) == {"load": STEPS, "run": STEPS}
    (slept,) = table.stages.filter(pl.col("stage") == "load").to_dicts()
    assert slept["host_ns"] >= slept["count"] * SLEEP_NS
    work = staged.timeline.device_work["stage"].cast(pl.String).drop_nulls()
    assert {"run/encode", "run/denoise/attention", "run"} <= set(work)


def test_the_new_shape_is_a_compilation_in_its_step(planted):
    compiled = recompile_report(planted.timeline).recompiles.filter(pl.col("function").str.contains("model"))
    assert set(compiled["step"]) == {2}


def test_the_copies_of_the_weights_are_in_every_step(planted):
    puts = planted.timeline.events.filter(pl.col("name").cast(pl.String).str.contains("(?i)device_?put"))
    assert puts.height >= 3 * STEPS


def test_the_conditions_lie_beside_the_trace(planted):
    info = planted.timeline.runs[0].capture
    assert info == planted.info
    assert (info.framework, info.versions["jax"], info.steps, info.warmup_calls) == ("jax", jax.__version__, STEPS, 1)
    assert info.settings["backend"] == "cpu"
    assert dict(info.contract) == {"model": "planted"}
    text = sidecar_of(planted.path).read_text()
    assert socket.gethostname() not in text
    assert "/" not in text.replace("traceview.capture/1", "")


def test_the_name_of_the_host_is_not_in_the_trace(planted):
    from traceview.capture.xspace_file import _HOST_NAMES, _varint

    data = Path(planted.path).read_bytes()
    at, numbers = 0, set()
    while at < len(data):
        tag, at = _varint(data, at)
        size, at = _varint(data, at)
        at += size
        numbers.add(tag >> 3)
    assert at == len(data)
    assert numbers
    assert _HOST_NAMES not in numbers


def test_a_function_is_warmed_up_until_nothing_compiles(tmp_path):
    calls = []
    compiled = jax.jit(lambda x: x @ x)
    x = jax.numpy.ones((256, 256))

    def fn():
        calls.append(1)
        return compiled(x)

    timeline = profile_jax(fn, path=tmp_path / "t.xplane.pb", steps=3)
    info = timeline.runs[0].capture
    assert (info.steps, info.steady) == (3, True)
    assert len(calls) == info.warmup_calls + 3
    assert recompile_report(timeline).recompiles.height == 0
    marks = timeline.details["step_num"]["value"]
    assert sorted(set(marks)) == [0, 1, 2]


def test_a_second_recording_is_refused_in_one_line(tmp_path):
    with profile_jax(tmp_path / "t.xplane.pb") as run:
        with (
            pytest.raises(TraceviewError, match="the JAX profiler does not start"),
            profile_jax(tmp_path / "u.xplane.pb"),
        ):
            pass
        run.step(jax.numpy.ones(3) + 1)
    assert run.timeline.events.height
