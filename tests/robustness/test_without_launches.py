"""PyTorch traces that a profiler, a filter or a viewer left without host calls or without ops."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from traceview import load

if TYPE_CHECKING:
    from pathlib import Path

    from traceview.timeline import Timeline


def loaded(folder: Path, *events: dict[str, Any]) -> Timeline:
    path = folder / "trace.json"
    path.write_text(json.dumps({"traceEvents": list(events)}), encoding="utf-8")
    return load(path)


def row(cat: str, name: str, pid: int, at: float, **args: object) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": 7, "ts": at, "dur": 5, "args": args}


def ops(pid: int) -> list[dict[str, Any]]:
    return [row("cpu_op", "aten::mm", pid, 10 * at, **{"External id": at}) for at in range(1, 21)]


def test_work_finds_its_op_by_the_recorded_id_where_no_launch_is_left(tmp_path: Path) -> None:
    """Process 0 is how Kineto labels the lanes of device 0: it owns a row, but no work."""
    stray = row("cpu_op", "[label]", 0, 1)
    work = row("kernel", "gemm", 0, 300, device=0, stream=7, **{"External id": 3})
    timeline = loaded(tmp_path, stray, *ops(4242), work)
    op_id = timeline.device_work["op_id"][0]
    assert timeline.events["name"][op_id] == "aten::mm"
    owner = timeline.processes.row(timeline.device_work["process"][0], named=True)
    assert owner["pid"] == 4242


def test_work_of_several_processes_without_launches_belongs_to_none(tmp_path: Path) -> None:
    work = row("kernel", "gemm", 0, 900, device=0, stream=7, **{"External id": 3})
    timeline = loaded(tmp_path, *ops(1), *ops(2), work)
    assert timeline.device_work["process"].to_list() == [None]
    assert any(note.kind == "device-lane-without-process" for note in timeline.report.notes)


def test_a_file_that_begins_with_memory_instants_is_recognised(tmp_path: Path) -> None:
    instant = {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 1.5}
    late = row("kernel", "gemm", 0, 3, device=0, stream=7)
    path = tmp_path / "trace.json"
    many = [instant | {"args": {"Bytes": n, "pad": "x" * 200}} for n in range(3000)]
    path.write_text(json.dumps({"traceEvents": [*many, late]}), encoding="utf-8")
    timeline = load(path)
    assert timeline.runs[0].format == "kineto"
    assert timeline.device_work.height == 1
