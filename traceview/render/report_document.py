"""``traceview report`` as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from traceview.collective_skew import skew_by_device
from traceview.render.documents import family_part, import_part, kernel_part, notes_part, ranked_part, trace_part
from traceview.render.idle_documents import gaps_part, recompiles_part, rows_part, transfers_part
from traceview.render.time_documents import stages_part, step_part, summary_part, time_part

if TYPE_CHECKING:
    from traceview.busy import DeviceBusy
    from traceview.collective_skew import CollectiveSkew
    from traceview.report import Device, Report
    from traceview.xprof_figures import XprofFigures

MOST_GAPS: Final = 1000
"""A trace can have a million idle stretches; ``traceview gaps --limit`` lists more."""


def report_document(result: Report) -> dict[str, Any]:
    """``traceview.report/1``."""
    names = {one.device: one for one in result.trace.devices}
    return {
        "schema": "traceview.report/1",
        "trace": trace_part(result.trace),
        "launched_only": result.launched_only,
        "devices": None
        if result.devices is None
        else [_device_use(one, names.get(one.device)) for one in result.devices],
        "time": time_part(result.time) if result.time else None,
        "steps": None if result.steps is None else [step_part(one) for one in result.steps],
        "stages": stages_part(result.stages) if result.stages else None,
        "stage_summary": summary_part(result.stages) if result.stages else None,
        "kernels": None if result.kernels is None else [kernel_part(one) for one in result.kernels],
        "families": None if result.families is None else [family_part(one) for one in result.families],
        "gaps": gaps_part(result.gaps, limit=MOST_GAPS) if result.gaps else None,
        "idle_by_cause": rows_part(result.gaps.causes) if result.gaps else None,
        "recompiles": recompiles_part(result.recompiles) if result.recompiles else None,
        "transfers": transfers_part(result.transfers) if result.transfers else None,
        "trust": {
            part: answer.trust
            for part, answer in (
                ("gaps", result.gaps),
                ("recompiles", result.recompiles),
                ("transfers", result.transfers),
            )
            if answer
        },
        "findings": None if result.findings is None else [ranked_part(one) for one in result.findings],
        "collective_skew": skew_part(result.skew) if result.skew and result.skew.waits.height else None,
        "xprof": None if result.xprof is None else _xprof(result.xprof),
        "import_report": import_part(result.import_report),
        "notes": [*notes_part(result.notes), *_answer_notes(result), *_no_collective(result)],
    }


def skew_part(skew: CollectiveSkew) -> dict[str, Any]:
    """Waiting in collectives for late ranks, by device."""
    return {
        "recorded": skew.recorded,
        "matched": skew.waits.height,
        "wait_ns": skew.wait_ns,
        "exposed_ns": skew.exposed_ns,
        "clocks_apart_ns": skew.clocks_apart_ns,
        "devices": rows_part(skew_by_device(skew)),
    }


def _xprof(figures: XprofFigures) -> dict[str, Any]:
    return {
        "total_ps": figures.total_ps,
        "idle_share": figures.idle_share,
        "duty_cycle": figures.duty_cycle,
        "flops": figures.flops,
        "wait_ps": figures.wait_ps,
    }


def _answer_notes(result: Report) -> list[dict[str, Any]]:
    """What limits the answers that have commands of their own."""
    answers = (result.gaps, result.recompiles, result.transfers)
    return [note for answer in answers if answer for note in notes_part(answer.notes) if note["part"] != "devices"]


def _no_collective(result: Report) -> list[dict[str, Any]]:
    """In text it would only be one more line on something that is not there."""
    none = result.skew is not None and not result.skew.recorded
    return [{"part": "collective_skew", "text": "No collective is recorded."}] if none else []


def _device_use(use: DeviceBusy, device: Device | None) -> dict[str, Any]:
    return {
        "device": use.device,
        "ordinal": device.ordinal if device else None,
        "name": device.name if device else None,
        "rank": device.rank if device else None,
        "events": use.events,
        "start_ns": use.start_ns,
        "span_ns": use.span_ns,
        "busy_ns": use.busy_ns,
        "idle_ns": use.idle_ns,
        "busy_share": use.busy_share,
        "computation_ns": use.computation_ns,
        "communication_ns": use.communication_ns,
        "exposed_communication_ns": use.exposed_communication_ns,
        "memcpy_ns": use.memcpy_ns,
        "exposed_memcpy_ns": use.exposed_memcpy_ns,
        "wait_ns": use.wait_ns,
        "without_launch": use.without_launch,
        "left_out": use.left_out,
    }
