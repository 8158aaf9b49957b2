"""``traceview compare`` as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from traceview.render.documents import import_part, trace_part

if TYPE_CHECKING:
    from traceview.comparability import Condition
    from traceview.compare import Comparison, Delta, Side
    from traceview.dispatch_change import DispatchChange, Mix
    from traceview.slowdown_limit import LimitResult, SlowdownLimit
    from traceview.step_change import StepChange, StepSpread


def compare_document(
    found: Comparison, exit_code: int, gate: tuple[SlowdownLimit, LimitResult] | None = None
) -> dict[str, Any]:
    """``traceview.compare/1``.

    Args:
        found: The comparison.
        exit_code: What the program ends with, options considered.
        gate: The limit asked for, and whether it holds.
    """
    return {
        "schema": "traceview.compare/1",
        "verdict": found.verdict.value,
        "why": found.why,
        "exit_code": exit_code,
        "comparable": found.comparable.value,
        "conditions": [_condition(one) for one in found.conditions],
        "before": _side(found.before),
        "after": _side(found.after),
        "step": _step(found.step),
        "phases": [_step(one) for one in found.phases],
        "parts": None if found.parts is None else [_delta(one) for one in found.parts],
        "stages": None if found.stages is None else [_delta(one) for one in found.stages],
        "unattributed": None if found.unattributed is None else _delta(found.unattributed),
        "families": [_delta(one) for one in found.families],
        "kernels": [_delta(one) for one in found.kernels],
        "dispatches": [_dispatch(one) for one in found.dispatches],
        "recompiles": {
            name: {"count": one.count, "total_ns": one.total_ns}
            for name, one in zip(("before", "after"), found.recompiles, strict=True)
        },
        "limit": None
        if gate is None
        else {"text": gate[0].text, "slower_share": gate[0].share, "exit_code": int(gate[1].code), "why": gate[1].why},
        "notes": _notes(found),
    }


def _condition(one: Condition) -> dict[str, Any]:
    return {
        "what": one.what,
        "before": one.before,
        "after": one.after,
        "effect": one.effect.value,
        "consequence": one.consequence or None,
    }


def _side(one: Side) -> dict[str, Any]:
    return {
        "trace": trace_part(one.trace),
        "counted_steps": one.count,
        "step_source": one.steps.table.source.value,
        "import_report": import_part(one.import_report),
    }


def _spread(one: StepSpread | None) -> dict[str, Any] | None:
    if one is None:
        return None
    return {
        "count": one.count,
        "median_ns": one.median_ns,
        "mean_ns": one.mean_ns,
        "least_ns": one.least_ns,
        "most_ns": one.most_ns,
    }


def _step(one: StepChange) -> dict[str, Any]:
    return {
        "phase": one.phase,
        "before": _spread(one.before),
        "after": _spread(one.after),
        "change": one.change,
        "speedup": one.speedup,
        "low": one.low,
        "high": one.high,
        "verdict": one.verdict.value,
        "why": one.why,
    }


def _delta(one: Delta) -> dict[str, Any]:
    return {
        "name": one.name,
        "family": one.family,
        "before_ns": one.before_ns,
        "after_ns": one.after_ns,
        "difference_ns": one.difference_ns,
        "change": one.change,
        "before_count": one.before_count,
        "after_count": one.after_count,
    }


def _mix(one: Mix) -> dict[str, Any]:
    return {
        "implementation": one.implementation,
        "count": one.count,
        "device_ns": one.device_ns,
        "share": one.share,
        "verdict": one.verdict,
        "ops": list(one.ops),
    }


def _dispatch(one: DispatchChange) -> dict[str, Any]:
    return {
        "family": one.family,
        "direction": one.direction,
        "stage": one.stage,
        "before": [_mix(mix) for mix in one.before],
        "after": [_mix(mix) for mix in one.after],
    }


def _notes(found: Comparison) -> list[dict[str, Any]]:
    """Why a part is null."""
    notes = []
    if found.parts is None:
        notes.append({"part": "parts", "text": "Device work is not recorded in both traces."})
    if found.stages is None:
        notes += [{"part": part, "text": "A trace has no stage."} for part in ("stages", "unattributed")]
    if any(one.count is None for one in found.recompiles):
        notes.append({"part": "recompiles", "text": "A trace would not show a compilation."})
    if found.step.low is None:
        notes.append({"part": "step", "text": "Too few steps on a side for an interval."})
    return notes
