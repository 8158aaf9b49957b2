"""Work without launches."""

from __future__ import annotations

from rules.rule_case import ADD, judged, on_device, ran
from traceview.timeline import ImportReport, Note, Trust

TRACE = on_device(*ran("aten::add", ADD, 0, 10, 1))


def report(trust: Trust) -> ImportReport:
    return ImportReport(notes=(Note("work-without-launch", "Something of the recording is missing.", trust),))


def test_positive_a_remark_that_limits_trust() -> None:
    (finding,) = judged("TV902", TRACE, report(Trust.LIMITED))
    assert finding.title == "Something of the recording is missing"
    assert finding.evidence == ("import remark work-without-launch, trust limited",)


def test_negative_a_remark_without_consequence() -> None:
    assert judged("TV902", TRACE, report(Trust.GOOD)) == []


def test_not_recorded_remark() -> None:
    assert judged("TV902", TRACE, ImportReport()) == []
