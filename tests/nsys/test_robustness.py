"""Input that nobody should have to debug: each gives one clear line and status 2, or a timeline that says what it lost."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import traceview
from sample_traces.nsys_authoring import Export
from traceview.cli.main import main
from traceview.errors import TraceviewError, UnreadableTraceError

PROGRAM = Path(sys.executable).with_name("traceview")
RAW = b"NVIDIA Tegra Profiler Report 2026@1@2@63-261237276666v0.\x00\x01\x02" + b"x" * 200


def big(rows=4000):
    export = Export()
    rank = export.process(1)
    for _ in range(rows):
        rank.launch("void some_kernel<float>(float*)", us=1)
    return export


def refused(path, **more) -> UnreadableTraceError:
    with pytest.raises(UnreadableTraceError) as caught:
        traceview.load(path, **more)
    assert "\n" not in str(caught.value)
    return caught.value


def test_zeroed_header(author, tmp_path):
    path = author().write_sqlite(tmp_path / "a.sqlite")
    with path.open("r+b") as file:
        file.write(bytes(4096))
    assert "a file whose head is nothing but zeros" in refused(path).why


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_half_written_export(share, tmp_path):
    path = big().write_sqlite(tmp_path / "a.sqlite")
    os.truncate(path, int(path.stat().st_size * share))
    assert "ends before its own end" in refused(path).why


@pytest.mark.parametrize("suffix", ["-journal", "-wal"])
def test_an_export_that_is_still_being_written(author, suffix, tmp_path):
    path = author().write_sqlite(tmp_path / "a.sqlite")
    (tmp_path / f"a.sqlite{suffix}").write_bytes(b"x" * 600)
    error = refused(path)
    assert error.code == "export-unfinished"
    assert f"a.sqlite{suffix}" in error.why


def test_an_export_in_write_ahead_mode_is_read_and_left_alone(author, tmp_path):
    path = author().write_sqlite(tmp_path / "a.sqlite")
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    before = path.read_bytes()
    assert traceview.load(path).device_work.height == 4
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["a.sqlite"]


def test_a_write_ahead_log_that_a_program_keeps_open_is_refused_and_left_alone(author, tmp_path):
    path = author().write_sqlite(tmp_path / "a.sqlite")
    writer = sqlite3.connect(path)
    try:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("CREATE TABLE more (x)")
        writer.commit()
        beside = sorted(tmp_path.iterdir())
        assert [one.name for one in beside] == ["a.sqlite", "a.sqlite-shm", "a.sqlite-wal"]
        before = [(one.read_bytes(), one.stat().st_mtime_ns) for one in beside]
        assert refused(path).code == "export-unfinished"
        assert [(one.read_bytes(), one.stat().st_mtime_ns) for one in beside] == before
    finally:
        writer.close()


def test_locked(author, tmp_path, monkeypatch):
    monkeypatch.setattr("traceview.parsers.nsys.database.LOCK_WAIT_S", 0.05)
    path = author().write_sqlite(tmp_path / "a.sqlite")
    writer = sqlite3.connect(path, isolation_level=None)
    try:
        writer.execute("BEGIN EXCLUSIVE")
        error = refused(path)
    finally:
        writer.close()
    assert error.code == "locked"
    assert traceview.load(path).device_work.height == 4


def test_a_database_of_something_else(tmp_path):
    path = tmp_path / "a.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE users (name TEXT)")
    connection.close()
    assert "an SQLite database without profiler tables" in refused(path).why


@pytest.mark.parametrize("engine", ["adbc", "sqlite3"])
def test_a_damaged_page_costs_its_rows(engine, tmp_path, monkeypatch):
    if engine == "sqlite3":
        monkeypatch.setattr("traceview.parsers.nsys.adbc.AVAILABLE", False)
    path = big().write_sqlite(tmp_path / "a.sqlite")
    # Damage a leaf in the middle of the kernel table: leaves of a table start with byte 13.
    data = bytearray(path.read_bytes())
    with sqlite3.connect(path) as connection:
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'CUPTI_ACTIVITY_KIND_KERNEL'"
        ).fetchone()
    connection.close()
    first = (root - 1) * 4096
    cells = [int.from_bytes(data[first + 12 + 2 * i : first + 14 + 2 * i], "big") for i in range(20)]
    children = [int.from_bytes(data[first + cell : first + cell + 4], "big") for cell in cells]
    page = (children[10] - 1) * 4096
    data[page : page + 4096] = b"\xff" * 4096
    path.write_bytes(data)
    timeline = traceview.load(path)
    kept = timeline.device_work.height
    assert 3800 < kept < 4000
    assert timeline.report.counts["lost-rows"].n == 4000 - kept
    assert timeline.report.trust == "limited"
    assert timeline.device_work["launch_id"].null_count() == 0


def test_text_where_numbers_belong(author, tmp_path):
    path = author().write_sqlite(tmp_path / "a.sqlite")
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE k AS SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL")
        connection.execute(
            "UPDATE k SET streamId = 'seven', start = CAST(start AS TEXT), end = end + 0.0 WHERE rowid = 1"
        )
        connection.execute("DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL")
        connection.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL AS SELECT * FROM k")
    connection.close()
    timeline = traceview.load(path)
    assert timeline.device_work.height == 4
    counts = {kind: count.n for kind, count in timeline.report.counts.items()}
    assert counts["lost-field"] == 1  # 'seven'
    assert timeline.report.counts["lost-field"].example.endswith(": a text instead of an integer")


def test_views_triggers_and_virtual_tables_are_never_touched(author, tmp_path):
    path = author().write_sqlite(tmp_path / "a.sqlite")
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME TO hidden")
        endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x AS start, x AS end FROM c"
        connection.execute(f"CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS {endless}")
        connection.execute("CREATE TRIGGER t AFTER INSERT ON hidden BEGIN DELETE FROM StringIds; END")
        connection.execute(f"CREATE VIEW OSRT_API AS {endless}")
    connection.close()
    # Whoever asked one of them would wait for ever.
    timeline = traceview.load(path)
    assert timeline.events.filter(pl.col("kind") == "kernel").is_empty()
    assert timeline.device_work.height == 2  # the copies
    notes = {note.kind: note for note in timeline.report.notes}
    assert "CUPTI_ACTIVITY_KIND_KERNEL cannot be read (it is a view)" in notes["device-work-lost"].text
    assert "OSRT_API cannot be read (it is a view)" in notes["table-unread"].text
    assert timeline.report.counts["lost-table"].n == 2
    assert timeline.report.trust == "poor"


def test_generated_columns_are_not_computed(author, tmp_path):
    path = author().write_sqlite(tmp_path / "a.sqlite")
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE OSRT_API (start INTEGER, globalTid INTEGER, nameId INTEGER, end INTEGER GENERATED ALWAYS AS (length(zeroblob(50000000))) VIRTUAL)"
        )
        connection.execute("INSERT INTO OSRT_API (start, globalTid, nameId) VALUES (1, 2, 3)")
    connection.close()
    assert traceview.load(path).device_work.height == 4


@pytest.mark.parametrize("name", ["a b.sqlite", "a?b#c%20.sqlite", "ü 'quoted'.sqlite", "-a.sqlite"])
def test_odd_file_names(author, name, tmp_path):
    assert traceview.load(author().write_sqlite(tmp_path / name)).device_work.height == 4


def test_a_file_and_its_folder_are_never_changed(author, tmp_path):
    path = author().write_sqlite(tmp_path / "a.sqlite")
    before, stamp = path.read_bytes(), path.stat().st_mtime_ns
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        timeline = traceview.load(path)
        assert timeline.details["grid"].height == 2
    finally:
        tmp_path.chmod(0o755)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (before, stamp)
    assert [one.name for one in tmp_path.iterdir()] == ["a.sqlite"]


def test_a_folder_without_names(author, tmp_path):
    folder = author().write_folder(tmp_path / "a_pqtdir", "parquet")
    (folder / "StringIds.parquet").unlink()
    timeline = traceview.load(folder)
    assert timeline.device_work.height == 4
    assert set(timeline.events.filter(pl.col("kind") == "kernel")["name"].cast(pl.String)) == {"unnamed kernel"}
    assert timeline.report.counts["lost-name"].n > 2


@pytest.mark.parametrize("damage", ["cut", "garbage"])
def test_a_folder_with_a_damaged_table(author, damage, tmp_path):
    folder = author().write_folder(tmp_path / "a_pqtdir", "parquet")
    path = folder / "CUPTI_ACTIVITY_KIND_MEMCPY.parquet"
    path.write_bytes(path.read_bytes()[:300] if damage == "cut" else b"PAR1" + b"\xff" * 500 + b"PAR1")
    timeline = traceview.load(folder)
    assert timeline.events.filter(pl.col("kind") == "kernel").height == 2
    assert timeline.report.counts["lost-table"].n == 1
    assert timeline.report.trust == "poor"
    (text,) = [note.text for note in timeline.report.notes if note.kind == "device-work-lost"]
    assert text == (
        "The table CUPTI_ACTIVITY_KIND_MEMCPY cannot be read (its file is damaged): "
        "device work is missing, and times are lower bounds."
    )


def test_a_damaged_table_of_host_calls_is_named_and_only_limits(author, tmp_path):
    folder = author().write_folder(tmp_path / "a_pqtdir", "parquet")
    (folder / "CUPTI_ACTIVITY_KIND_RUNTIME.parquet").write_bytes(b"PAR1" + b"\xff" * 500 + b"PAR1")
    notes = {note.kind: note for note in traceview.load(folder).report.notes}
    assert "CUPTI_ACTIVITY_KIND_RUNTIME" in notes["table-unread"].text
    assert notes["table-unread"].trust == "limited"


def test_strings_alone_are_no_export(tmp_path):
    path = tmp_path / "a.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
    connection.close()
    assert "an SQLite database without profiler tables" in refused(path).why


def test_ranges_without_strings_are_called_unnamed(author, tmp_path):
    path = author().write_sqlite(tmp_path / "a.sqlite")
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM StringIds WHERE value = 'denoise'")
    connection.close()
    timeline = traceview.load(path)
    ranges = timeline.events.filter(pl.col("kind") == "annotation")["name"].cast(pl.String)
    assert ranges.to_list() == ["unnamed range"] * 2
    assert timeline.report.counts["lost-name"].n == 2


def test_a_folder_among_others(author, tmp_path):
    author().write_folder(tmp_path / "results" / "a_pqtdir", "parquet")
    (tmp_path / "results" / "notes.txt").write_text("text")
    assert traceview.load(tmp_path / "results").device_work.height == 4
    assert traceview.load(tmp_path).device_work.height == 4
    assert traceview.load(str(tmp_path / "res*" / "*_pqtdir")).device_work.height == 4


def test_parquet_files_of_something_else_are_no_export(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    pl.DataFrame({"a": [1]}).write_parquet(folder / "train.parquet")
    with pytest.raises(UnreadableTraceError):
        traceview.load(folder)


def fake_nsys(folder, body):
    program = folder / "nsys"
    program.write_text(f"#!{sys.executable}\nimport shutil, sys, time\n{body}\n")
    program.chmod(0o755)
    return folder


@pytest.fixture
def report(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    path = tmp_path / "run.nsys-rep"
    path.write_bytes(RAW)
    return path


def test_a_raw_report_without_nsys(report):
    error = refused(report)
    target = report.with_suffix(".sqlite")
    assert str(error) == (
        f"{report}: this is a raw Nsight Systems report of version 2026.1.2, and no nsys program is on PATH to export it. "
        f"Run: nsys export --type sqlite --force-overwrite true --output {target} {report} and give run.sqlite."
    )


def test_a_raw_report_is_exported_once_and_without_private_facts(report, author, tmp_path):
    export = author()
    secret = export.string("HF_TOKEN=secret")
    export.tables["ProcessStreams"] = [{"globalPid": 1, "filenameId": 2, "contentId": secret}]
    export.add("META_DATA_CAPTURE", name="PROCESS_0:ENVIRONMENT_VARIABLE", value="HF_TOKEN=secret")
    export.add("META_DATA_EXPORT", name="EXPORT_PARAM_INPUT_PATH", value="/home/jane/secret")
    export.add("TARGET_INFO_SYSTEM_ENV", name="Hostname", value="secret-host")
    export.tables["ProcessStreams"][0]["filenameId"] = export.string("/home/secret/stdout.log")
    from sample_traces import nsys_authoring

    nsys_authoring.COLUMNS.setdefault("ProcessStreams", ("globalPid", "filenameId", "contentId"))
    ready = export.write_sqlite(tmp_path / "ready.db")
    with sqlite3.connect(ready) as connection:
        for table in ("PROCESSES", "DIAGNOSTIC_EVENT"):
            connection.execute(f"DROP TABLE IF EXISTS {table}")
        connection.execute("CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT)")
        (packed,) = connection.execute("SELECT globalPid FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()
        connection.execute("INSERT INTO PROCESSES VALUES (?, 300, '/home/secret/bin/python3')", (packed,))
        connection.execute("CREATE TABLE DIAGNOSTIC_EVENT (severity INTEGER, text TEXT)")
        lost = "/home/secret/x: Not all CUDA events might have been collected at /secret."
        connection.execute("INSERT INTO DIAGNOSTIC_EVENT VALUES (2, ?)", (lost,))
        # What a later version may add.
        connection.execute("CREATE TABLE NEW_INFO (path TEXT)")
        connection.execute("INSERT INTO NEW_INFO VALUES ('/home/secret')")
        connection.execute("CREATE VIEW NEW_VIEW AS SELECT 'secret'")
        connection.execute("ALTER TABLE NVTX_EVENTS ADD COLUMN payload")
        connection.execute("UPDATE NVTX_EVENTS SET payload = 'secret'")
    connection.close()
    log = tmp_path / "calls"
    fake_nsys(
        tmp_path / "bin",
        f"open({str(log)!r}, 'a').write(' '.join(sys.argv[1:]) + chr(10))\nshutil.copy({str(ready)!r}, sys.argv[sys.argv.index('--output') + 1])",
    )
    seen = []
    first = traceview.load(report, progress=seen.append)
    assert first.device_work.height == 4
    assert first.runs[0].path == report
    assert seen[-1] == 1.0
    assert traceview.load(report).device_work.height == 4
    assert len(log.read_text().splitlines()) == 1
    (cached,) = (tmp_path / "cache").rglob("*.sqlite")
    assert b"secret" not in cached.read_bytes()
    again, plain = traceview.load(report), traceview.load(shutil.copy(ready, tmp_path / "plain.sqlite"))
    assert again.events.equals(plain.events, null_equal=True)
    assert "python3" in again.processes["name"].to_list()
    for timeline in (again, plain):
        assert "profiler-dropped-records" in [note.kind for note in timeline.report.notes]
    assert cached.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("body", "limit_s", "why"),
    [
        ("sys.exit(1)", 600.0, "nsys ended with status 1"),
        ("time.sleep(600)", 0.5, "nsys did not finish within"),
        ("pass", 600.0, "nsys exported nothing that can be read"),
    ],
)
def test_an_export_that_fails(report, body, limit_s, why, tmp_path, monkeypatch):
    monkeypatch.setattr("traceview.parsers.nsys.rep_file.TIME_LIMIT_S", limit_s)
    fake_nsys(tmp_path / "bin", body)
    error = refused(report)
    assert why in error.why
    assert "nsys export --type sqlite" in error.next_step
    assert not list((tmp_path / "cache").rglob("*.sqlite"))


def test_the_export_beside_a_report_is_used(report, author):
    author().write_sqlite(report.with_suffix(".sqlite"))
    assert traceview.load(report).device_work.height == 4
    # In a folder, both are the same recording.
    folder = report.parent / "both"
    folder.mkdir()
    shutil.copy2(report, folder / "run.nsys-rep")
    shutil.copy2(report.with_suffix(".sqlite"), folder / "run.sqlite")
    assert traceview.load(folder).device_work.height == 4


@pytest.mark.parametrize("command", ["report", "kernels", "check-dispatch", "explain"])
def test_the_command_ends_with_2_and_one_line(command, tmp_path):
    path = tmp_path / "run.nsys-rep"
    path.write_bytes(RAW)
    environment = {**os.environ, "PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [str(PROGRAM), command, str(path)], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"traceview: error: {path}: this is a raw Nsight Systems report")


def test_nothing_private_is_shown(author, tmp_path):
    export = author()
    for name, value in (
        ("PROCESS_0:ENVIRONMENT_VARIABLE", "HF_TOKEN=secret"),
        ("COMMAND_LINE", "python secret.py"),
        ("USER", "secret"),
    ):
        export.add("META_DATA_CAPTURE", name=name, value=value)
    export.add("TARGET_INFO_SYSTEM_ENV", name="Hostname", value="secret")
    export.add("DIAGNOSTIC_EVENT", severity=2, text="cannot write /home/secret/x")
    export.add("META_DATA_CAPTURE", name="CAPTURE_EVENT_TYPE", value="a \x1b[31m secret")
    path = export.write_sqlite(tmp_path / "a.sqlite")
    timeline = traceview.load(path)
    assert "secret" not in repr((timeline.runs, timeline.report, timeline.processes.rows(), timeline.threads.rows()))
    for command in ("report", "check-dispatch"):
        done = subprocess.run(
            [str(PROGRAM), command, str(path), "--format", "json"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0
        assert "secret" not in done.stdout + done.stderr


def test_random_damage_never_ends_in_a_traceback(author, tmp_path):
    source = author().write_sqlite(tmp_path / "a.sqlite").read_bytes()
    path = tmp_path / "b.sqlite"
    chance = random.Random(7)  # noqa: S311
    outcomes = set()
    for _ in range(60):
        data = bytearray(source)
        for _ in range(chance.choice([1, 5, 50, 300])):
            data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(data)
        try:
            timeline = traceview.load(path)
            timeline.validate()
            for name in timeline.details:
                timeline.details[name]
            outcomes.add("read")
        except TraceviewError as error:
            outcomes.add(error.code)
    assert outcomes >= {"read", "sqlite", "bad-database"}


def test_text_that_is_not_utf_8(author, tmp_path):
    path = author().write_sqlite(tmp_path / "a.sqlite")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE StringIds SET value = CAST(x'ff64656e6f697365' AS TEXT) WHERE value = 'denoise'")
        connection.execute("UPDATE NVTX_EVENTS SET text = CAST(x'c3616273' AS TEXT) WHERE text IS NOT NULL")
    connection.close()
    timeline = traceview.load(path)
    assert timeline.report.counts["repaired-text"].n == 2 + 1
    names = set(timeline.events.filter(pl.col("kind") == "annotation")["name"].cast(pl.String))
    assert names == {"\ufffddenoise", "\ufffdabs"}


@pytest.mark.parametrize(
    "private",
    ["CAST(CAST('HOME=' AS BLOB) || x'ff' || CAST('secret' AS BLOB) AS TEXT)", "CAST('HOME=secret' AS BLOB)"],
)
def test_damaged_text_that_no_event_uses_is_not_shown(private, author, tmp_path, capsys):
    path = author().write_sqlite(tmp_path / "a.sqlite")
    with sqlite3.connect(path) as connection:
        connection.execute(f"INSERT INTO StringIds VALUES (77777, {private})")  # noqa: S608
        # Text that is not UTF-8 makes the careful reader look at the table; a blob alone is read as text.
        connection.execute("UPDATE StringIds SET value = CAST(x'ff64656e6f697365' AS TEXT) WHERE value = 'denoise'")
        connection.execute("CREATE TABLE k AS SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL")
        connection.execute("UPDATE k SET streamId = 'HOME=secret' WHERE rowid = 1")
        connection.execute("DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL")
        connection.execute("ALTER TABLE k RENAME TO CUPTI_ACTIVITY_KIND_KERNEL")
    connection.close()
    counts = traceview.load(path).report.counts
    assert counts["repaired-text"].example.startswith("StringIds.value, id ")
    assert counts["lost-field"].example == "CUPTI_ACTIVITY_KIND_KERNEL.streamId: a text instead of an integer"
    for form in ("text", "json"):
        main(["kernels", str(path), "--format", form])
        output = capsys.readouterr()
        assert "kernel" in output.out
        assert "secret" not in output.out + output.err
