"""Which files a path, a folder, a pattern or a list means, and what is said about the others."""

from __future__ import annotations

import os

import pytest

from traceview import load
from traceview.errors import StrictModeError, UnreadableTraceError, UsageError


def files(timeline):
    return [run.path.name for run in timeline.runs]


def notes(timeline):
    return {note.kind: note for note in timeline.report.notes}


def test_a_folder_means_the_traces_in_it_in_natural_order(write, tmp_path):
    for rank in (10, 2, 1):
        write(f"rank{rank}.toy", f"TOY rank={rank} origin=1000")
    write("log.csv", "epoch,loss\n")
    write("notes.md", "hello")
    write(".hidden", "TOY rank=7 origin=1000")
    write("old/rank0.toy", "TOY rank=0 origin=1000")
    timeline = load(tmp_path)
    assert files(timeline) == ["rank1.toy", "rank2.toy", "rank10.toy"]
    assert notes(timeline)["files-skipped"].text == "2 files are left out as no trace (log.csv, notes.md): 2 x text."
    assert notes(timeline)["files-skipped"].trust == "good"


def test_a_folder_is_searched_deeper_only_if_its_first_level_has_no_trace(write, tmp_path):
    write("readme.txt", "hello")
    write("host-a/rank0.toy", "TOY rank=0 origin=1000")
    write("host-b/deep/rank1.toy", "TOY rank=1 origin=1000")
    assert files(load(tmp_path)) == ["rank0.toy", "rank1.toy"]


def test_a_pattern(write, tmp_path):
    write("a0.toy", "TOY rank=0 origin=1000")
    write("a1.toy", "TOY rank=1 origin=1000")
    write("b2.toy", "TOY rank=2 origin=1000")
    assert files(load(str(tmp_path / "a*.toy"))) == ["a0.toy", "a1.toy"]


def test_a_file_whose_name_looks_like_a_pattern(write):
    assert files(load(write("run[1].toy", "TOY"))) == ["run[1].toy"]


def test_a_file_given_twice_is_read_once(write, tmp_path):
    path = write("rank0.toy", "TOY rank=0")
    assert files(load([path, tmp_path])) == ["rank0.toy"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: [], "no trace was given. Give the path of a trace."),
        (lambda folder: folder / "absent", "{folder}/absent: no such file or folder. Check the path."),
        (lambda folder: folder / "empty", "{folder}/empty: there is no file."),
        (lambda folder: folder / ("a" * 5000), "{folder}/" + "a" * 5000 + ": cannot be opened: File name too long."),
        (lambda folder: str(folder / ("a" * 5000 + "*")), "{folder}/" + "a" * 5000 + "*: there is no file."),
        (lambda folder: str(folder / "absent*.json"), "{folder}/absent*.json: there is no file."),
        (lambda folder: folder / "texts", "{folder}/texts: none of the 2 files is a trace that can be read: a.txt is text, not a trace; b.txt is empty (0 bytes)."),
        (lambda folder: folder / "one", "{folder}/one/a.txt: this is text, not a trace."),
    ],
)  # fmt: skip
def test_nothing_to_read_is_said(make, message, write, tmp_path):
    (tmp_path / "empty").mkdir()
    write("texts/a.txt", "hello")
    write("texts/b.txt", "")
    write("one/a.txt", "hello")
    with pytest.raises((UsageError, UnreadableTraceError)) as caught:
        load(make(tmp_path))
    assert str(caught.value).startswith(message.format(folder=tmp_path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(write):
    path = write("rank0.toy", "TOY")
    path.chmod(0)
    with pytest.raises(UsageError, match="permission denied"):
        load(path)


def test_a_broken_rank_in_a_folder_is_left_out_and_counted(write, tmp_path):
    write("rank0.toy", "TOY rank=0")
    write("rank1.toy", "TOY broken=yes")
    write("rank2.toy", "")
    timeline = load(tmp_path)
    assert files(timeline) == ["rank0.toy"]
    assert timeline.report.counts["lost-file"].n == 2
    assert timeline.report.trust == "poor"
    assert [note.text for note in timeline.report.notes if note.kind == "file-unreadable"] == [
        "rank2.toy could not be read and is left out: the file is empty (0 bytes).",
        "rank1.toy could not be read and is left out: the toy is broken.",
    ]


def test_a_broken_file_that_was_named_is_an_error(write):
    with pytest.raises(UnreadableTraceError, match="the toy is broken"):
        load([write("rank0.toy", "TOY rank=0"), write("rank1.toy", "TOY broken=yes")])


def test_a_folder_of_broken_files_is_an_error(write, tmp_path):
    write("rank1.toy", "TOY broken=yes")
    with pytest.raises(UnreadableTraceError, match="the toy is broken"):
        load(tmp_path)


def test_strict_lists_what_was_lost(write, tmp_path):
    path = write("rank0.toy", "TOY lost=3 cut=yes")
    assert load(path).report.counts["lost-event"].n == 3
    with pytest.raises(StrictModeError) as caught:
        load(path, strict=True)
    assert str(caught.value) == (
        "strict mode: the import was not clean: the file ends before its own end; events damaged beyond repair: 3 (e.g. row 7). "
        "Record the trace again, or drop --strict to use what could be read."
    )


def test_strict_passes_a_clean_trace(write):
    assert files(load(write("rank0.toy", "TOY"), strict=True)) == ["rank0.toy"]


def test_progress_goes_from_nothing_to_all(write):
    seen = []
    load([write("a.toy", "TOY rank=0"), write("b.toy", "TOY rank=1 ")], progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    assert 0 < seen[0] < 1
