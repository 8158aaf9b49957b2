"""``traceview report`` as text and Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traceview.render.conditions import conditions, write_conditions, write_remarks
from traceview.render.findings_text import findings_grid, write_findings
from traceview.render.grids import Grid, print_markdown, write_grid
from traceview.render.idle_text import causes_grid
from traceview.render.kernels_text import families_grid, kernels_grid
from traceview.render.many_devices import most_idle
from traceview.render.notes import sentences_grid
from traceview.render.page import Column, Page
from traceview.render.recompile_text import recompile_sentence
from traceview.render.skew_text import skew_grid, skew_sentence
from traceview.render.time_tables import accounting_grid, stages_grid, steps_grid
from traceview.render.time_text import idle_sentence, stage_sentence, step_sentence
from traceview.render.transfer_text import transfer_sentence
from traceview.render.units import counted, duration, durations, percent, together

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import TextIO

    from traceview.busy import DeviceBusy
    from traceview.report import Device, Report
    from traceview.xprof_figures import XprofFigures

TOP_KERNELS: Final = 10
MOST_STAGES: Final = 8

_PARTS: Final = ("time", "steps", "stages", "devices", "collective_skew", "kernels")


def write_report(result: Report, page: Page) -> None:
    """Verdict, conditions, account of the time, stages, findings, steps, idle time, devices, kernels, remarks."""
    page.verdict(report_sentence(result))
    write_conditions(page, result.trace, result.import_report)
    for grid in _before_findings(result):
        write_grid(page, grid)
    write_findings(page, result)
    for grid in _after_findings(result):
        write_grid(page, grid)
    write_remarks(page, result.import_report)


def print_report(result: Report, out: TextIO) -> None:
    """The same as Markdown."""
    findings = findings_grid(result)
    grids = [*_before_findings(result), *([findings] if findings else []), *_after_findings(result)]
    facts = conditions(result.trace, result.import_report)
    print_markdown(out, "traceview report", report_sentence(result), facts, grids)


def _before_findings(result: Report) -> list[Grid]:
    described = {one.device: one for one in result.trace.devices}
    grids = [
        accounting_grid(result.time, described) if result.time else None,
        stages_grid(result.stages, MOST_STAGES) if result.stages else None,
    ]
    return [grid for grid in grids if grid is not None]


def _after_findings(result: Report) -> list[Grid]:
    described = {one.device: one for one in result.trace.devices}
    source = result.time.table.source.value if result.time else ""
    grids = [
        steps_grid(result.steps, source) if result.steps else None,
        causes_grid(result.gaps) if result.gaps else None,
        _devices_grid(result.devices, described, result.host_only_copies) if result.devices else None,
        skew_grid(result.skew, described) if result.skew else None,
        _xprof_grid(result.xprof) if result.xprof else None,
    ]
    if result.families and result.kernels is not None:
        grids.append(families_grid(result.families, f"Device time by family{together(result.trace.worked)}"))
        grids.append(
            kernels_grid(result.kernels[:TOP_KERNELS], _kernels_heading(len(result.kernels), result.trace.worked))
        )
    notes = [*_answers(result), *(note.text for part in _PARTS for note in result.notes if note.part == part)]
    grids.append(sentences_grid(notes))
    return [grid for grid in grids if grid is not None]


def _answers(result: Report) -> list[str]:
    """What commands of their own tell more about, in a sentence each; nothing where nothing happened."""
    found = []
    if result.recompiles and result.recompiles.recompiles is not None and result.recompiles.recompiles.height:
        found.append(recompile_sentence(result.recompiles))
    if result.transfers and result.transfers.transfers is not None and result.transfers.transfers.height:
        found.append(transfer_sentence(result.transfers))
    return found


def _kernels_heading(distinct: int, devices: int) -> str:
    text = "Kernels" if distinct <= TOP_KERNELS else f"Top {TOP_KERNELS} of {distinct:,} kernels"
    return f"{text}{together(devices)}"


def report_sentence(result: Report) -> str:
    """The answer in a few sentences: what a step takes, what it goes to, what takes most."""
    if not result.trace.events:
        return "No event in this trace."
    described = {one.device: one for one in result.trace.devices}
    leading = [step_sentence(result.time, without_device="")] if result.time and result.time.times else []
    if result.stages and result.stages.stages is not None:
        leading += [text for text in (idle_sentence(result.stages), stage_sentence(result.stages)) if text]
    if leading and result.skew and result.devices:
        leading.insert(1, skew_sentence(result.skew, sum(one.span_ns for one in result.devices), described))
        leading = [text for text in leading if text]
    if not result.devices:
        return " ".join(["No device work in this trace: only what the host did can be seen.", *leading])
    if leading:
        family = result.families[0] if result.families else None
        last = [f"Most device time: {family.family}, {percent(family.share)}."] if family else []
        return " ".join([*leading, *last])
    span = sum(one.span_ns for one in result.devices)
    busy = sum(one.busy_ns for one in result.devices)
    idle = span - busy
    if len(result.devices) == 1:
        text = f"Device busy {percent(busy / span if span else None)} of {duration(span)}; idle {duration(idle)}."
    else:
        shares = sorted(one.busy_share or 0.0 for one in result.devices)
        text = (
            f"{counted(len(result.devices), 'device')} busy {percent(shares[0])} to {percent(shares[-1])} of their "
            f"spans; idle {duration(idle)} together."
        )
    exposed = [
        ("communication", sum(one.exposed_communication_ns for one in result.devices)),
        ("copies", sum(one.exposed_memcpy_ns for one in result.devices)),
    ]
    shown = [f"{what} {duration(ns)} ({percent(ns / span)})" for what, ns in exposed if span and ns / span >= 0.01]
    waiting = sum(one.wait_ns for one in result.devices)
    if span and waiting / span >= 0.01:
        text += (
            f" Waiting for own copies or collectives{together(len(result.devices))}: {duration(waiting)} "
            f"({percent(waiting / span)}), not work."
        )
    if shown:
        text += f" Not hidden behind computation{together(len(result.devices))}: {', '.join(shown)}."
    if result.families:
        first = result.families[0]
        text += f" Most device time: {first.family}, {percent(first.share)}."
    return text


def _devices_grid(devices: Sequence[DeviceBusy], described: dict[int, Device], unseen: Collection[int]) -> Grid:
    devices, others = most_idle(devices, lambda one: one.idle_ns)
    columns = {
        "span": [one.span_ns for one in devices],
        "busy": [one.busy_ns for one in devices],
        "idle": [one.idle_ns for one in devices],
        "computation": [one.computation_ns for one in devices],
        "exposed comm.": [one.exposed_communication_ns for one in devices],
        "exposed memcpy": [one.exposed_memcpy_ns for one in devices],
    }
    if any(one.wait_ns for one in devices):
        columns["idle: waiting"] = [one.wait_ns for one in devices]
    # One unit for the whole table: the columns are parts of each other.
    unit, texts = durations(ns for values in columns.values() for ns in values)
    count = len(devices)
    copies = list(columns).index("exposed memcpy") * count
    for at, one in enumerate(devices):
        if one.device in unseen and not one.exposed_memcpy_ns:
            texts[copies + at] = "not recorded"
    return Grid(
        f"Devices ({unit})",
        [Column("device"), Column("busy", number=True), *(Column(name, number=True) for name in columns)],
        [
            [
                described[one.device].label if one.device in described else f"device {one.device}",
                percent(one.busy_share),
                *texts[at::count],
            ]
            for at, one in enumerate(devices)
        ],
        others,
    )


def _xprof_grid(figures: XprofFigures) -> Grid:
    """XProf's own figures, with what is different about them."""
    rows = [
        ["total time, all cores", duration(figures.total_ps // 1000)],
        ["device idle", percent(figures.idle_share)],
        ["duty cycle", percent(figures.duty_cycle)],
        ["busy time that is waiting", duration(figures.wait_ps // 1000)],
    ]
    if figures.flops is not None:
        rows.append(["operations (FLOP)", f"{figures.flops:,}"])
    return Grid("As XProf counts it: waiting is busy there", [Column("figure"), Column("value", number=True)], rows)


def report_grids(result: Report) -> tuple[list[Grid], list[Grid]]:
    """The tables of a report: those before its findings and those after them."""
    return _before_findings(result), _after_findings(result)
