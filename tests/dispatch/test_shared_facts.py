"""`report` and `check` of one trace look for findings once, and find what each finds alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import traceview
from traceview.gaps import both_causes, causes, idle
from traceview.gate import check
from traceview.host_calls import innermost
from traceview.kernels import identify
from traceview.render.documents import dumps
from traceview.render.report_document import report_document
from traceview.report import report
from traceview.rules import catalogue
from traceview.rules.base import Facts

if TYPE_CHECKING:
    from pathlib import Path

    from traceview.timeline import Timeline

CASES = ("flash-requested-math-ran.cuda-authored.json.gz", "gaps-and-copies.cuda-authored.json")


@pytest.fixture(params=CASES)
def trace(request: pytest.FixtureRequest, repository: Path) -> Timeline:
    return traceview.load(repository / "sample_traces" / request.param)


def test_shared_facts_change_no_answer(trace: Timeline) -> None:
    facts = Facts.of(trace)
    assert dumps(report_document(report(trace, facts=facts))) == dumps(report_document(report(trace)))
    assert check(trace, facts=facts) == check(trace)


def test_each_rule_is_asked_once(trace: Timeline, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(rule: catalogue.Rule) -> catalogue.Rule:
        def look(facts: Facts) -> list[object]:
            asked.append(rule.code)
            return list(rule.check(facts))

        return replace(rule, check=look)  # type: ignore[arg-type]

    monkeypatch.setattr(catalogue, "RULES", tuple(counted(rule) for rule in catalogue.RULES))
    facts = Facts.of(trace)
    report(trace, facts=facts)
    check(trace, facts=facts)
    assert sorted(asked) == [rule.code for rule in catalogue.RULES]


def test_facts_of_another_timeline_are_not_taken(trace: Timeline) -> None:
    other = Facts.of(replace(trace, events=trace.events.clear(), devices=trace.devices))
    assert check(trace, facts=other) == check(trace)
    assert report(trace, facts=other).kernels == report(trace).kernels


def test_both_ways_to_charge_waits_are_those_of_one_at_a_time(trace: Timeline) -> None:
    stretches = idle(trace)
    apart, charged = both_causes(trace, stretches)
    assert apart.equals(causes(trace, stretches))
    assert charged.equals(causes(trace, stretches, charge_host_work=True))
    assert int((charged["end_ns"] - charged["start_ns"]).sum()) == int((apart["end_ns"] - apart["start_ns"]).sum())


def test_few_events_are_answered_as_all_are(trace: Timeline) -> None:
    ids, roots = trace.events["id"], trace.events.filter(trace.events["kind"] == "op")["id"]
    every = innermost(trace, ids, roots)
    for first in range(0, len(ids), max(len(ids) // 40, 1)):
        assert innermost(trace, ids[first : first + 1], roots).to_list() == [every[first]]


def test_names_are_identified_alike_whatever_was_asked_before(trace: Timeline) -> None:
    names = trace.device_work["name"].unique()
    whole = identify(names).sort("name")
    identify(names.head(2))
    parts = identify(names.head(5)).sort("name")
    assert parts.equals(whole.join(parts, on="name", how="semi", maintain_order="left"))
    assert identify(names).sort("name").equals(whole)
