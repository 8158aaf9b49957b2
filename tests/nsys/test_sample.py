"""The sample in the repository is what its program writes, and says why its slow calls are slow."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from sample_traces import samples_nsys
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


def test_the_file_is_what_its_program_writes(tmp_path):
    written, truth, note = samples_nsys.build(tmp_path)
    assert dump(written) == dump(SAMPLE)
    assert truth.read_text() == (FOLDER / truth.name).read_text()
    assert note.read_text() == (FOLDER / note.name).read_text()
    assert SAMPLE.stat().st_size < 300_000


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
