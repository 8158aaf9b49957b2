"""Numbers in the names of ranges are whatever their author wrote: never a reason to fail."""

from __future__ import annotations

import pytest

from authored_timeline import host, kernel, launch, timeline
from traceview.knowledge.range_names import RangeKind, read_range_name
from traceview.name_numbers import MOST, read_number
from traceview.recompile_report import recompile_report
from traceview.step_marks import StepSource
from traceview.steps import STEPS, find_steps
from traceview.time_report import stage_report, step_report

HUGE = "9" * 5_000


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("007", 7), (str(MOST), MOST), (str(MOST + 1), None), (HUGE, None), ("0" * 5_000 + "5", 5)]
    + [(text, None) for text in ("", "-3", "²", "١٢", "1_0", "1.0", " 1")],
)
def test_a_whole_number_is_one_that_a_program_can_count_to(text, number):
    assert read_number(text) == number


@pytest.mark.parametrize("number", ["9" * 23, str(2**63 - 1), str(2**31), HUGE])
@pytest.mark.parametrize(
    "name",
    [
        "ProfilerStep#{}", "iteration_{}", "training_step_{}", "execute_context_2({})_generation_{}(0)",
        "execute_context_{}(1)_generation_{}(0)", "step[DECODE bs={}]", "step[EXTEND bs=1 toks={}]",
        "decode[bs={} tok={}]", "[Executor] _forward_step {}: {} ctx reqs, {} ctx tokens, {} gen reqs",
        "execute_model: {} reqs, {} toks", "execute_new_{}_cached_{}", "capture_{}_full", "execute_diffusion_{}_64x64",
        "Torch-Compiled Region: {0}/{0}",
    ],
)  # fmt: skip
def test_no_number_is_too_large_for_any_label(name, number):
    text = name.replace("{0}", number).replace("{}", number)
    again = text.replace(number, "1")
    trace = timeline(
        *(host("annotation", one, at, at + 8) for one, at in ((text, 0), (again, 10), (text, 20), (again, 30))),
        launch(1, 1), kernel("a", 2, 6, 1), launch(21, 2), kernel("a", 22, 26, 2),
    )  # fmt: skip
    STEPS.validate(step_report(trace).steps.table.steps)
    stage_report(trace)
    recompile_report(trace)


def test_a_step_whose_number_no_program_counts_to_is_counted_by_its_place():
    found = find_steps(
        timeline(host("annotation", "ProfilerStep#" + "9" * 23, 0, 8), host("annotation", "ProfilerStep#5", 10, 18))
    )
    assert found.source is StepSource.PROFILER
    assert found.steps["number"].to_list() == [0, 5]


def test_events_in_such_a_step_have_no_step():
    trace = timeline(
        host("annotation", "ProfilerStep#" + "9" * 23, 0, 8), host("annotation", "ProfilerStep#5", 10, 18),
        launch(1, 1), launch(11, 2),
    )  # fmt: skip
    assert dict(trace.events.filter(trace.events["kind"] == "api").select("start_ns", "step").iter_rows()) == {
        1000: None,
        11000: 5,
    }


def test_phases_are_told_by_requests_however_many():
    assert read_range_name(f"execute_context_{HUGE}(8)_generation_0(0)").stage == "prefill"
    assert read_range_name(f"execute_context_00(8)_generation_{HUGE}(0)").stage == "decode"


@pytest.mark.parametrize("name", ["ProfilerStep#١٢", "ProfilerStep#²", "iteration_١٢"])
def test_only_ascii_digits_count(name):
    assert read_range_name(name).kind is not RangeKind.STEP
