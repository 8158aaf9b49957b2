"""Files that are cut."""

from __future__ import annotations

from rules.rule_case import ADD, judged, on_device, ran
from traceview.timeline import Count, ImportReport, Note, Trust

TRACE = on_device(*ran("aten::add", ADD, 0, 10, 1))


def test_positive_cut_and_counted() -> None:
    (finding,) = judged("TV903", TRACE, ImportReport({"lost-event": Count(3, "byte 17")}, truncated=True))
    assert finding.title == "The file ends before its own end; 3 pieces were lost"
    assert finding.evidence == ("events damaged beyond repair: 3, first: byte 17",)


def test_positive_damaged() -> None:
    note = Note("damaged", "The file is damaged: its checksum is wrong.", Trust.LIMITED)
    (finding,) = judged("TV903", TRACE, ImportReport(notes=(note,), truncated=True))
    assert finding.title == "The file is damaged"


def test_negative_a_repair_lost_nothing() -> None:
    assert judged("TV903", TRACE, ImportReport({"repaired-comma": Count(2)})) == []


def test_not_recorded_loss() -> None:
    assert judged("TV903", TRACE, ImportReport()) == []
