"""Graphs traced node by node: captured launches run nothing, and replays are tied to the op of the capture.

Authored exports; the columns are those of ``CUDA_GRAPH_NODE_EVENTS`` in the documented schema.
"""

from __future__ import annotations

from nsys.conftest import FLASH
from nsys.test_attribution import loaded
from sample_traces.nsys_authoring import Export
from traceview.attention import find_calls
from traceview.dispatch import dispatch_table
from traceview.gate import check
from traceview.graph_captures import captured_ops

SDPA = "aten::scaled_dot_product_attention"
SIZES = [[1, 8, 64, 64]] * 3


def node(rank, number, *, original=None):
    """The creation of a graph node at this moment."""
    rank.export.add(
        "CUDA_GRAPH_NODE_EVENTS", start=rank.now, end=rank.now, eventClass=77, globalTid=rank.global_tid,
        nameId=rank.export.string("Graph Node Creation"), graphNodeId=number, originalGraphNodeId=original,
    )  # fmt: skip


def captured(*, replays=3, clones=((11, 1), (12, 2)), created=True, none=None) -> Export:
    """One attention and one product captured once and replayed."""
    export = Export(mode="Node")
    rank = export.process(7)
    rank.call("cudaStreamBeginCapture_v10000")
    for number, op in ((1, SDPA), (2, "aten::mm")):
        with rank.op(op, SIZES):
            rank.call("cudaLaunchKernel_v7000")
            if created:
                node(rank, number, original=none)
    rank.call("cudaStreamEndCapture_v10000")
    for number, original in clones:
        node(rank, number, original=original)
    for _ in range(replays):
        launch = rank.call("cudaGraphLaunch_v10000")
        rank.kernel(FLASH, 20, launch, graphNodeId=clones[0][0] if clones else 1)
        rank.kernel("nvjet_tst_128x64_64x8_1x2_h_bz_coopA_NNT", 10, launch, graphNodeId=clones[1][0] if clones else 2)
    rank.synchronize()
    return export


def rows(table):
    return [(one.op, one.implementation, one.attribution, one.count) for one in table.dispatches]


def test_replays_are_tied_to_the_op_of_the_capture(tmp_path):
    timeline = loaded(captured(), tmp_path)
    table = dispatch_table(timeline)
    assert rows(table) == [
        (SDPA, "flash-2", "attributed", 3), ("aten::mm", "nvjet", "attributed", 3)
    ]  # fmt: skip
    dims = "[[1,8,64,64],[1,8,64,64],[1,8,64,64]]"
    assert {one.inputs["dims"] for one in table.dispatches} == {dims}
    result = check(timeline)
    assert (result.verdict, result.summary) == ("pass", "every attention call ran fused (3 flash-2)")


def test_a_capture_loses_no_work(tmp_path):
    report = loaded(captured(), tmp_path).report
    assert report.counts["launch-captured"].n == 2
    assert report.trust == "good"
    assert not [note for note in report.notes if note.kind == "launch-without-work"]


def test_a_graph_cloned_twice_and_zeros_of_old_exports(tmp_path):
    export = captured(clones=((21, 11), (22, 12), (11, 1), (12, 2)), none=0)
    assert captured_ops(loaded(export, tmp_path)).height == 6


def test_without_the_creation_a_replay_stays_opaque(tmp_path):
    timeline = loaded(captured(created=False), tmp_path)
    assert ("flash-2", "opaque", 3) in [one[1:] for one in rows(dispatch_table(timeline))]
    # Of the captured call itself nothing is known then.
    assert "unknown" in find_calls(timeline).calls["implementation"].to_list()


def test_a_node_of_two_origins_has_none(tmp_path):
    export = captured(clones=((11, 1), (12, 2), (11, 2)))
    found = captured_ops(loaded(export, tmp_path))
    assert found.height == 3


def test_two_processes_do_not_share_nodes(tmp_path):
    export = captured()
    other = export.process(8, physical=0)
    launch = other.call("cudaGraphLaunch_v10000")
    other.kernel(FLASH, 20, launch, graphNodeId=11)
    timeline = loaded(export, tmp_path)
    assert captured_ops(timeline).height == 6
    assert timeline.device_work.height == 7


def test_a_launch_outside_of_a_capture_is_missed(tmp_path):
    export = captured()
    rank = export.process(9, physical=0)
    for _ in range(5):
        rank.call("cudaLaunchKernel_v7000")
    notes = {note.kind: note.text for note in loaded(export, tmp_path).report.notes}
    assert notes["launch-without-work"].startswith("5 of 8 launches have no device event in the file")
