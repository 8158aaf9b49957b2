"""Every generation of the schema, every kind of export and every engine give the same timeline."""

from __future__ import annotations

import sqlite3

import polars as pl
import pytest

import traceview
from sample_traces.nsys_authoring import GENERATIONS, UNIX_START_NS
from traceview.linking import finish
from traceview.parsers.nsys.reader import read

KEYS = (
    "start_ns",
    "dur_ns",
    "kind",
    "name",
    "process",
    "thread",
    "device",
    "stream",
    "correlation",
    "launch_id",
    "op_id",
    "bytes",
)


def rows(timeline):
    return timeline.events.select(
        pl.col(KEYS[2:4]).cast(pl.String), *(k for k in KEYS if k not in ("kind", "name"))
    ).rows()


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_generation_reads_the_same(author, generation, tmp_path):
    timeline = traceview.load(author(generation).write_sqlite(tmp_path / "a.sqlite"))
    timeline.validate()
    assert rows(timeline) == rows(traceview.load(author("2026").write_sqlite(tmp_path / "b.sqlite")))
    (run,) = timeline.runs
    assert (run.format, run.producer) == ("nsys", "Nsight Systems")
    known = GENERATIONS[generation].meta is not None
    assert run.producer_version == (GENERATIONS[generation].version if known else None)
    assert run.origin_unix_ns == UNIX_START_NS + 1_000_000_000
    assert ("version-unknown" in {note.kind for note in timeline.report.notes}) is not known


@pytest.mark.parametrize("kind", ["parquet", "arrow", "stream"])
def test_folders_read_the_same(author, kind, tmp_path):
    export = author()
    database = traceview.load(export.write_sqlite(tmp_path / "a.sqlite"))
    folder = traceview.load(export.write_folder(tmp_path / "a_dir", kind))
    folder.validate()
    assert rows(folder) == rows(database)
    assert folder.devices.equals(database.devices)
    assert folder.inputs.equals(database.inputs)
    assert sorted(folder.details) == sorted(database.details)
    for name in database.details:
        assert folder.details[name].equals(database.details[name]), name


@pytest.mark.parametrize("engine", ["adbc", "sqlite3"])
def test_engines_read_the_same(author, engine, tmp_path):
    if engine == "adbc":
        pytest.importorskip("adbc_driver_sqlite")
    path = author().write_sqlite(tmp_path / "a.sqlite")
    timeline = finish(read(path, run=0, progress=None, engine=engine))
    assert rows(timeline) == rows(traceview.load(path))


def test_reading_without_the_extra(author, tmp_path, monkeypatch):
    path = author().write_sqlite(tmp_path / "a.sqlite")
    expected = rows(traceview.load(path))
    monkeypatch.setattr("traceview.parsers.nsys.adbc.AVAILABLE", False)
    monkeypatch.setattr("traceview.parsers.nsys.adbc.read", None)  # would be a TypeError if it were called
    assert rows(traceview.load(path)) == expected


def test_tables_with_a_version_suffix(author, tmp_path):
    path = author().write_sqlite(tmp_path / "a.sqlite")
    expected = rows(traceview.load(path))
    with sqlite3.connect(path) as connection:
        for table in ("NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_KERNEL"):
            connection.execute(f"ALTER TABLE {table} RENAME TO {table}_V3")
            connection.execute(f"CREATE TABLE {table}_V2 (start INTEGER)")
    connection.close()
    assert rows(traceview.load(path)) == expected


def test_an_index_of_another_tool_changes_no_order(author, tmp_path):
    path = author().write_sqlite(tmp_path / "a.sqlite")
    before = traceview.load(path)
    grid = before.details["grid"]
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE INDEX other ON CUPTI_ACTIVITY_KIND_KERNEL (gridX, gridY, gridZ, start DESC)")
        connection.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME ADD COLUMN name TEXT DEFAULT 'x'")
    connection.close()
    after = traceview.load(path)
    assert rows(after) == rows(before)
    assert after.details["grid"].equals(grid)
