"""What a report says must be true of the trace, also where two figures on one page rest on different conditions."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from authored_timeline import host, kernel, launch, op, timeline
from traceview import load
from traceview.gap_report import gap_report
from traceview.host_copies import devices_without_copies
from traceview.losses import loss_notes
from traceview.quantities import milliseconds
from traceview.render.idle_text import causes_grid, gap_sentence
from traceview.render.page import Page
from traceview.render.report_text import write_report
from traceview.render.time_text import stage_sentence, step_sentence
from traceview.report import report
from traceview.stage_table import stage_table
from traceview.time_report import step_timeline
from traceview.timeline import DeviceLoss, ImportReport


def text_of(trace):
    out = io.StringIO()
    write_report(report(trace), Page(out))
    return out.getvalue()


@pytest.mark.parametrize(
    ("ns", "words"),
    [(0, "0.000 ms"), (1_234_567, "1.235 ms"), (999_949_999, "999.950 ms"), (999_950_000, "1.000 s"),
     (1_651_200_000, "1.651 s"), (304_257_919_000, "304.3 s"), (11_398_100_000_000, "11,398 s")],
)  # fmt: skip
def test_a_second_is_no_thousand_milliseconds(ns, words):
    assert milliseconds(ns) == words


def two_devices(apart_us):
    """Device 0 works from 10 to 110, device 1 later; both idle for half of their own time."""
    return timeline(
        launch(0, 1), kernel("a", 10, 35, 1), launch(80, 2), kernel("a", 85, 110, 2),
        launch(apart_us, 3), kernel("a", apart_us + 10, apart_us + 35, 3, device=1),
        launch(apart_us + 80, 4), kernel("a", apart_us + 85, apart_us + 110, 4, device=1),
    )  # fmt: skip


def test_idle_time_of_devices_says_of_which_span_it_is():
    trace = two_devices(900)
    idle = gap_report(trace)
    assert gap_sentence(idle).startswith(
        "2 devices idle, on average, 50.00 us of 100.0 us (50.0 %) from the first to the last work of each: "
    )
    # The step is that of both: the headline of a report is about another span, and says so.
    assert step_sentence(step_timeline(trace)).startswith(
        "1.000 ms from the first to the last device work on 2 devices, no step marks: idle 95.0 %"
    )
    assert causes_grid(idle).remarks[0] == (
        "From the first to the last work of each device, between steps, too; what a step holds before and after is "
        "not in it."
    )


def test_without_a_device_the_table_is_of_the_time_between_ops():
    idle = gap_report(timeline(op("a", 0, 10), op("b", 500, 510)))
    assert causes_grid(idle).remarks[0] == (
        "Time between the ops of the host, from the first op or step mark to the last, steps or not."
    )


@pytest.mark.parametrize(
    ("length_us", "said"), [(9_000, "train.py(1): save"), (400, "16.7 % in train.py(1): ..."), (101, "")]
)
def test_what_holds_a_small_part_is_not_called_most(length_us, said):
    """One frame holds the host once; for 2 ms more nothing is recorded."""
    until = 100 + length_us
    frame = host("python", "train.py(1): save", 100, until)
    events = [launch(0, 1), kernel("a", 10, 100, 1), frame, launch(until, 2), kernel("a", until + 5, until + 10, 2)]
    events += [launch(until + 2010, 3), kernel("a", until + 2015, until + 2020, 3)]
    (row,) = [row for row in causes_grid(gap_report(timeline(*events))).rows if row[0] == "host-work"]
    assert row[-1] == said


def test_steps_that_hold_little_of_the_work_say_so():
    """One kernel of the ten is launched in a step; the others have no launch in the file."""
    step = host("annotation", "ProfilerStep#3", 1000, 1100)
    lone = [kernel("a", 100 * at, 100 * at + 90) for at in range(9)]
    trace = timeline(*lone, step, launch(1010, 1), kernel("a", 1020, 1030, 1))
    said = step_sentence(step_timeline(trace))
    assert said.startswith("A step takes 100.0 us")
    assert said.endswith("But 98.8 % of the device time is in none of the steps.")
    assert "in none of the steps" not in step_sentence(
        step_timeline(timeline(step, launch(1010, 1), kernel("a", 1020, 1030, 1)))
    )


def test_several_processes_without_marks_have_one_figure(corpus):
    """The same one in a report and in a comparison."""
    trace = load(corpus / "nsys" / "mfu-2gpu-before.sqlite")
    assert step_sentence(step_timeline(trace)).startswith(
        "299.3 ms from the first to the last device work of a process (mean of 2) on 2 devices, no step marks: "
    )


def test_copies_that_only_the_host_records_are_not_zero_on_the_device(corpus):
    trace = load(corpus / "xprof" / "tpu-v6e-inference.xplane.pb")
    assert devices_without_copies(trace) == [0, 1, 2, 3]
    said = text_of(trace)
    rows = [line for line in said.splitlines() if line.strip().startswith("device 0") and "%" in line]
    assert any("not recorded" in row for row in rows)
    assert "recorded on the host alone, not on the device" in " ".join(said.split())
    assert devices_without_copies(load(corpus / "xprof" / "tf-bert-v100-multi-worker.xplane.pb")) == []


def test_a_part_of_next_to_nothing_is_not_the_longest_part():
    steps = [
        event
        for at in range(3)
        for event in (
            host("annotation", f"ProfilerStep#{at}", 1000 * at, 1000 * at + 990),
            host("annotation", "traceview.stage:forward", 1000 * at, 1000 * at + 990),
            host("annotation", "traceview.stage:tiny", 1000 * at + 5, 1000 * at + 10),
            op("aten::mm", 1000 * at + 5, 1000 * at + 980),
        )
    ]
    said = stage_sentence(stage_table(timeline(*steps)))
    assert said.startswith("Longest stage: forward, ")
    assert "tiny" not in said


@pytest.mark.parametrize(
    ("lost", "kept", "said"),
    [
        (1, 1, "One row that could not be read may have been device work; 1 row of device work could be read."),
        (3, 2, "Up to 3 rows that could not be read may have been device work; 2 rows of device work could be read."),
    ],
)
def test_one_row_is_no_rows(lost, kept, said):
    trace = timeline(*(kernel("k", 10 * at, 10 * at + 5) for at in range(kept)))
    (note,) = loss_notes(replace(trace, report=ImportReport(device_loss=DeviceLoss(0, lost))))
    assert note.text == said


def test_the_only_device_event_is_not_any_of_one():
    notes = {note.kind: note.text for note in timeline(kernel("k", 0, 5)).report.notes}
    assert notes["work-without-launch"].startswith("No launch is recorded for the only device event, so device work")
