"""The answer first: verdict, trust, key figures, where a step goes, what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import streamlit as st

from traceview.dashboards import charts, ui
from traceview.dashboards.pages.loading import opened
from traceview.dashboards.views import waterfall
from traceview.dashboards.views.devices import devices_table
from traceview.dashboards.views.findings import TOP, ranked_view
from traceview.dashboards.views.overview import answer, captured, figures, has_steps, strip
from traceview.dashboards.views.stages import import_table, kernels_table, longest_run, stages_table, xprof_table
from traceview.render.report_text import report_sentence

if TYPE_CHECKING:
    from collections.abc import Callable

    from traceview.dashboards.shelf import Opened
    from traceview.report import KernelUse, Report
    from traceview.timeline import Timeline

_LONG: Final = 180
"""Characters that still make one line of the head."""


def page() -> None:
    """The page."""
    trace = opened(_meanwhile)
    _head(trace)
    left, right = st.columns([3, 2], gap="large")
    with left:
        _where_a_step_goes(trace)
        _every_step(trace)
    with right:
        _findings(trace.report, trace.timeline)
    _details(trace)


def _head(trace: Opened) -> None:
    said = answer(trace.report, trace.check)
    judged = f"{ui.ICONS[said.verdict]} **{said.word}** · which kernels ran, by the built-in policy"
    with st.container(key="failed" if said.verdict == "fail" else "answered"):
        if said.verdict_first:
            st.markdown(judged)
        ui.text(said.headline, kind="headline", key="answer")
        if said.fix:
            cost = f" {said.cost[:1].upper()}{said.cost[1:]}." if said.cost else ""
            ui.text(f"What to do: {said.fix}{cost}", kind="strong", key="do")
        if not said.verdict_first:
            st.markdown(judged)
        ui.text(said.second)
    _conditions(trace.report, trace.title)
    _figures(trace.report)


def _meanwhile(report: Report, title: str, judging: Callable[[], None]) -> None:
    """What is known before the kernels are judged, laid out as it will be then."""
    with st.container(key="answered"):
        ui.text(report_sentence(report), kind="headline", key="answer")
        judging()
    _conditions(report, title)
    _figures(report)
    _, right = st.columns([3, 2], gap="large")
    with right:
        _findings(report)


def _conditions(report: Report, title: str) -> None:
    line, limits = strip(report, title)
    ui.text(line, kind="small", key="strip")
    for at, limit in enumerate(limits):
        ui.text(f"Limits the trust: {limit}", kind="small", key=f"limit-{at}")
    _captured(report)


def _figures(report: Report) -> None:
    shown = figures(report)
    if shown:
        ui.figures(shown)


def _captured(report: Report) -> None:
    """The conditions that were written down when the trace was made: one line, or on demand if it is long."""
    pairs = captured(report)
    words = "   ·   ".join(f"{name}: {value}" for name, value in pairs)
    if len(words) > _LONG:
        with st.expander("Conditions of the capture"):
            ui.facts(pairs)
    elif words:
        ui.text(words, kind="small", key="captured")


def _where_a_step_goes(trace: Opened) -> None:
    report = trace.report
    whole = "step" if report.time is None or has_steps(report) else "recording"
    st.markdown("#### Where a step goes" if whole == "step" else "#### Where the recorded time goes")
    devices = report.time.devices if report.time else None
    partition = trace.partition
    ways = [*(["by stage"] if partition is not None else []), *(["by what the device does"] if devices else [])]
    if not ways:
        ui.not_recorded("Stages and parts of a step", [n for n in report.notes if n.part in {"time", "stages"}])
        return
    way = ways[0]
    if len(ways) > 1:
        way = st.segmented_control(
            "Split", ways, default=way, required=True, label_visibility="collapsed", key="split", bind="query-params"
        )
    if way == "by stage" and partition is not None:
        cut = waterfall.cut_by_stage(partition)
        column = waterfall.MEAN
        names = _step_names(trace, cut)
        if len(names) > 1:
            choices = [waterfall.MEAN, *range(len(names))]
            column = st.selectbox(
                "Step",
                choices,
                format_func=lambda at: f"mean of {len(names):,}" if at < 0 else names[at],
                key="step",
                bind="query-params",
            )
        charts.show(waterfall.waterfall_chart(waterfall.stage_waterfall(cut, column), charts.ink(), whole), "stages")
    else:
        assert devices is not None
        labels = {one.device: one.label for one in report.trace.devices}
        chosen = list(devices)
        if len(devices) > 1:
            which = st.selectbox(
                "Device",
                [-1, *range(len(devices))],
                format_func=lambda at: (
                    f"mean of {len(devices)} devices" if at < 0 else labels.get(devices[at].device, str(at))
                ),
                key="device",
                bind="query-params",
            )
            chosen = chosen if which < 0 else [devices[which]]
        charts.show(waterfall.waterfall_chart(waterfall.part_waterfall(chosen), charts.ink(), whole), "parts")
        if partition is None:
            for note in report.notes:
                if note.part == "stages":
                    ui.text(note.text, kind="small", key="no-stages")


def _every_step(trace: Opened) -> None:
    if trace.partition is None:
        return
    cut = waterfall.cut_by_stage(trace.partition)
    if len(cut.steps) < 2:
        return
    st.markdown("#### Every step, by stage")
    charts.show(waterfall.steps_chart(waterfall.all_steps(cut, _step_names(trace, cut))), "steps")
    if len(cut.steps) > waterfall.MOST_STEPS:
        st.caption(f"The first {waterfall.MOST_STEPS} of {len(cut.steps):,} steps.")


def _step_names(trace: Opened, cut: waterfall.Cut) -> list[str]:
    assert trace.report.time is not None
    names = trace.report.time.table.steady["name"].to_list()
    return [f"{at + 1}: {names[step]}" for at, step in enumerate(cut.steps)]


def _findings(report: Report, timeline: Timeline | None = None) -> None:
    """The findings; with the timeline, each leads to its longest event there."""
    st.markdown("#### What to do, most to win first")
    found = [ranked_view(one, report, timeline) for one in report.findings or ()]
    if not found:
        st.caption("No rule found anything.")
    else:
        st.caption("Ceilings of one fix each. Findings explain the same time more than once: they do not add up.")
    for at, one in enumerate(found[:TOP]):
        ui.finding(one, at)
    if len(found) > TOP:
        with st.expander(f"{len(found) - TOP} more"):
            for at, one in enumerate(found[TOP:], TOP):
                ui.finding(one, at)


def _details(trace: Opened) -> None:
    report = trace.report
    devices = devices_table(report)
    if devices is not None:
        st.markdown("#### Devices, least busy first")
        ui.table(devices, height=380)
    stages = stages_table(report.stages) if report.stages else None
    if stages is not None:
        st.markdown("#### Stages")
        ui.table(stages)
    st.markdown("#### Kernels")
    if report.kernels:
        _kernels(trace, report.kernels)
    else:
        ui.not_recorded("Kernels", [note for note in report.notes if note.part == "kernels"])
    xprof = xprof_table(report)
    if xprof is not None:
        st.markdown("#### As XProf counts it")
        ui.table(xprof)
    _import(trace)


def _kernels(trace: Opened, kernels: tuple[KernelUse, ...]) -> None:
    """The kernels; a chosen one leads to its longest run on the timeline."""
    chosen = ui.table(kernels_table(kernels), key=f"kernels-{trace.id}", select=True)
    event = longest_run(trace.timeline, kernels[chosen[0]].name) if chosen else None
    if event is None:
        st.caption("Choose a kernel to go to its longest run on the timeline.")
    else:
        ui.to_event(event, "Show its longest run on the timeline")


def _import(trace: Opened) -> None:
    st.markdown("#### What was read, and what was not")
    counts = import_table(trace.report.import_report)
    for at, note in enumerate(trace.report.import_report.notes):
        ui.text(f"{note.text} (trust: {note.trust})", kind="small", key=f"import-{at}")
    if counts is not None:
        ui.table(counts)
    elif not trace.report.import_report.notes:
        st.caption("Everything was read; nothing was skipped or repaired.")
