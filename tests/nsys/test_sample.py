"""The sample in the repository is what its program writes, and says why its slow calls are slow."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from sample_traces import broken_binary, samples_nsys, samples_nsys_pair
from sample_traces.nsys_authoring import Export
from traceview.cli.main import main
from traceview.dispatch import dispatch_table
from traceview.loading import load

FOLDER = Path(samples_nsys.__file__).parent
SAMPLE = FOLDER / samples_nsys.FILE


def dump(path):
    with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as connection:
        lines = list(connection.iterdump())
    connection.close()
    return lines


def test_the_files_are_what_their_programs_write(tmp_path):
    written = [*samples_nsys.build(tmp_path), *samples_nsys_pair.build(tmp_path)]
    assert len(written) == 9
    for path in written:
        kept = FOLDER / path.name
        if path.suffix == ".sqlite":
            assert dump(path) == dump(kept)
            assert kept.stat().st_size < 300_000
        else:
            assert path.read_text() == kept.read_text()


def test_what_math_ran_is_told_and_what_refused_only_as_far_as_names_prove_it(capsys):
    """NVTX ranges hold sizes alone. The names of the kernels prove float32; nothing proves enable_gqa."""
    assert main(["explain", str(FOLDER / f"{samples_nsys_pair.MATH}.sqlite")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "8 of 12 attention calls took a slow path" in shown
    assert "refused flash by F1: query, key and value are float32, inferred from kernel names." in shown
    assert "cannot tell memory-efficient by F9" in shown
    assert "memory-efficient by F10: enable_gqa (16 query heads, 4 key heads)" in shown


def test_a_table_that_cannot_be_read_is_told_with_its_file(capsys, tmp_path):
    data = bytearray(broken_binary.export())
    path = tmp_path / "damaged.sqlite"
    path.write_bytes(data)
    with sqlite3.connect(path) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'StringIds'").fetchone()
    connection.close()
    page = broken_binary.PAGE
    data[page * (root - 1) : page * root] = b"\xaa" * page
    path.write_bytes(data)
    assert main(["report", str(path)]) == 2
    assert capsys.readouterr().err == (
        f"traceview: error: {path}, table StringIds: nothing of it can be read: database disk image is malformed. "
        "Export the report again: nsys export --type sqlite --force-overwrite true FILE.\n"
    )


def test_sizes_alone_prove_the_refusal_by_the_mask():
    truth = json.loads((FOLDER / "two-ranks.nsys-authored.truth.json").read_text())
    (math,) = [row for row in dispatch_table(load(SAMPLE)).attention if row.implementation == "math"]
    refused = {(reason.rule, reason.status) for reason in math.reasons if reason.status == "refuses"}
    assert refused == {(one["rule"], "refuses") for one in truth["refusals"]}
    # Dtypes are not in NVTX ranges: what depends on them is never taken for fulfilled.
    assert {reason.status for reason in math.reasons if reason.rule == "E1"} == {"not recorded"}


def test_reasons_and_remarks_are_whole_sentences(capsys, tmp_path):
    assert main(["explain", str(SAMPLE)]) in {0, 1, 3}
    shown = capsys.readouterr().out
    assert "(holds for torch " in shown
    assert "(; " not in shown
    export = Export()
    rank = export.process(1)
    for _ in range(9):
        rank.launch("k", us=1)
    path = export.write_sqlite(tmp_path / "a.sqlite")
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE rowid % 3 = 0")
    connection.close()
    main(["gaps", str(path)])
    shown = capsys.readouterr().out
    assert "Idle time is not reliable" in shown
    assert "lower bounds.." not in shown.replace("\n", " ")
