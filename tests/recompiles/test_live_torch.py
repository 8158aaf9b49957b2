"""``torch.compile`` with changing shapes on this CPU: the compilations, their cost, and what the log says of them."""

from __future__ import annotations

import os
import subprocess
import sys

import polars as pl
import pytest

from live_frameworks import live
from traceview import load
from traceview.compile_log import read_compile_log
from traceview.dispatch import dispatch_table
from traceview.gap_report import gap_report
from traceview.recompile_report import recompile_report
from traceview.rules.base import Facts
from traceview.rules.catalogue import find_rule

torch = live("torch")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

PROGRAM = """
import sys
import torch
from torch.profiler import ProfilerActivity, profile, schedule

folder, sizes = sys.argv[1], [int(n) for n in sys.argv[2].split(",")]
def layer(x, w):
    return torch.relu(x @ w).sum()

# The eager back end traces and guards as any other does, and needs no C++ compiler.
compiled = torch.compile(layer, dynamic=False, backend="eager")
weight = torch.randn(32, 32)
with profile(
    activities=[ProfilerActivity.CPU],
    schedule=schedule(wait=0, warmup=0, active=len(sizes), repeat=1),
    on_trace_ready=lambda found: found.export_chrome_trace(folder + "/trace.json"),
    record_shapes=True,
) as profiler:
    for size in sizes:
        compiled(torch.randn(size, 32), weight)
        profiler.step()
"""


def recorded(folder, sizes):
    environment = {**os.environ, "TORCH_TRACE": str(folder / "log")}
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, str(folder), ",".join(map(str, sizes))],
        check=True,
        capture_output=True,
        env=environment,
        timeout=300,
    )
    return load(folder / "trace.json")


@pytest.fixture(scope="module")
def changing(tmp_path_factory):
    """Three sizes, each new one in an even step."""
    folder = tmp_path_factory.mktemp("changing")
    return recorded(folder, (8, 8, 16, 16, 24, 24)), read_compile_log(folder / "log")


def test_each_new_shape_is_a_recompilation_in_its_step(changing):
    timeline, _ = changing
    table = recompile_report(timeline).recompiles
    assert table.select("what", "compile_id", "recompiled", "step", "warmup").rows() == [
        ("torch-compile", "0/0", False, 0, True),
        ("torch-compile", "0/1", True, 2, False),
        ("torch-compile", "0/2", True, 4, False),
    ]
    assert table["reason"].to_list() == [None, "input shapes changed", "input shapes changed"]
    assert table["shapes"].to_list() == [
        "aten::matmul [[8,32],[32,32]]",
        "aten::matmul [[8,32],[32,32]] -> [[16,32],[32,32]]",
        "aten::matmul [[16,32],[32,32]] -> [[24,32],[32,32]]",
    ]


def test_the_cost_is_what_the_compiler_s_own_log_says(changing):
    timeline, log = changing
    table = recompile_report(timeline).recompiles
    logged = [log.find(name).duration_s * 1e9 for name in table["compile_id"]]
    # Between the two clocks a busy machine may do something else: that happens to one of them, hardly to all.
    apart = [abs(dur - own) / own for dur, own in zip(table["dur_ns"], logged, strict=True)]
    assert min(apart) < 0.4, apart


def test_the_log_adds_function_and_guards(changing):
    timeline, log = changing
    table = recompile_report(timeline, log).recompiles
    assert all(function.startswith("layer (<string>:") for function in table["function"])
    assert table["reason"][1] == "0/0: tensor 'x' size mismatch at index 0. expected 8, actual 16"
    assert log.find("0/2").shapes == {"x": (24, 32), "w": (32, 32)}


def test_idle_time_is_charged_to_the_compilation_and_a_rule_says_so(changing):
    timeline, _ = changing
    causes = gap_report(timeline).causes
    spent = recompile_report(timeline).recompiles["dur_ns"].sum()
    (row,) = causes.filter(pl.col("cause") == "compile").to_dicts()
    assert row["idle_ns"] == pytest.approx(spent, rel=0.05)
    (finding,) = find_rule("TV301").check(Facts(timeline, dispatch_table(timeline)))
    assert finding.title.startswith("2 compilations after the first recorded step: ")
    assert any("input shapes changed; aten::matmul" in line for line in finding.evidence)


@pytest.fixture
def record(tmp_path):
    """Records calls of a compiled function in this process, one step each."""

    def record(sizes, **settings):
        def layer(x, w):
            return torch.relu(x @ w).sum()

        torch._dynamo.reset()
        file = tmp_path / "trace.json"
        weight = torch.randn(32, 32)
        with (
            torch._dynamo.config.patch(**settings),
            torch.profiler.profile(
                activities=[torch.profiler.ProfilerActivity.CPU],
                schedule=torch.profiler.schedule(wait=0, warmup=0, active=len(sizes), repeat=1),
                on_trace_ready=lambda found: found.export_chrome_trace(str(file)),
            ) as profiler,
        ):
            compiled = torch.compile(layer, dynamic=False, backend="eager")
            for size in sizes:
                compiled(torch.randn(size, 32), weight)
                profiler.step()
        return recompile_report(load(file))

    return record


def test_after_the_limit_the_frame_runs_uncompiled(record):
    table = record((8, 16, 24, 24), recompile_limit=2).recompiles
    assert table["what"].to_list() == ["torch-compile", "torch-compile", "eager-fallback"]
    assert table["step"].to_list() == [0, 1, 2]
    assert [one.split("/")[1] for one in table["compile_id"]] == ["0", "1", "2"]


def test_one_shape_is_compiled_once(record):
    answer = record((8, 8, 8))
    assert (answer.recompiles.height, answer.late.height) == (1, 0)
