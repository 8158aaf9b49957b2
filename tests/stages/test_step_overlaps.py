"""Ranges of steps that cannot all be steps, and device work that no step holds. Times are in microseconds."""

from __future__ import annotations

from authored_timeline import host, kernel, launch, timeline
from traceview.steps import find_steps


def annotation(name, start, end, **more):
    return host("annotation", name, start, end, **more)


def steps(*events):
    found = find_steps(timeline(*events))
    spans = found.steps.select("process", "number", "start_ns", "end_ns").rows()
    return [(process, number, start // 1000, end // 1000) for process, number, start, end in spans], found.notes


def test_a_step_recorded_again_counts_once_and_is_said():
    found, notes = steps(
        *(annotation("ProfilerStep#0", 0, 100) for _ in range(3)), annotation("ProfilerStep#1", 100, 200)
    )
    assert found == [(0, 0, 0, 100), (0, 1, 100, 200)]
    assert notes == (
        "2 ranges of steps lie inside another of the same name: the same step recorded again, which counts once",
    )


def test_labels_of_an_engine_inside_each_other_are_no_repeats():
    found, notes = steps(
        annotation("execute_context_0(0)_generation_4(4)", 0, 10), annotation("step[DECODE bs=4]", 1, 9)
    )
    assert (len(found), notes) == (1, ())


def test_of_threads_that_mark_steps_at_once_the_one_with_most_counts():
    """
    thread 0  |= 0 =|= 1 =|
    thread 1   |= 0 =|= 1 =|= 2 =|
    """
    found, notes = steps(
        *(annotation(f"ProfilerStep#{at}", 100 * at, 100 * at + 100) for at in range(2)),
        *(annotation(f"ProfilerStep#{at}", 100 * at + 20, 100 * at + 120, thread=1) for at in range(3)),
    )
    assert found == [(0, 0, 20, 120), (0, 1, 120, 220), (0, 2, 220, 320)]
    assert notes == (
        "another thread marks steps at the same time: 2 of 5 ranges are left out, the thread of each process that marks most steps counts",
    )


def test_threads_that_take_turns_are_all_kept():
    found, notes = steps(
        *(annotation(f"ProfilerStep#{at}", 100 * at, 100 * at + 100, thread=at % 2) for at in range(4)),
    )
    assert (len(found), notes) == (4, ())


def test_each_process_has_its_own_steps():
    found, notes = steps(
        *(annotation(f"ProfilerStep#{at}", 100 * at, 100 * at + 100) for at in range(2)),
        *(annotation(f"ProfilerStep#{at}", 100 * at + 20, 100 * at + 120, thread=1, process=1) for at in range(2)),
    )
    assert ([one[0] for one in found], notes) == ([0, 0, 1, 1], ())


def test_steps_that_overlap_are_said_and_rounded_ends_are_not():
    found, notes = steps(
        annotation("ProfilerStep#0", 0, 1000), annotation("ProfilerStep#1", 500, 1500), annotation("ProfilerStep#2", 1499, 2500)
    )  # fmt: skip
    assert found == [(0, 0, 0, 1000), (0, 1, 1000, 1500), (0, 2, 1500, 2500)]
    assert notes == (
        "1 of 3 steps begins before the one before has ended: the time that they share counts for the earlier one, so the lengths are doubtful",
    )


def test_device_work_in_no_step_is_said():
    """Steps of no length hold nothing."""
    events = [annotation(f"ProfilerStep#{at}", 10 * at, 10 * at) for at in range(3)]
    _, notes = steps(*events, launch(1, 1), kernel("a", 2, 7, 1), launch(101, 2), kernel("a", 102, 107, 2))
    assert notes == ("2 pieces of device work run in no step: 100.0 % of the device time is not looked at here",)


def test_a_little_device_work_in_no_step_is_not():
    _, notes = steps(
        annotation("ProfilerStep#0", 0, 1000), annotation("ProfilerStep#1", 1000, 2000),
        launch(1, 1), kernel("a", 2, 900, 1), launch(2001, 2), kernel("a", 2002, 2003, 2),
    )  # fmt: skip
    assert notes == ()


def test_without_any_event_there_is_no_step():
    found, notes = steps()
    assert (found, notes) == (
        [],
        ("the trace holds no op, call, annotation or device work, so there is no step",),
    )
