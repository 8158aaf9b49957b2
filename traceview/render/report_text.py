"""``traceview report`` as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traceview.render.conditions import write_conditions, write_remarks
from traceview.render.grids import write_grid
from traceview.render.idle_text import causes_grid
from traceview.render.kernels_text import write_families, write_kernels
from traceview.render.page import Column, Page
from traceview.render.recompile_text import recompile_sentence
from traceview.render.time_tables import accounting_grid, stages_grid, steps_grid
from traceview.render.time_text import idle_sentence, stage_sentence, step_sentence
from traceview.render.transfer_text import transfer_sentence
from traceview.render.units import counted, duration, durations, percent

if TYPE_CHECKING:
    from traceview.busy import DeviceBusy
    from traceview.report import Device, Report
    from traceview.xprof_figures import XprofFigures

TOP_KERNELS: Final = 10
MOST_STAGES: Final = 8

_PARTS: Final = ("time", "steps", "stages", "devices", "kernels")


def write_report(result: Report, page: Page) -> None:
    """Verdict, conditions, devices, steps, families, kernels, remarks."""
    page.verdict(report_sentence(result))
    write_conditions(page, result.trace, result.import_report)
    described = {one.device: one for one in result.trace.devices}
    grids = [
        accounting_grid(result.time, described) if result.time else None,
        stages_grid(result.stages, MOST_STAGES) if result.stages else None,
        steps_grid(result.steps, result.time.table.source.value if result.time else "") if result.steps else None,
    ]
    for grid in grids:
        if grid is not None:
            write_grid(page, grid)
    if result.gaps:
        causes = causes_grid(result.gaps)
        if causes:
            write_grid(page, causes)
    if result.devices:
        _write_devices(page, result.devices, described)
    if result.xprof:
        _write_xprof(page, result.xprof)
    if result.families and result.kernels is not None:
        page.heading("Device time by family")
        write_families(page, result.families)
        page.heading(_kernels_heading(len(result.kernels)))
        write_kernels(page, result.kernels[:TOP_KERNELS])
    notes = [*_answers(result), *(note.text for part in _PARTS for note in result.notes if note.part == part)]
    if notes:
        page.heading("Notes")
        for text in dict.fromkeys(notes):
            page.bullet(text)
    write_remarks(page, result.import_report)


def _answers(result: Report) -> list[str]:
    """What commands of their own tell more about, in a sentence each; nothing where nothing happened."""
    found = []
    if result.recompiles and result.recompiles.recompiles is not None and result.recompiles.recompiles.height:
        found.append(recompile_sentence(result.recompiles))
    if result.transfers and result.transfers.transfers is not None and result.transfers.transfers.height:
        found.append(transfer_sentence(result.transfers))
    return found


def _kernels_heading(distinct: int) -> str:
    return "Kernels" if distinct <= TOP_KERNELS else f"Top {TOP_KERNELS} of {distinct:,} kernels"


def report_sentence(result: Report) -> str:
    """The answer in a few sentences: what a step takes, what it goes to, what takes most."""
    if not result.trace.events:
        return "No event in this trace."
    leading = [step_sentence(result.time, without_device="")] if result.time and result.time.times else []
    if result.stages and result.stages.stages is not None:
        leading += [text for text in (idle_sentence(result.stages), stage_sentence(result.stages)) if text]
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
            f" Waiting for its own copies or collectives: {duration(waiting)} ({percent(waiting / span)}), not work."
        )
    if shown:
        text += f" Not hidden behind computation: {', '.join(shown)}."
    if result.families:
        first = result.families[0]
        text += f" Most device time: {first.family}, {percent(first.share)}."
    return text


def _write_devices(page: Page, devices: tuple[DeviceBusy, ...], described: dict[int, Device]) -> None:
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
    page.heading(f"Devices ({unit})")
    page.table(
        [Column("device"), Column("busy", number=True), *(Column(name, number=True) for name in columns)],
        [
            [
                described[one.device].label if one.device in described else f"device {one.device}",
                percent(one.busy_share),
                *texts[at::count],
            ]
            for at, one in enumerate(devices)
        ],
    )


def _write_xprof(page: Page, figures: XprofFigures) -> None:
    """XProf's own figures, with what is different about them."""
    page.heading("As XProf counts it: waiting is busy there")
    rows = [
        ["total time, all cores", duration(figures.total_ps // 1000)],
        ["device idle", percent(figures.idle_share)],
        ["duty cycle", percent(figures.duty_cycle)],
        ["busy time that is waiting", duration(figures.wait_ps // 1000)],
    ]
    if figures.flops is not None:
        rows.append(["operations (FLOP)", f"{figures.flops:,}"])
    page.table([Column("figure"), Column("value", number=True)], rows)
