"""Launch to device work to op: the joins that keep being wrong elsewhere."""

from __future__ import annotations

from authored_timeline import host, kernel, launch, names, op, timeline, unlinked
from traceview import launches
from traceview.timeline import Trust


def notes(t) -> dict[str, str]:
    return {note.kind: note.text for note in t.report.notes}


def test_a_kernel_belongs_to_the_innermost_op_around_its_launch() -> None:
    t = timeline(
        op("aten::linear", 0, 20),
        op("aten::addmm", 2, 15),
        launch(5, correlation=7),
        kernel("gemm", 40, 60, 7),
    )
    assert names(t, "launch_id")["gemm"] == "cudaLaunchKernel"
    assert names(t, "op_id") == {
        "aten::linear": "aten::linear",
        "aten::addmm": "aten::addmm",
        "cudaLaunchKernel": "aten::addmm",
        "gemm": "aten::addmm",
    }
    assert names(t, "parent_id")["cudaLaunchKernel"] == "aten::addmm"
    assert t.report.trust is Trust.GOOD


def test_equal_correlations_of_two_processes_never_mix() -> None:
    t = timeline(
        op("rank0", 0, 10, thread=0, process=0),
        launch(1, 5, thread=0, process=0),
        op("rank1", 0, 10, thread=1, process=1),
        launch(2, 5, thread=1, process=1, name="cudaLaunchKernelExC"),
        kernel("k0", 20, 30, 5, device=0, process=0),
        kernel("k1", 20, 30, 5, device=1, process=1),
    )
    assert names(t, "op_id")["k0"] == "rank0"
    assert names(t, "op_id")["k1"] == "rank1"


def test_a_graph_launch_owns_many_kernels() -> None:
    t = timeline(
        launch(0, 9, name="cudaGraphLaunch"),
        *[kernel(f"k{i}", 10 + i, 11 + i, 9) for i in range(5)],
    )
    assert t.events.filter(t.events["launch_id"] == 0).height == 5
    assert launches.graph_launch_ids(t.events).to_list() == [0]


def test_a_kernel_without_launch_is_kept_and_reported() -> None:
    t = timeline(op("aten::mm", 0, 5), launch(1, 1), kernel("known", 9, 10, 1), kernel("orphan", 2, 3, 99))
    assert names(t, "launch_id")["orphan"] is None
    assert "1 of 2 device events have no launch" in notes(t)["work-without-launch"]
    assert t.report.trust is Trust.LIMITED


def test_no_launch_at_all_is_said_in_its_own_words() -> None:
    t = timeline(kernel("a", 0, 1), kernel("b", 1, 2))
    assert notes(t)["work-without-launch"].startswith("No launch is recorded for any of the 2 device events")


def test_a_launch_without_its_kernel_makes_totals_lower_bounds() -> None:
    t = timeline(launch(0, 1), launch(2, 2), kernel("k", 5, 6, 1))
    assert notes(t)["launch-without-work"] == (
        "1 of 2 launches have no device event in the file (1 cudaLaunchKernel): "
        "device time and busy time are lower bounds."
    )
    assert t.report.trust is Trust.LIMITED


def test_a_launch_in_a_thousand_without_its_kernel_limits_nothing_and_says_so() -> None:
    events = [one for at in range(1, 1000) for one in (launch(at, at), kernel("k", 5000 + at, 5001 + at, at))]
    t = timeline(launch(0, 5000), *events)
    assert notes(t)["launch-without-work"] == (
        "1 of 1,000 launches have no device event in the file (1 cudaLaunchKernel): "
        "at most 1.0 % of the kernel launches, too few to limit an answer."
    )
    assert t.report.trust is Trust.GOOD


def test_an_empty_fill_that_never_reaches_the_device_is_no_loss() -> None:
    t = timeline(launch(0, 1), launch(2, 2, name="cudaMemsetAsync"), kernel("k", 5, 6, 1))
    assert "fills and copies of nothing" in notes(t)["launch-without-work"]
    assert t.report.trust is Trust.GOOD


def test_a_reused_correlation_goes_to_the_latest_launch_before_the_work() -> None:
    t = timeline(
        op("first", 0, 5),
        launch(1, 7),
        kernel("early", 8, 9, 7),
        op("second", 20, 25),
        launch(21, 7),
        kernel("late", 28, 29, 7),
    )
    assert names(t, "op_id")["early"] == "first"
    assert names(t, "op_id")["late"] == "second"
    assert t.report.counts["correlation-reused"].n == 1


def test_external_ids_only_answer_where_the_call_tree_does_not() -> None:
    t = timeline(
        op("aten::mm", 0, 5, details={"External id": 11}),
        op("aten::bmm", 10, 15, details={"External id": 12}),
        launch(11, 1),
        kernel("by tree", 20, 21, 1, details={"External id": 11}),
        kernel("by id", 22, 23, 99, details={"External id": 11}),
    )
    assert names(t, "op_id")["by tree"] == "aten::bmm"
    assert names(t, "op_id")["by id"] == "aten::mm"
    assert t.report.counts["op-by-external-id"].n == 1


def test_syncs_and_waits_are_not_device_work() -> None:
    t = timeline(
        kernel("k", 0, 10, 1),
        kernel("Stream Sync", 0, 500, 2, kind="sync"),
        host("sync", "cudaStreamSynchronize", 0, 500, correlation=2),
    )
    assert t.device_work["name"].to_list() == ["k"]


def test_linking_twice_changes_nothing() -> None:
    once = launches.link(unlinked(op("aten::mm", 0, 5), launch(1, 1), kernel("k", 9, 10, 1)))
    assert launches.link(once).events.equals(once.events)


def test_graph_replays_that_leave_nothing_are_noted_apart_from_lost_launches() -> None:
    replays = [launch(0, 1, name="cudaGraphLaunch"), launch(2, 2, name="cudaGraphLaunch")]
    t = timeline(*replays, launch(4, 3), kernel("k", 5, 6, 3))
    assert notes(t)["graph-without-work"].startswith("2 of 3 launches have no device event in the file")
    both = timeline(*replays, launch(4, 3), launch(6, 4), kernel("k", 7, 8, 4))
    assert notes(both)["launch-without-work"].startswith("3 of 4 launches")


def test_the_replays_of_graphs_and_those_that_leave_nothing() -> None:
    calls = [launch(20 * at, at + 1, name="cudaGraphLaunch") for at in range(3)]
    replays = launches.graph_replays(timeline(*calls, kernel("a", 5, 9, 1), kernel("b", 50, 60, 3)).events)
    assert (replays.launched.to_list(), replays.silent.to_list()) == ([0, 2, 3], [2])
    assert replays.under_recorded
    assert replays.words == "1 of 3 graph launches have no recorded kernel"
    every = launches.graph_replays(timeline(calls[0], kernel("a", 5, 9, 1)).events)
    assert not every.under_recorded
    assert not launches.graph_replays(timeline().events).under_recorded
