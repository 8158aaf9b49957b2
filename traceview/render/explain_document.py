"""``traceview explain`` as a JSON document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from traceview.explaining import asked
from traceview.reasons import Role
from traceview.render.documents import finding_part, import_part, trace_part

if TYPE_CHECKING:
    from traceview.explaining import Explained, Explanations
    from traceview.reasons import Reason
    from traceview.report import ImportSummary, TraceInfo

PARTS = {
    "refused": (Role.CAUSE, Role.ALSO),
    "cannot_tell": (Role.OPEN,),
    "allowed": (Role.ALLOWED,),
    "not_excluded": (Role.NOT_EXCLUDED,),
    "order": (Role.ORDER,),
    "means": (Role.MEANS,),
}
"""Keys of a group of calls that hold reasons, and which."""


def explain_document(found: Explanations, trace: TraceInfo, summary: ImportSummary) -> dict[str, Any]:
    """``traceview.explain/1``."""
    return {
        "schema": "traceview.explain/1",
        "trace": trace_part(trace),
        "op": found.wanted,
        "busy_ns": found.table.busy_ns,
        "explanations": [_explained(one) for one in found.explained] if found.table.dispatches else None,
        "findings": [finding_part(finding) for finding in found.findings],
        "import_report": import_part(summary),
        "notes": [
            *({"part": "explanations", "text": note} for note in found.notes),
            *(
                []
                if found.table.dispatches
                else [
                    {"part": "explanations", "text": "The trace has no device work and no op that asks for attention."}
                ]
            ),
        ],
    }


def _explained(one: Explained) -> dict[str, Any]:
    first = one.first
    return {
        "op": first.op,
        "family": first.family,
        "direction": first.direction,
        "called_at": one.where,
        "asked": [
            {
                "text": asked(row) or None,
                "inputs": row.inputs,
                "stage": row.stage,
                "count": row.count,
                "device_ns": row.device_ns,
            }
            for row in one.rows
        ],
        "implementation": first.implementation,
        "provider": first.provider,
        "attribution": first.attribution,
        "evidence": first.evidence,
        "verdict": first.verdict,
        "expected": one.expected,
        "got": next((reason.text for reason in one.of(Role.OBSERVED)), None),
        "kernels": [kernel.name for kernel in first.kernels],
        "count": one.count,
        "device_ns": one.device_ns,
        "host_ns": one.host_ns,
        "cost_ns": one.cost_ns,
        **{key: [_reason(reason) for reason in one.of(*roles)] for key, roles in PARTS.items()},
        "change": list(one.change),
    }


def _reason(reason: Reason) -> dict[str, Any]:
    detail = reason.detail
    return {
        "rule": reason.rule,
        "status": reason.status,
        "certain": reason.role is not Role.ALSO,
        "backends": list(detail.backends),
        "text": reason.text,
        "facts": detail.facts or None,
        "statement": detail.statement or None,
        "evidence": reason.evidence,
        "evidence_class": detail.evidence_class or None,
        "sources": [{"text": one.text, "url": one.url or None, "checked": one.checked} for one in detail.sources],
        "fix": detail.fix or None,
    }
