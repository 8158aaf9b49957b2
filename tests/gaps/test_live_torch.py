"""PyTorch on this CPU with something planted in a loop: it is found with its size, and a clean loop has nothing."""

from __future__ import annotations

import gc
import time

import polars as pl
import pytest

from live_frameworks import live
from traceview import load
from traceview.dispatch import dispatch_table
from traceview.gap_report import gap_report
from traceview.gaps import causes, idle
from traceview.rules.base import Facts
from traceview.rules.catalogue import find_rule
from traceview.steady_state import find_steady_state
from traceview.steps import find_steps
from traceview.transfer_report import transfer_report

torch = live("torch")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

STEPS = 8
SLEEP_NS = 60_000_000
ITEMS = 40
LAYERS = 9
WIDTH = 512
"""A weight is then a mebibyte."""


@pytest.fixture(scope="module")
def model():
    return torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)))


def recorded(folder, model, planted, held=None, **options):
    """A trace of some steps of inference, with something planted in each.

    What the machine kept this thread from running, ns, goes to ``held``: a gap that nobody planted.
    """
    file = folder / "trace.json"
    batch = torch.randn(64, WIDTH)

    def save(profiler):
        profiler.export_chrome_trace(str(file))

    schedule = torch.profiler.schedule(wait=0, warmup=1, active=STEPS, repeat=1)
    with (
        torch.inference_mode(),
        torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU],
            schedule=schedule,
            on_trace_ready=save,
            record_shapes=True,
            **options,
        ) as profiler,
    ):
        wall, cpu = time.perf_counter_ns(), time.thread_time_ns()
        for step in range(STEPS + 1):
            planted(model, model(batch))
            if step < STEPS:
                profiler.step()
        if held is not None:
            held.append((time.perf_counter_ns() - wall) - (time.thread_time_ns() - cpu))
        profiler.step()
    return load(file)


def long_host_work(timeline):
    """Pieces of idle time that are as long as what is planted, with the names of their culprits."""
    pieces = causes(timeline, idle(timeline)).with_columns(ns=pl.col("end_ns") - pl.col("start_ns"))
    found = pieces.filter((pl.col("cause") == "host-work") & (pl.col("ns") >= SLEEP_NS))
    return found.with_columns(culprit=timeline.events["name"].gather(found["culprit_id"]))


def repeated_copies(timeline):
    return find_rule("TV502").check(Facts(timeline, dispatch_table(timeline)))


def nothing(model, output):
    pass


def test_a_clean_loop_has_none_of_it(tmp_path, model):
    held = []
    timeline = recorded(tmp_path, model, nothing, held, with_stack=True)
    # Whatever is found is what a busy machine did meanwhile; on a quiet one that is less than one piece.
    assert long_host_work(timeline)["ns"].sum() <= sum(held)
    assert gap_report(timeline).waits.height == 0
    assert list(repeated_copies(timeline)) == []


@pytest.mark.parametrize("stacks", [False, True])
def test_a_sleep_is_found_with_its_length(tmp_path, model, stacks):
    timeline = recorded(tmp_path, model, lambda *_: time.sleep(SLEEP_NS / 1e9), with_stack=stacks)
    found = long_host_work(timeline)
    if stacks:
        found = found.filter(pl.col("culprit") == "<built-in function sleep>")
        assert found.height == STEPS
    # A busy machine may add pieces and wakes late, though hardly every time.
    assert found.height >= STEPS
    assert found["ns"].min() < SLEEP_NS * 1.5


def test_a_loop_of_reads_is_found_with_its_count(tmp_path, model):
    def read(model, output):
        for at in range(ITEMS):
            output[0, at].item()

    (row,) = gap_report(recorded(tmp_path, model, read)).waits.to_dicts()
    assert (row["name"], row["count"], row["per_step"]) == ("aten::item", ITEMS * STEPS, ITEMS)


def test_weights_copied_in_every_step_are_found_with_their_bytes(tmp_path, model):
    def copy(model, output):
        for layer in model:
            layer.weight.to("cpu", copy=True)

    timeline = recorded(tmp_path, model, copy)
    (row,) = transfer_report(timeline).transfers.filter(pl.col("op") == "aten::_to_copy").to_dicts()
    assert (row["bytes"], row["count"], row["per_step"]) == (4 * WIDTH * WIDTH, LAYERS * STEPS, LAYERS)
    assert row["repeated_each_step"] is True
    (finding,) = repeated_copies(timeline)
    # The first step never counts, and of the others none that a busy machine made much longer.
    steady = find_steady_state(timeline, find_steps(timeline)).steps.height
    assert 2 <= steady < STEPS
    assert finding.title.startswith(f"The same {LAYERS} copies in host memory came back in each of {steady} steps")
    assert finding.evidence == (f"{4 * WIDTH * WIDTH * LAYERS / 1e6:,.1f} MB per step, in 1 size",)


def test_collecting_garbage_is_told_apart(tmp_path, model):
    try:
        options = torch._C._profiler._ExperimentalConfig(record_python_gc_info=True)
    except TypeError:
        pytest.skip("this PyTorch does not record the collection of garbage")
    timeline = recorded(tmp_path, model, lambda *_: gc.collect(), with_stack=True, experimental_config=options)
    (row,) = gap_report(timeline).causes.filter(pl.col("cause") == "garbage-collection").to_dicts()
    assert row["stretches"] == STEPS
    assert row["share"] > 0.3
