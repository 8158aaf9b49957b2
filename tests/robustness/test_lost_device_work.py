"""Device work that the import lost: whatever the format, beyond a small share no absence is believed."""

from __future__ import annotations

import json
import sqlite3

import pytest

import traceview
from sample_traces.nsys_authoring import Export
from traceview.gate import Verdict, check
from traceview.losses import WORK_LOST, WORK_MAY_BE_LOST
from traceview.timeline import DeviceLoss, ImportReport

GEMM = "ampere_sgemm_128x64_tn"
FLASH = "flash_fwd_kernel"


def nsys(folder, good: int, bad: int, damage: str = "start = 'x'"):
    export = Export()
    rank = export.process(1)
    for name in [*[GEMM] * good, *[FLASH] * bad]:
        rank.launch(name, us=1)
    path = export.write_sqlite(folder / "a.sqlite")
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE k AS SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL")
        connection.execute("DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL")
        flash = "(SELECT id FROM StringIds WHERE value LIKE '%flash%')"
        connection.execute(f"UPDATE k SET {damage} WHERE demangledName IN {flash} OR shortName IN {flash}")  # noqa: S608
        connection.execute("ALTER TABLE k RENAME TO CUPTI_ACTIVITY_KIND_KERNEL")
    connection.close()
    return path


def kineto(folder, good: int, bad: int, **damage):
    event = {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "dur": 1, "args": {"device": 0, "stream": 7}}
    events = [{**event, "ts": 1000 + at, "name": GEMM} for at in range(good)]
    events += [{**event, "ts": 5000 + at, "name": FLASH, **damage} for at in range(bad)]
    path = folder / "a.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def notes(timeline) -> list[tuple[str, str]]:
    return [(n.kind, n.trust.value) for n in timeline.report.notes if n.kind in (WORK_LOST, WORK_MAY_BE_LOST)]


@pytest.mark.parametrize(
    "damage", ["start = 'x'", "start = NULL", "end = start - 5", "start = 1 << 62", "deviceId = 'x'"]
)
def test_lost_device_rows_make_an_export_poor_and_prove_no_absence(damage, tmp_path):
    timeline = traceview.load(nsys(tmp_path, 24, 20, damage))
    assert timeline.report.device_loss == DeviceLoss(20, 20)
    assert notes(timeline) == [(WORK_LOST, "poor")]
    result = check(timeline)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "20 of 44 rows of device work (45.5 %) could not be read" in result.summary


@pytest.mark.parametrize("damage", [{"dur": -5}, {"ts": 1e15}])
def test_device_events_with_impossible_times_make_a_trace_poor(damage, tmp_path):
    timeline = traceview.load(kineto(tmp_path, 24, 20, **damage))
    assert timeline.report.device_loss == DeviceLoss(20, 20)
    assert notes(timeline) == [(WORK_LOST, "poor")]
    assert check(timeline).verdict is Verdict.INCONCLUSIVE


def test_events_that_may_have_been_device_work_prove_no_absence_either(tmp_path):
    timeline = traceview.load(kineto(tmp_path, 24, 20, ts="x"))
    assert timeline.report.device_loss == DeviceLoss(0, 20)
    assert notes(timeline) == [(WORK_MAY_BE_LOST, "limited")]
    result = check(timeline)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "up to 20 rows that could not be read may have been device work" in result.summary


@pytest.mark.parametrize("make", [nsys, kineto])
def test_a_small_share_changes_nothing(make, tmp_path):
    path = make(tmp_path, 95, 5) if make is nsys else make(tmp_path, 95, 5, ts="x")
    timeline = traceview.load(path)
    assert timeline.report.device_loss.most == 5
    assert notes(timeline) == []
    assert check(timeline).verdict is Verdict.PASS


def test_lost_host_rows_are_no_lost_device_work(tmp_path):
    timeline = traceview.load(kineto(tmp_path, 24, 20, cat="cpu_op", dur=-5))
    assert timeline.report.counts["lost-negative-duration"].n == 20
    assert notes(timeline) == []


def test_one_rank_that_lost_much_is_not_hidden_by_others(tmp_path):
    paths = []
    for rank, bad in enumerate([20, *[0] * 30]):
        folder = tmp_path / str(rank)
        folder.mkdir()
        path = kineto(folder, 24, bad, dur=-5)
        document = json.loads(path.read_text())
        document["distributedInfo"] = {"rank": rank, "world_size": 31}
        path.write_text(json.dumps(document))
        paths.append(path)
    timeline = traceview.load(paths)
    assert timeline.report.device_loss == DeviceLoss(20, 20)
    assert notes(timeline) == [(WORK_LOST, "poor")]


def test_one_row_is_told_as_one(tmp_path):
    def told(name, good, **damage):
        folder = tmp_path / name
        folder.mkdir()
        return [note.text for note in traceview.load(kineto(folder, good, 1, **damage)).report.notes]

    lost = told("none", 0, dur=-5)
    assert any(text.startswith("1 of 1 row of device work (100.0 %) could not be read: ") for text in lost)
    (may_be,) = [text for text in told("one", 1, ts="x") if "may have been" in text]
    assert may_be == "One row that could not be read may have been device work; 1 row of device work could be read."


def test_of_two_reports_the_losses_add_up():
    both = ImportReport(device_loss=DeviceLoss(1, 2)) + ImportReport(device_loss=DeviceLoss(3, 4))
    assert both.device_loss == DeviceLoss(4, 6)
    assert (ImportReport() + ImportReport(device_loss=DeviceLoss(3, 4))).device_loss == DeviceLoss(3, 4)
    assert (ImportReport() + ImportReport()).device_loss is None
