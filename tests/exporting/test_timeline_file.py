"""A timeline in a Parquet file comes back the same, and a file that is not one is refused in one line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from authored_timeline import kernel, launch, op, timeline
from same_timeline import assert_same_timeline, sample_inputs
from traceview import load, timeline_file
from traceview.cli.main import main
from traceview.errors import TraceviewError, UnreadableTraceError, UsageError
from traceview.exporting.convert import convert
from traceview.timeline import Count, DeviceLoss, ImportReport, Note, RunInfo, Trust
from traceview.timeline_facts import UnfitFileError


@pytest.mark.parametrize("path", sample_inputs(), ids=lambda path: path.name)
def test_every_sample_comes_back_the_same(path, tmp_path):
    loaded = load(path)
    target = tmp_path / "run.parquet"
    convert(loaded, target)
    again = load(target)
    again.validate()
    assert_same_timeline(loaded, again, paths=False)
    assert {run.path for run in again.runs} == {target}


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["pytorch", "nsys", "xprof"])
def test_every_real_trace_comes_back_the_same(folder, corpus, tmp_path):
    target = tmp_path / "run.parquet"
    count = 0
    for path in sorted((corpus / folder).iterdir()):
        if path.stat().st_size > (900_000 if folder == "xprof" else 1_100_000 if folder == "pytorch" else 3_000_000):
            continue
        try:
            loaded = load(path)
        except TraceviewError:
            continue
        timeline_file.write(loaded, target)
        again, _ = timeline_file.read(target, paths=[run.path for run in loaded.runs])
        assert_same_timeline(loaded, again)
        count += 1
    assert count >= 5


def test_what_is_said_of_the_import_comes_back(tmp_path):
    report = ImportReport(
        {"lost-line": Count(3, "e\udc00x"), "n": Count(0)}, (Note("k", "text", Trust.POOR),), True, DeviceLoss(1, 2)
    )
    metadata = {"a": (1, (2, "x")), "b": [1.5, None, {"c": True}], "tuple": {"object": 1}}
    runs = (RunInfo(Path("a.json"), "kineto", "p", "1", 1_700_000_000_000_000_123, 3, 8, metadata),)
    whole = replace(timeline(op("aten::mm", 0, 5), launch(1, 7), kernel("k", 3, 9, 7)), runs=runs, report=report)
    timeline_file.write(whole, tmp_path / "t.parquet")
    again, _ = timeline_file.read(tmp_path / "t.parquet", paths=[Path("a.json")])
    assert_same_timeline(whole, again)


def test_a_timeline_without_events(tmp_path):
    empty = timeline()
    timeline_file.write(empty, tmp_path / "t.parquet")
    assert_same_timeline(empty, timeline_file.read(tmp_path / "t.parquet")[0], paths=False)


def test_details_of_all_sorts(tmp_path, monkeypatch):
    whole = timeline(*(op(f"op{at}", at, at + 1) for at in range(5)))
    categorical = pl.Series(['"x"', "[1]", '"x"'], dtype=pl.Categorical)
    details = {
        "few": pl.DataFrame(
            {"id": [1, 4], "value": [-(2**63), 2**63 - 1]}, schema={"id": pl.UInt32, "value": pl.Int64}
        ),
        "many (text)": pl.DataFrame({"id": pl.Series([0, 2, 2], dtype=pl.UInt32), "value": categorical}),
        "none": pl.DataFrame(schema={"id": pl.UInt32, "value": pl.Categorical}),
    }
    whole = replace(whole, details=details)
    # Rows in pieces of two, and details in files rather than in memory.
    monkeypatch.setattr(timeline_file, "_ROWS", 2)
    monkeypatch.setattr(timeline_file, "_IN_MEMORY", 1)
    timeline_file.write(whole, tmp_path / "t.parquet")
    assert_same_timeline(whole, timeline_file.read(tmp_path / "t.parquet")[0], paths=False)
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


def test_a_detail_can_be_read_after_the_file_is_gone(tmp_path):
    whole = replace(
        timeline(op("a", 0, 1)),
        details={"d": pl.DataFrame({"id": [0], "value": [7]}, schema={"id": pl.UInt32, "value": pl.Int64})},
    )
    timeline_file.write(whole, tmp_path / "t.parquet")
    again, _ = timeline_file.read(tmp_path / "t.parquet")
    (tmp_path / "t.parquet").unlink()
    assert again.details["d"].rows() == [(0, 7)]


def test_other_readers_find_names_for_keys(tmp_path):
    sample = next(path for path in sample_inputs() if path.name.startswith("flash-requested-math"))
    convert(load(sample), tmp_path / "t.parquet")
    frame = pl.read_parquet(tmp_path / "t.parquet")
    row = frame.filter((pl.col("kind") == "kernel") & (pl.col("op") == "aten::bmm")).row(0, named=True)
    assert row["device_name"] == "NVIDIA H100 80GB HBM3"
    assert (row["family"], row["device_ordinal"], row["launch"]) == ("gemm", 0, "cudaLaunchKernel")
    mm = frame.filter((pl.col("kind") == "op") & pl.col("dims").is_not_null()).row(0, named=True)
    assert json.loads(str(mm["dims"]))
    assert mm["thread_name"] is not None


def test_nothing_of_the_environment_is_written(tmp_path):
    whole = replace(timeline(op("a", 0, 1)), runs=(RunInfo(Path("/home/somebody/secret/t.json"), "kineto", "p"),))
    timeline_file.write(whole, tmp_path / "t.parquet")
    data = (tmp_path / "t.parquet").read_bytes()
    assert b"somebody" not in data
    assert b"t.json" in data


@pytest.fixture
def written(tmp_path):
    whole = timeline(op("aten::mm", 0, 5), launch(1, 7), kernel("k", 3, 9, 7))
    timeline_file.write(whole, tmp_path / "good.parquet", compression="lz4")
    return tmp_path / "good.parquet"


def rewritten(written, target, change_frame=lambda frame: frame, change_head=lambda head: head):
    """The file again, with events or head changed as a stranger could."""
    metadata = dict(pl.read_parquet_metadata(written))
    metadata[timeline_file.MARK] = json.dumps(change_head(json.loads(metadata[timeline_file.MARK])))
    kept = {key: value for key, value in metadata.items() if key.startswith("traceview.")}
    change_frame(pl.read_parquet(written)).write_parquet(target, metadata=kept)
    return target


@pytest.mark.parametrize(
    ("column", "value"),
    [("launch_id", 99), ("op_id", 3), ("parent_id", 2**32 - 1), ("process", 5), ("thread", 9), ("device", 1)],
)
def test_a_key_that_leads_nowhere_is_refused(column, value, written, tmp_path):
    bad = rewritten(written, tmp_path / "bad.parquet", lambda f: f.with_columns(pl.lit(value, pl.UInt32).alias(column)))
    with pytest.raises(UnfitFileError, match=column):
        timeline_file.read(bad)
    with pytest.raises(UnreadableTraceError, match="cannot be read"):
        load(bad)


@pytest.mark.parametrize(
    ("frame", "head", "why"),
    [
        (lambda f: f.drop("dur_ns"), None, "dur_ns"),
        (lambda f: f.with_columns(pl.col("dur_ns").cast(pl.Int32)), None, "dur_ns"),
        (lambda f: f.with_columns(dur_ns=-pl.col("dur_ns")), None, "dur_ns"),
        (lambda f: f.reverse(), None, "breaks the contract"),
        (lambda f: f.with_columns(kind=pl.lit("nonsense")), None, "kind|nonsense"),
        (lambda f: f.with_columns(name=None), None, "name"),
        (lambda f: f.head(1), None, "holds 1 events and says 3"),
        (None, lambda h: h | {"version": 2}, "version is 2"),
        (None, lambda h: h | {"schema": "x" * 500}, "schema is"),
        (None, lambda h: h | {"rows": 10**15}, "cannot be"),
        (None, lambda h: h | {"runs": []}, "runs"),
        (None, lambda h: h | {"runs": [h["runs"][0] | {"format": 1}]}, "format is no text"),
        (None, lambda h: h | {"runs": [{}]}, "metadata"),
        (None, lambda h: h | {"report": 5}, "report"),
        (None, lambda h: h | {"details": [["a", 1]]}, "details"),
        (None, lambda h: [], "description"),
    ],
)  # fmt: skip
def test_a_file_that_breaks_the_contract_is_refused(frame, head, why, written, tmp_path, capsys):
    bad = rewritten(written, tmp_path / "bad.parquet", frame or (lambda f: f), head or (lambda h: h))
    with pytest.raises(UnfitFileError, match=why):
        timeline_file.read(bad)
    assert main(["report", str(bad)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"traceview: error: {bad}: this timeline file cannot be read: ")
    assert said.count("\n") == 1
    assert len(said) < 700


def test_a_cut_or_damaged_file_is_refused(written, tmp_path, capsys):
    data = written.read_bytes()
    bad = tmp_path / "bad.parquet"
    for size in (0, 3, 8, 100, len(data) // 2, len(data) - 1):
        bad.write_bytes(data[:size])
        assert main(["report", str(bad)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 6
    assert "defect in traceview" not in said
    refused = 0
    for at in range(4, len(data) - 8, len(data) // 200):
        bad.write_bytes(data[:at] + bytes([data[at] ^ 0x5A]) + data[at + 1 :])
        try:
            load(bad).validate()
        except TraceviewError:
            refused += 1
    assert refused > 50


def test_another_parquet_file_is_no_trace(tmp_path, capsys):
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "x.parquet")
    assert main(["report", str(tmp_path / "x.parquet")]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_timeline_is_loaded_alone(written):
    sample = next(path for path in sample_inputs() if path.name.startswith("gaps-and-copies"))
    with pytest.raises(UsageError, match="can only be loaded by itself"):
        load([sample, written])
    with pytest.raises(UsageError, match="can only be loaded by itself"):
        load([written, _copy(written)])


def _copy(path):
    other = path.with_name("other.parquet")
    other.write_bytes(path.read_bytes())
    return other


def test_beside_the_trace_that_it_was_made_of_it_is_left_out(tmp_path):
    sample = next(path for path in sample_inputs() if path.name.startswith("gaps-and-copies"))
    (tmp_path / sample.name).write_bytes(sample.read_bytes())
    loaded = load(tmp_path)
    convert(loaded, tmp_path / "t.parquet")
    again = load(tmp_path)
    assert again.events.equals(loaded.events)
    assert [note.text for note in again.report.notes if note.kind == "trace-left-out"] == [
        "t.parquet was left out: traceview wrote it from a trace."
    ]
