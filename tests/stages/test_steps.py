"""Steps, their time and their warm-up. Times are in microseconds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from authored_timeline import host, kernel, launch, op, timeline
from traceview.steady_state import find_steady_state
from traceview.step_marks import StepSource
from traceview.steps import STEPS, find_steps, step_times


def annotation(name, start, end, **more):
    return host("annotation", name, start, end, **more)


def walls(found):
    STEPS.validate(found.steps)
    return [(end - start) / 1000 for start, end in found.steps.select("start_ns", "end_ns").iter_rows()]


def test_a_step_ends_with_its_last_device_work_and_the_next_one_starts_there():
    """
    host    |== step 0 ==|== step 1 ==|
    device        |==== 0 ====|== 1 ==|==|
            0     5     10    15  20  25
    """
    found = find_steps(
        timeline(
            annotation("ProfilerStep#4", 0, 10), annotation("ProfilerStep#5", 10, 20),
            launch(1, 1), kernel("a", 5, 15, 1), launch(11, 2), kernel("b", 15, 25, 2),
        )
    )  # fmt: skip
    assert found.source is StepSource.PROFILER
    assert found.steps["number"].to_list() == [4, 5]
    assert walls(found) == [15, 10]


def test_work_that_starts_only_after_the_range_closed_is_the_step():
    """Work of an earlier step, which the file does not hold, keeps the device busy until 100."""
    found = find_steps(
        timeline(annotation("execute_context_1(8)_generation_0(0)", 0, 10), launch(1, 1), kernel("a", 100, 150, 1))
    )
    assert walls(found) == [50]
    assert found.notes == (
        "the first kernel of 1 of 1 steps starts only after their host range has closed (up to 0.100 ms after it opened): such a step is the time of its device work",
    )


def test_work_of_an_earlier_step_is_not_this_steps_time():
    found = find_steps(
        timeline(
            annotation("ProfilerStep#4", 10, 40), kernel("orphan", 5, 20, 99), launch(12, 1), kernel("a", 20, 30, 1)
        )
    )
    assert walls(found) == [20]
    assert found.notes == (
        "ProfilerStep#4 begins 0.010 ms after its host range opens: until then the device runs work whose launch is not in the file, which is no part of this step",
        "1 piece of device work runs in no step: 60.0 % of the device time is not looked at here",
    )


def test_phase_requests_and_tokens_of_a_serving_engine():
    names = (
        "execute_context_2(14721)_generation_0(0)",
        "execute_8_context_1(sq5sk5sqsq25sqsk25)_generation_3(sq3sk9sqsq3sqsk9)",
        "execute_context_0(0)_generation_4(4)",
    )
    found = find_steps(timeline(*(annotation(name, 10 * at, 10 * at + 5) for at, name in enumerate(names))))
    assert found.source is StepSource.ENGINE
    assert found.steps.select("phase", "requests", "prefill_tokens", "decode_tokens").rows() == [
        ("prefill", 2, 14721, 0), ("mixed", 4, 5, 3), ("decode", 4, 0, 4),
    ]  # fmt: skip
    assert step_times(found.steps, "decode").count == 1


def test_the_outer_of_two_engine_labels_is_the_step():
    found = find_steps(
        timeline(annotation("execute_context_0(0)_generation_4(4)", 0, 10), annotation("step[DECODE bs=4]", 1, 9))
    )
    assert found.steps["name"].to_list() == ["execute_context_0(0)_generation_4(4)"]


def test_step_numbers_of_a_step_trace_annotation():
    found = find_steps(
        timeline(
            annotation("train", 0, 10, details={"step_num": 7}), annotation("train", 10, 20, details={"step_num": 8}),
            annotation("other", 20, 30),
        )
    )  # fmt: skip
    assert (found.source, found.steps["number"].to_list()) == (StepSource.NUMBERED, [7, 8])


def test_names_that_count():
    found = find_steps(timeline(*(annotation(f"iteration_{at}", 10 * at, 10 * at + 9) for at in range(4))))
    assert (found.source, found.steps["number"].to_list()) == (StepSource.NUMBERED, [0, 1, 2, 3])


def test_without_steps_the_optimizer_marks_them():
    """From one start to the next; what comes after the last start is no whole step."""
    found = find_steps(timeline(*(annotation("Optimizer.step#SGD.step", at, at + 2) for at in (5, 15, 27))))
    assert (found.source, walls(found)) == (StepSource.OPTIMIZER, [10, 12])


def test_runs_of_the_main_xla_module():
    module = {"device": 0, "thread": None}
    found = find_steps(
        timeline(
            host("xla_module", "jit_step(123)", 0, 10, **module), host("xla_module", "jit_sample(9)", 10, 11, **module),
            host("xla_module", "jit_step(123)", 12, 22, **module),
        )
    )  # fmt: skip
    assert (found.source, walls(found)) == (StepSource.XLA_MODULE, [10, 10])


def test_without_any_mark_the_time_of_the_device_work_is_one():
    wait = host("async_wait", "copy-done", 30, 34, device=0, thread=None)
    found = find_steps(timeline(op("aten::mm", 5, 100), launch(6, 1), kernel("a", 8, 30, 1), wait))
    assert (found.source, walls(found)) == (StepSource.WHOLE, [26])
    [note] = found.notes
    assert note.endswith("so the time from the first to the last device work of a process is taken as one step")
    assert found.steps["warmup"].to_list() == [None]
    # What the host did is told beside it.
    assert found.steps.select("host_start_ns", "host_end_ns").row(0) == (5_000, 100_000)


def test_without_marks_and_devices_the_host_is_the_step_and_its_profiler_is_not():
    found = find_steps(timeline(op("aten::mm", 5, 10), op("aten::mm", 20, 30)))
    assert (found.source, walls(found)) == (StepSource.WHOLE, [25])
    assert found.notes == ("the trace has no step marks, so all of it is taken as one step",)
    frames = [
        host("python", "$contextlib.py:130 __enter__", 0, 5),
        host("python", "$profiler.py:91 start_trace", 1, 4),
        host("python", "$builtins next", 2, 3),
        host("python", "$contextlib.py:139 __exit__", 40, 90),
        host("python", "$profiler.py:193 stop_trace", 41, 89),
    ]
    assert walls(find_steps(timeline(*frames, op("aten::mm", 6, 10), op("aten::mm", 20, 30)))) == [24]
    # The names of torch are read too; a recording of nothing else is told as it is.
    torch = "torch/profiler/profiler.py(12): stop_trace"
    assert walls(find_steps(timeline(op("aten::mm", 6, 10), host("python", torch, 20, 90)))) == [4]
    assert walls(find_steps(timeline(host("python", torch, 20, 90)))) == [70]


def test_what_is_compiled_does_not_make_a_whole_recording_warm_up():
    found = find_steps(timeline(host("compile", "compile", 0, 90), op("aten::mm", 0, 100)))
    assert (found.source, found.steps["warmup"].to_list()) == (StepSource.WHOLE, [None])


def test_several_iterations_in_one_profiler_step_are_said():
    loads = [annotation("enumerate(DataLoader)#_Iter.__next__", at, at + 1) for at in (1, 5, 8)]
    found = find_steps(timeline(annotation("ProfilerStep#1", 0, 10), *loads))
    assert found.notes == ("each profiler step holds several iterations: at least 3 fetches of data",)
    # Two optimizers of one iteration are not two iterations.
    both = [annotation(f"Optimizer.step#{name}.step", at, at + 1) for name, at in (("A", 1), ("B", 3))]
    assert find_steps(timeline(annotation("ProfilerStep#1", 0, 10), *both)).notes == ()


def steps_of(lengths, *more, name="ProfilerStep#{}"):
    """Steps one after the other."""
    starts = np.concatenate([[0], np.cumsum(lengths)])
    marks = [annotation(name.format(at), starts[at], starts[at + 1]) for at in range(len(lengths))]
    return find_steps(timeline(*marks, *more)).steps


@pytest.mark.parametrize(
    ("lengths", "warm"),
    [
        ([350, 100, 101, 99, 100], [True, False, False, False, False]),
        ([35, 40, 96, 95, 96], [False, False, False, False, False]),
        ([350, 240, 96, 95, 96], [True, True, False, False, False]),
        ([150, 100, 101, 99], [False, False, False, False]),
        ([100, 100, 900, 100], [False, False, False, False]),
        ([350, 100], [False, False]),
        ([100], [None]),
    ],
)
def test_outliers_at_the_start_are_warm_up(lengths, warm):
    """Later outliers are what the steady state is like; of two steps nobody knows which is usual."""
    assert steps_of(lengths)["warmup"].to_list() == warm


def test_a_first_step_that_is_faster_is_no_warm_up():
    """Half of the steps compile, so the usual step is a slow one: the first, which is spared, is what all could be."""
    compiled = [host("compile", "compile_inner", start + 10, start + 80) for start in (21, 142, 263)]
    steps = steps_of([21, 100, 21, 100, 21, 100, 21], *compiled)
    assert steps["warmup"].to_list() == [False] * 7


def test_why_a_step_is_warm_up():
    steps = steps_of([350, 100, 101, 99])
    assert steps["why"].to_list() == ["3.5 times the median of the steps after it", None, None, None]


def test_compilation_makes_warm_up_only_at_the_start():
    compiled = [host("compile", "compile_inner", 10, 60), host("compile", "compile_inner", 210, 260)]
    steps = steps_of([100, 100, 100, 100], *compiled)
    assert steps["warmup"].to_list() == [True, False, False, False]
    assert steps["why"][0] == "compiled for 0.1 ms"


def test_a_second_compilation_ends_the_warm_up():
    """What was compiled in one step and again in the next is a recompilation: it is no warm-up, however long it takes."""
    compiled = [host("compile", "compile_inner", 10, 60), host("compile", "compile_inner", 110, 190)]
    steps = steps_of([100, 100, 20, 20, 20, 20, 20], *compiled)
    assert steps["warmup"].to_list() == [True, *[False] * 6]
    # Nor is the step between them warm-up because the recompilation makes it look short.
    late = [host("compile", "compile_inner", 10, 60), host("compile", "compile_inner", 320, 380)]
    assert steps_of([300, 10, 100, 20], *late)["warmup"].to_list() == [True, False, False, False]
    captured = [host("compile", "compile_inner", 10, 60), host("api", "cudaStreamEndCapture", 110, 190)]
    assert steps_of([100] * 6, *captured)["warmup"].to_list() == [True, True, *[False] * 4]


def test_faults_are_looked_for_past_the_same_warm_up():
    """Steps 4 and 5 are warm-up, the rest is steady for analyses and rules alike; the first is never judged."""

    def steady(lengths):
        starts = np.concatenate([[0], np.cumsum(lengths)])
        marks = [annotation(f"ProfilerStep#{4 + at}", starts[at], starts[at + 1]) for at in range(len(lengths))]
        found = find_steady_state(timeline(*marks))
        return None if found is None else (found.steps["step"].to_list(), found.span_ns)

    assert steady([350, 240, 96, 95, 96]) == ([6, 7, 8], 287_000)
    assert steady([100, 100, 100]) == ([5, 6], 200_000)
    assert steady([100]) is None


def test_a_name_that_says_warm_up():
    steps = steps_of([100, 100, 100], name="warmup_{}")
    assert steps["warmup"].to_list() == [True, True, False]
    assert steps["why"][0] == "its name says so"


def test_percentiles_are_those_of_numpy():
    lengths = [100, 103, 91, 180, 97, 120, 99]
    times = step_times(steps_of(lengths))
    spans = np.array(lengths) * 1000
    assert (times.p50_ns, times.p90_ns, times.p99_ns) == tuple(np.percentile(spans, [50, 90, 99]))
    assert (times.count, times.total_ns, times.least_ns, times.most_ns) == (7, spans.sum(), spans.min(), spans.max())
    assert step_times(steps_of([100, 103])).p50_ns is None


def test_steps_of_several_processes_are_their_own():
    found = find_steps(
        timeline(
            annotation("ProfilerStep#1", 0, 10), annotation("ProfilerStep#1", 2, 30, process=1, thread=1),
            launch(1, 1), kernel("a", 5, 20, 1),
        )
    )  # fmt: skip
    assert found.steps.select("process").rows() == [(0,), (1,)]
    assert walls(found) == [20, 28]


def test_compilation_in_most_steps_is_no_warm_up():
    """A program that compiles again and again is not warming up; only its first step may be."""
    compiled = [host("compile", "compile_inner", 100 * at + 10, 100 * at + 60) for at in range(4)]
    assert steps_of([100] * 5, *compiled)["warmup"].to_list() == [True, False, False, False, False]


def rounds(*orders):
    """Ranges of 8 us every 10 us, each round named by a word of letters."""
    events = [annotation(f"stage_of_{letter}", 10 * at, 10 * at + 8) for at, letter in enumerate("".join(orders))]
    return find_steps(timeline(*events))


def test_stages_that_repeat_in_one_order_are_steps():
    found = rounds("rbc", "rbc", "rbc")
    assert (found.source, walls(found)) == (StepSource.CYCLE, [28, 28, 28])


def test_calls_in_a_row_count_as_one_stage_and_a_cut_round_does_not_matter():
    found = rounds("bc", "rbbc", "rbbbc", "rbc", "rbc", "rb")
    assert found.source is StepSource.CYCLE
    assert len(walls(found)) in {5, 6}


@pytest.mark.parametrize("orders", [("rbc", "rbc"), ("rrrrrr",), ("rbc", "brc", "crb", "cbr", "brr")])
def test_no_order_no_steps(orders):
    assert rounds(*orders).source is StepSource.WHOLE


@pytest.mark.filterwarnings("error")
def test_compilation_of_a_process_that_is_not_recorded_makes_warm_up():
    """Its key is missing on both sides: that is no comparison with nothing."""
    starts = (0, 100, 200, 300)
    marks = [annotation(f"ProfilerStep#{at}", start, start + 90) for at, start in enumerate(starts)]
    built = timeline(host("compile", "compile", 10, 40), *marks)
    built = replace(built, events=built.events.with_columns(process=pl.lit(None, pl.UInt32)))
    assert find_steps(built).steps["why"].to_list() == ["compiled for 0.0 ms", None, None, None]
