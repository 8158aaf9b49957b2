"""What else the import doubts."""

from __future__ import annotations

import pytest

from rules.rule_case import ADD, judged, on_device, ran
from traceview.timeline import ImportReport, Note, Trust

TRACE = on_device(*ran("aten::add", ADD, 0, 10, 1))


def report(kind: str, trust: Trust) -> ImportReport:
    return ImportReport(notes=(Note(kind, "Something is doubted.", trust),))


@pytest.mark.parametrize("kind", ["clocks-not-aligned", "rank-twice", "said-by-a-parser-of-another-package"])
def test_positive_a_remark_that_no_other_rule_speaks_of(kind: str) -> None:
    for trust in (Trust.LIMITED, Trust.POOR):
        (finding,) = judged("TV907", TRACE, report(kind, trust))
        assert finding.title == "Something is doubted"
        assert finding.evidence == (f"import remark {kind}, trust {trust.value}",)


def test_negative_a_remark_without_consequence_or_of_another_rule() -> None:
    assert judged("TV907", TRACE, report("clocks-aligned", Trust.GOOD)) == []
    assert judged("TV907", TRACE, report("profiler-dropped-records", Trust.LIMITED)) == []


def test_not_recorded_remark() -> None:
    assert judged("TV907", TRACE, ImportReport()) == []


def test_the_advice_is_about_what_is_doubted() -> None:
    """Advice on several files would help nobody who gave one."""
    fixes = {
        kind: judged("TV907", TRACE, report(kind, Trust.LIMITED))[0].fix
        for kind in ("duration-missing", "clocks-not-aligned", "said-by-a-parser-of-another-package")
    }
    assert fixes == {
        "duration-missing": "Stop the profiler before the program ends, so that it writes how long each event took.",
        "clocks-not-aligned": "Give only the files of one run, recorded at the same time and with one profiler.",
        "said-by-a-parser-of-another-package": "Record again if an answer that matters depends on what is doubted.",
    }
