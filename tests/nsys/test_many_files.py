"""Exports of several ranks, and one export beside a trace of another format."""

from __future__ import annotations

import traceview
from sample_traces.nsys_authoring import H100, Export


def rank_file(path, pid, shift_ns):
    export = Export()
    export.tables["TARGET_INFO_SESSION_START_TIME"][0]["utcEpochNs"] += shift_ns
    one = export.process(pid, H100)
    with one.range("forward"):
        one.launch(f"kernel_of_{pid}")
    return export.write_sqlite(path)


def test_two_ranks_lie_on_one_clock(tmp_path):
    rank_file(tmp_path / "rank0.sqlite", 10, 0)
    rank_file(tmp_path / "rank1.sqlite", 11, 2_000_000)
    timeline = traceview.load(tmp_path)
    timeline.validate()
    assert timeline.processes.select("run", "pid").rows() == [(0, 10), (1, 11)]
    assert timeline.devices.height == 2
    assert timeline.device_work["launch_id"].null_count() == 0
    first, second = timeline.device_work["start_ns"]
    assert second - first == 2_000_000
    assert [value for _, value in timeline.details["grid"].rows()] == ["[8,2,1]"] * 2


def test_the_same_export_twice_counts_once(tmp_path):
    one = rank_file(tmp_path / "a.sqlite", 10, 0)
    (tmp_path / "b.sqlite").write_bytes(one.read_bytes())
    timeline = traceview.load(tmp_path)
    assert len(timeline.runs) == 1
    assert "duplicate-file" in {note.kind for note in timeline.report.notes}
