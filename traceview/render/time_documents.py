"""Steps, the account of their time, and stages as JSON: times in ns, shares of one, every key always there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from traceview.accounting import HOST_PARTS
from traceview.render.documents import import_part, notes_part, trace_part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.accounting import DeviceTime, ProcessTime
    from traceview.report import Step
    from traceview.stage_table import StageTable
    from traceview.steps import StepTimes
    from traceview.time_report import StageReport, StepReport, StepTimeline


def steps_document(result: StepReport, steps: Sequence[Step]) -> dict[str, Any]:
    """``traceview.steps/1``."""
    return {
        "schema": "traceview.steps/1",
        "trace": trace_part(result.trace),
        "steps": [step_part(one) for one in steps],
        "time": time_part(result.steps),
        "import_report": import_part(result.import_report),
        "notes": notes_part(result.notes),
    }


def stages_document(result: StageReport) -> dict[str, Any]:
    """``traceview.stages/1``."""
    dispatches = {
        stage: [
            {
                "op": one.op,
                "family": one.family,
                "implementation": one.implementation,
                "provider": one.provider,
                "count": one.count,
                "device_ns": one.device_ns,
            }
            for one in rows
        ]
        for stage, rows in result.dispatches.items()
    }
    stages = stages_part(result.stages)
    return {
        "schema": "traceview.stages/1",
        "trace": trace_part(result.trace),
        **summary_part(result.stages),
        "stages": None
        if stages is None
        else [{**row, "dispatches": dispatches.get(row["stage"], [])} for row in stages],
        "import_report": import_part(result.import_report),
        "notes": notes_part(result.notes),
    }


def summary_part(table: StageTable) -> dict[str, Any]:
    """What the stages were measured over, and what is in none."""
    return {
        "sources": list(table.sources),
        "wall_ns": table.wall_ns,
        "counted_steps": table.counted,
        "counted_devices": table.devices,
        "unattributed_ns": table.unattributed_ns,
        "unattributed_busy_ns": table.unattributed_busy_ns,
        "unattributed_idle_ns": table.unattributed_idle_ns,
    }


def stages_part(table: StageTable) -> list[dict[str, Any]] | None:
    """``stages``: one object per stage, ``None`` if no stage is known."""
    return None if table.stages is None else table.stages.to_dicts()


def time_part(steps: StepTimeline) -> dict[str, Any]:
    """``time``: what the steady steps went to."""
    return {
        "step_source": steps.table.source.value,
        "steady_steps": [_times(one) for one in steps.times],
        "devices": None if steps.devices is None else [_device(one) for one in steps.devices],
        "processes": [_process(one, steps) for one in steps.processes],
        "idle_doubt": steps.idle_doubt,
    }


def _times(one: StepTimes) -> dict[str, Any]:
    names = ("phase", "count", "total_ns", "mean_ns", "p50_ns", "p90_ns", "p99_ns", "least_ns", "most_ns")
    return {name: getattr(one, name) for name in names}


def _device(one: DeviceTime) -> dict[str, Any]:
    return {
        "device": one.device,
        "steps": one.steps,
        "wall_ns": one.wall_ns,
        "compute_ns": one.compute_ns,
        "collective_ns": one.collective_ns,
        "copy_ns": one.copy_ns,
        "async_wait_ns": one.async_wait_ns,
        "idle_ns": one.idle_ns,
        "idle_by_cause": dict(one.idle_by_cause),
        "unattributed_ns": one.unattributed_ns,
        "hidden_collective_ns": one.hidden_collective_ns,
        "hidden_copy_ns": one.hidden_copy_ns,
    }


def _process(one: ProcessTime, steps: StepTimeline) -> dict[str, Any]:
    return {
        "process": one.process,
        "rank": steps.ranks.get(one.process),
        "steps": one.steps,
        "wall_ns": one.wall_ns,
        **{f"{part}_ns": one.parts[part] for part in HOST_PARTS},
    }


def step_part(step: Step) -> dict[str, Any]:
    """One step."""
    names = ("name", "index", "rank", "start_ns", "wall_ns", "host_ns", "warmup", "why", "phase", "requests")
    return {name: getattr(step, name) for name in (*names, "prefill_tokens", "decode_tokens")}
