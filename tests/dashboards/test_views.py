"""What the pages show, as data: it adds up, it is ordered, and it says the same as the commands."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from traceview import gate, samples
from traceview.accounting import Part
from traceview.capture_info import CaptureInfo
from traceview.dashboards.views import dispatch, findings, gaps, glossary, overview, recompiles, stages, waterfall
from traceview.dashboards.views.samples import MOST, featured
from traceview.dashboards.views.table import Show, Table, cell
from traceview.expectations.model import Verdict
from traceview.expectations.reading import read_expectations
from traceview.findings import Confidence, CostOf, Finding, Severity
from traceview.rules.catalogue import RULES
from traceview.step_marks import StepSource
from traceview.top_findings import RankedFinding

STAGED = ["cuda", "gaps", "ranks", "nsys", "tpu", "cpu"]
ON_DEVICE = ["cuda", "gaps", "ranks", "nsys", "tpu"]


@pytest.mark.parametrize("name", STAGED)
def test_the_stages_of_each_step_add_up_to_its_wall_time(opened, name):
    trace = opened(name)
    cut = waterfall.cut_by_stage(trace.partition)
    assert cut.walls.sum() == trace.partition.walls.sum() == trace.report.stages.wall_ns
    for column in range(len(cut.steps)):
        frame = waterfall.stage_waterfall(cut, column)
        waterfall.WATERFALL.validate(frame)
        assert frame["end_ns"].max() == pytest.approx(cut.walls[column] / cut.devices[column])
        assert frame["start_ns"][0] == 0
        assert frame["start_ns"][1:].to_list() == pytest.approx(frame["end_ns"][:-1].to_list())
        assert frame.unique("row")["share"].sum() == pytest.approx(1)


@pytest.mark.parametrize("name", STAGED)
def test_the_waterfall_says_what_the_stage_table_says(opened, name):
    trace = opened(name)
    cut = waterfall.cut_by_stage(trace.partition)
    frame = waterfall.stage_waterfall(cut)
    over = int(cut.devices.sum())
    outer = trace.report.stages.stages.filter((pl.col("depth") == 0) & (pl.col("wall_ns") > 0))
    walls = {row: ns * over for row, ns in frame.unique("row").select("row", "row_ns").iter_rows()}
    busy = {row: ns * over for row, ns in frame.unique("row").select("row", "row_busy_ns").iter_rows()}
    assert walls.pop("Unattributed") == pytest.approx(trace.report.stages.unattributed_ns)
    assert walls == pytest.approx(dict(outer.select("stage", "wall_ns").iter_rows()))
    assert [busy[stage] for stage in outer["stage"]] == pytest.approx(outer["device_busy_ns"].to_list())


@pytest.mark.parametrize("name", ON_DEVICE)
def test_the_parts_of_a_step_add_up_to_its_wall_time(opened, name):
    devices = opened(name).report.time.devices
    frame = waterfall.part_waterfall(devices)
    waterfall.WATERFALL.validate(frame)
    mean = sum(one.wall_ns for one in devices) / sum(one.steps for one in devices)
    assert frame["end_ns"].max() == pytest.approx(mean)


def test_small_causes_of_idle_time_are_one_bar(opened):
    (one, *_) = opened("gaps").report.time.devices
    causes = {"launch": 1, "sync": 2, "queued": one.wall_ns // 2}
    shown = replace(one, idle_by_cause=causes, idle_ns=sum(causes.values()))
    rows = waterfall.part_waterfall([shown])["row"].to_list()
    assert "idle: queued" in rows
    assert "idle: 2 other causes" in rows
    assert "idle: launch" not in rows


def test_many_stages_become_one_row(opened):
    partition = opened("gaps").partition
    assert len(set(partition.stages)) >= 3
    cut = waterfall.cut_by_stage(partition, most=2)
    assert cut.names[1].endswith("shorter stages")
    assert len(cut.names) == 3
    assert cut.walls.sum() == partition.walls.sum()


def test_stages_that_shorten_to_one_name_are_told_apart():
    assert waterfall._told_apart(["a", "b", "a"]) == ["a", "b", "a (2)"]


def test_every_step_is_drawn(opened):
    cut = waterfall.cut_by_stage(opened("tpu").partition)
    frame = waterfall.all_steps(cut, [f"step {at}" for at in range(len(cut.steps))])
    waterfall.STEPS.validate(frame)
    means = frame.group_by("order").agg(pl.col("wall_ns").sum()).sort("order")["wall_ns"].to_list()
    assert means == pytest.approx((cut.walls / cut.devices).tolist())


def test_charts_are_specifications_of_that_data(opened):
    cut = waterfall.cut_by_stage(opened("tpu").partition)
    chart = waterfall.waterfall_chart(waterfall.stage_waterfall(cut), "#123456").to_dict()
    text = next(layer for layer in chart["layer"] if layer["mark"]["type"] == "text")
    assert text["mark"]["color"] == "#123456"
    assert waterfall.steps_chart(waterfall.all_steps(cut, ["s"] * len(cut.steps))).to_dict()["mark"]["type"] == "bar"
    assert gaps.histogram_chart(gaps.histogram(opened("tpu").report.gaps)).to_dict()["mark"]["type"] == "rect"


def test_nothing_is_drawn_of_nothing():
    empty = waterfall.part_waterfall([])
    waterfall.WATERFALL.validate(empty)
    assert not empty.height
    waterfall.waterfall_chart(empty).to_dict()


@pytest.mark.parametrize(
    ("longest_ns", "unit"), [(3e9, "s"), (1.9e9, "ms"), (2e6, "ms"), (1.9e6, "us"), (100, "ns"), (0, "ns")]
)
def test_the_unit_of_a_chart_suits_it(longest_ns, unit):
    assert waterfall.unit_of(longest_ns)[0] == unit


def finding(code, cost_ns, severity=Severity.WARNING):
    return Finding(
        code, severity, f"title {code}", "there", ("seen",), cost_ns, Confidence.MEASURED, "do", "never", CostOf.DEVICE
    )


def ranked(code, share, severity=Severity.WARNING, limited_by=()):
    return RankedFinding(
        code, severity, f"title {code}", "there", ("seen",), None if share is None else 1000, Confidence.MEASURED, "do",
        "never", CostOf.DEVICE, share=share, won_ns=None if share is None else 1000,
        trust="limited" if limited_by else "good", limited_by=limited_by,
    )  # fmt: skip


def test_findings_of_a_dispatch_stand_by_their_cost():
    found = [
        finding("TV1", None, Severity.ERROR),
        finding("TV2", 5),
        finding("TV3", 50, Severity.INFO),
        finding("TV4", 5, Severity.ERROR),
    ]
    assert [one.code for one in findings.ranked(found)] == ["TV3", "TV4", "TV2", "TV1"]


def test_what_to_do_first_is_what_failed_or_where_most_is_to_be_won():
    found = [ranked("TV3", 0.5), ranked("TV4", 0.1, Severity.ERROR), ranked("TV1", None, Severity.ERROR)]
    assert findings.to_do(found, failed=True).code == "TV4"
    assert findings.to_do(found, failed=False).code == "TV3"
    assert findings.to_do([ranked("TV1", None)], failed=False) is None
    assert findings.to_do([], failed=True) is None


def test_a_finding_says_what_it_can_win_of_what_and_what_limits_its_trust(opened):
    report = opened("cuda").report
    said = findings.ranked_view(report.findings[0], report)
    assert said.cost.startswith(f"at most {report.findings[0].share * 100:.1f} % of the ")
    assert said.trust == ""
    doubted = findings.ranked_view(ranked("TV4", 0.1, limited_by=("Half is lost.", "More.")), report)
    assert doubted.trust == "limited: Half is lost. More."
    assert findings.ranked_view(ranked("TV4", None), report).cost == ""
    cut = opened("cut").report
    note = cut.import_report.notes[0].text
    assert findings.ranked_view(ranked("TV4", 0.1, limited_by=(note,)), cut).trust == "limited, see above."


def test_a_failed_check_leads_the_answer(opened):
    trace = opened("cuda")
    said = overview.answer(trace.report, trace.check)
    assert (said.verdict, said.word, said.code) == ("fail", "Failed", "TV102")
    assert "math" in said.headline
    assert "% of busy time" in said.headline
    assert said.fix
    assert said.second.startswith("A step takes")


@pytest.mark.parametrize(
    ("shares", "first"),
    [
        ((("TV1", 0.05, Severity.ERROR), ("TV2", 0.5, Severity.INFO)), True),
        ((("TV1", 0.04, Severity.ERROR), ("TV2", 0.5, Severity.INFO)), False),
        ((("TV1", 0.01, Severity.ERROR), ("TV3", 0.1, Severity.ERROR), ("TV2", 0.5, Severity.INFO)), True),
        ((("TV1", None, Severity.ERROR), ("TV2", 0.5, Severity.INFO)), True),
        ((("TV2", 0.5, Severity.INFO),), True),
    ],
)
def test_a_failure_that_costs_next_to_nothing_is_not_the_answer(shares, first):
    assert overview.matters([ranked(*one) for one in shares]) is first


def test_the_answer_is_then_where_the_time_went(opened):
    trace = opened("cuda")
    small = tuple(replace(one, share=1e-6) if one.severity is Severity.ERROR else one for one in trace.report.findings)
    more = replace(trace.report, findings=(ranked("TV404", 0.9, Severity.INFO), *small))
    said = overview.answer(more, trace.check)
    assert (said.verdict, said.verdict_first, said.code) == ("fail", False, "TV404")
    assert said.headline.startswith("A step takes")
    assert "math" in said.second


def test_else_the_time_leads_it(opened):
    trace = opened("recompiles")
    said = overview.answer(trace.report, trace.check)
    assert said.verdict != "fail"
    assert said.second.startswith(trace.check.summary[:1].upper())


def test_the_strip_says_what_limits_the_trust(opened):
    line, limits = overview.strip(opened("cut").report, "mine.json")
    assert line == (
        "mine.json   ·   PyTorch profiler (Kineto)   ·   NVIDIA A100-SXM4-80GB, compute capability 8.0   ·   "
        "8 events, the file is cut off   ·   trust: limited"
    )
    assert limits[0] == "The file ends before its own end: what follows the cut is missing."
    assert overview.strip(opened("ranks").report, "rank0")[0].startswith("rank0 and 1 more file   ·")


def test_the_key_figures_are_those_of_the_report(opened):
    shown = {one.name: one for one in overview.figures(opened("tpu").report)}
    assert list(shown) == ["Step p50", "Device busy", "Exposed comm.", "Device waits", "Waits for the host"]
    assert (shown["Step p50"].value, shown["Step p50"].note) == ("900.0 us", "p95 900.0 us, 4 steps")
    assert shown["Device waits"].value == "16.7 %"
    missing = {one.name: one for one in overview.figures(opened("no-device").report)}
    assert missing["Device busy"].value == "-"
    assert missing["Device busy"].note == "no device work recorded"


def test_copies_that_only_the_host_recorded_are_not_said_to_take_no_time(opened):
    told = {one.name: one.meaning for one in overview.figures(opened("tpu").report)}
    assert "recorded on the host alone" in told["Exposed comm."]
    assert "Exposed copy + comm." in {one.name for one in overview.figures(opened("cut").report)}


def test_a_recording_without_step_marks_is_not_called_a_step(opened, show):
    trace = opened("bad/nsys-healthy.authored.sqlite")
    shown = {one.name: one for one in overview.figures(trace.report)}
    assert (shown["Recorded"].value, shown["Recorded"].note) == ("753.8 us", "no step marks")
    assert (shown["Device busy"].value, shown["Device busy"].note) == ("100.0 %", "753.8 us of 753.8 us")
    assert "of the recording" in shown["Device busy"].meaning
    page = show("overview", trace.id)
    assert "#### Where the recorded time goes" in page.marked
    assert not any("Where a step goes" in one for one in page.marked)


@pytest.mark.parametrize("name", STAGED)
def test_the_histogram_holds_all_idle_time(opened, name):
    result = opened(name).report.gaps
    frame = gaps.histogram(result)
    assert frame["idle_ns"].sum() == result.gaps["dur_ns"].sum()
    assert frame["count"].sum() == result.gaps.filter(pl.col("dur_ns") > 0).height
    assert frame.filter(pl.col("from_ns") >= pl.col("to_ns")).is_empty()


def test_causes_of_several_devices_are_added_up(opened):
    result = opened("tpu").report.gaps
    shown = gaps.causes_table(result).frame
    assert shown["idle ms"].sum() * 1e6 == pytest.approx(result.idle_ns)
    assert shown["of idle"].sum() == pytest.approx(1)
    assert shown["cause"].is_unique().all()
    assert all(shown["means"])


def test_one_gap_is_told_in_full(opened):
    trace = opened("gaps")
    table = gaps.gaps_table(trace.report.gaps)
    story = dict(gaps.gap_story(trace.timeline, trace.report.gaps, 0))
    assert table.frame["cause"][0] in story["cause"]
    assert story["to win"].startswith("at most ")
    assert "held by" in story


def test_other_tables_are_there_where_the_trace_has_the_facts(opened):
    assert gaps.feeding_table(opened("gaps").report.gaps).frame["launches"].sum() > 0
    assert gaps.waits_table(opened("gaps").report.gaps).frame.height
    assert gaps.feeding_table(opened("cpu").report.gaps) is None
    compiled = recompiles.compilations_table(opened("recompiles").report.recompiles).frame
    assert compiled["after warm-up"][0] == "yes"
    assert recompiles.copies_table(opened("gaps").report.transfers).frame["direction"].to_list()
    assert recompiles.copies_table(opened("no-device").report.transfers) is None
    assert stages.stages_table(opened("gaps").report.stages).frame["stage"][-1] == "Unattributed"
    assert stages.xprof_table(opened("cuda").report) is None
    assert stages.xprof_table(opened("tpu").report).frame.height
    assert stages.import_table(opened("cut").report.import_report).frame["count"].to_list() == [1]


def test_the_dispatch_table_says_asked_got_and_share(opened):
    check = opened("cuda").check
    shown = dispatch.dispatch_table_view(check.table.dispatches, check.table.busy_ns)
    first = shown.frame.row(0, named=True)
    assert first["verdict"] == "✕ slow"
    assert first["got"] == "attention: math (pytorch)"
    assert first["share of busy"] == check.table.dispatches[0].share
    assert shown.shows["share of busy"] is Show.SHARE


def test_the_evidence_of_a_row_names_the_refusing_rule_and_the_fix(opened):
    trace = opened("cuda")
    found = dispatch.evidence(trace.timeline, trace.check, trace.check.table.dispatches[0])
    names = [name for name, _ in found.story]
    assert {"asked", "got", "refused", "costs", "source"} <= set(names)
    assert found.change
    assert found.kernels.frame.height
    assert [one.code for one in found.findings] == ["TV102"]


@pytest.mark.parametrize("name", [*ON_DEVICE, "cpu"])
def test_a_row_as_an_expectation_says_truly_whether_it_holds(opened, tmp_path, name):
    trace = opened(name)
    texts = [dispatch.expectation(row, trace.pieces) for row in trace.check.table.dispatches[:6]]
    slow = [row.verdict == "slow" for row in trace.check.table.dispatches[:6]]
    for at, text in enumerate(texts):
        if text is None:
            continue
        path = tmp_path / f"{at}.toml"
        path.write_text(f'schema = 1\npolicy = "none"\n{text}')
        (result,) = gate.check(trace.timeline, read_expectations(str(path))).expectations
        said = {"# It holds": Verdict.PASS, "# It does ": Verdict.FAIL, "# This tra": Verdict.INCONCLUSIVE}[text[:10]]
        assert result.verdict is said, text
        assert (said is not Verdict.PASS) or not slow[at]


def test_a_slow_row_expects_what_should_have_run(opened):
    trace = opened("cuda")
    text = dispatch.expectation(trace.check.table.dispatches[0], trace.pieces)
    assert text.startswith("# It does not hold on this trace yet: ")
    assert '[[expect]]\nop = "attention"\n' in text
    assert text.endswith('implementation = "fused"\nmin_count = 1\n')


def test_what_is_not_known_is_expected_of_nobody(opened):
    trace = opened("cuda")
    row = trace.check.table.dispatches[0]
    assert dispatch.expectation(replace(row, implementation="unknown"), trace.pieces) is None
    assert dispatch.expectation(replace(row, family="unknown"), trace.pieces) is None


def test_every_rule_and_every_term_is_explained():
    assert [one.code for one in glossary.rule_pages()] == [rule.code for rule in RULES]
    assert glossary.rules_table().frame.height == len(RULES)
    everything = glossary.glossary().frame
    assert everything.filter(pl.col("means") == "").is_empty()
    assert {"exposed", "Unattributed", "inconclusive", Part.ASYNC_WAIT.value} <= set(everything["term"])
    assert glossary.glossary("garbage").frame["term"].to_list() == ["garbage-collection"]
    assert glossary.glossary("no such word").frame.is_empty()


def test_the_longest_run_of_a_kernel_is_named(opened):
    trace = opened("cuda")
    for one in trace.report.kernels:
        event = trace.timeline.events.row(stages.longest_run(trace.timeline, one.name), named=True)
        runs = trace.timeline.device_work.filter(pl.col("name").cast(pl.String) == one.name)
        assert (event["name"], event["dur_ns"]) == (one.name, runs["dur_ns"].max())
        assert runs.height == one.count
    assert stages.longest_run(trace.timeline, "no such kernel") is None


def test_a_table_keeps_numbers_as_numbers(opened):
    shown = stages.kernels_table(opened("cuda").report.kernels)
    assert isinstance(shown, Table)
    assert shown.frame.schema["total ms"] == pl.Float64
    assert shown.frame["total ms"].is_sorted(descending=True)


@pytest.mark.parametrize(
    ("how", "value", "words"),
    [
        (Show.SHARE, 0.04, "<0.1 %"),
        (Show.SHARE, 0.0, "0.0 %"),
        (Show.SHARE, 99.97, "99.9 %"),
        (Show.SHARE, 100.0, "100.0 %"),
        (Show.MS, 0.0004, "<0.001"),
        (Show.MS, -0.0004, "-<0.001"),
        (Show.MS, 1234.5, "1,234.500"),
        (Show.US, float("nan"), "-"),
        (Show.COUNT, 12345, "12,345"),
        (Show.FACTOR, None, "-"),
        (Show.FACTOR, 1.5, "1.50 x"),
        (Show.NUMBER, 1.0, "1"),
        (Show.NUMBER, 20000.0, "20000"),
    ],
)
def test_no_cell_calls_something_nothing(how, value, words):
    assert cell(how, value) == words


def test_what_the_host_holds_up_is_told_of_the_steps_like_its_neighbours(opened):
    report = opened("gaps").report
    shown = {one.name: one for one in overview.figures(report)}["Waits for the host"]
    devices = report.time.devices
    assert shown.note.endswith("a step")
    assert "part of the steps" in shown.meaning
    # Busy, waits and idle time share one whole.
    idle = sum(sum(one.idle_by_cause.values()) for one in devices) / sum(one.wall_ns for one in devices)
    assert 0 < float(shown.value.removesuffix(" %")) / 100 <= idle + 0.0005
    nowhere = replace(report, time=replace(report.time, table=replace(report.time.table, source=StepSource.WHOLE)))
    whole = {one.name: one for one in overview.figures(nowhere)}["Waits for the host"]
    assert whole.note.endswith("in all")


def test_the_conditions_of_a_capture_are_told(opened):
    report = opened("gaps").report
    assert overview.captured(report) == []
    info = CaptureInfo(versions={"torch": "2.13.0"}, warmup_calls=5, steps=3)
    known = replace(report, trace=replace(report.trace, capture=info))
    assert dict(overview.captured(known)) == {"captured": "torch 2.13.0; 5 warm-up calls, 3 steps"}


def test_the_first_samples_are_stories_and_a_pair_is_one():
    told = featured(samples.catalogue(), samples.pairs())
    assert len(told) == MOST
    assert [one.name for one in told[0].samples] == ["flash-requested-math-ran", "flash-requested-flash-ran"]
    names = [sample.name for story in told for sample in story.samples]
    assert len(names) == len(set(names))
    assert {len(story.samples) for story in told} == {1, 2}


def test_a_trace_without_device_work_is_told_by_its_host(opened):
    trace = opened("no-device")
    frame = waterfall.stage_waterfall(waterfall.cut_by_stage(trace.partition))
    assert frame["segment"].unique().to_list() == [waterfall.HOST]
    drawn = waterfall.waterfall_chart(frame).to_dict()
    assert "device works" not in str(drawn)
    assert "waits or idle ms" not in stages.stages_table(trace.report.stages).frame.columns
    table = dispatch.dispatch_table_view(list(trace.check.table.dispatches), trace.check.table.busy_ns)
    assert "device ms" not in table.frame.columns
    assert table.frame["host ms"].min() > 0
