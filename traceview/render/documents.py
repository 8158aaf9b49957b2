"""Results as JSON documents: the schema id, every key always present, times in ns, shares of one.

The keys are published as JSON Schemas in ``docs/schemas``. A key is never dropped: what is not known is ``null``
and has an entry in ``notes``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.dispatch import Dispatch
    from traceview.errors import ExitCode
    from traceview.expectations.model import ExpectationResult
    from traceview.expectations.proposing import Proposal
    from traceview.findings import Finding
    from traceview.gate import CheckResult
    from traceview.report import ImportSummary, KernelReport, KernelUse, PartNote, TraceInfo
    from traceview.top_findings import RankedFinding


def dumps(document: dict[str, Any]) -> str:
    """The text of a document. Only ASCII, so that no terminal or pipe can garble it."""
    return json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False)


def kernels_document(result: KernelReport, shown: Sequence[KernelUse] | None) -> dict[str, Any]:
    """``traceview.kernels/1``.

    Args:
        result: The analysis.
        shown: The kernels to list, chosen and ordered; ``None`` without device work.
    """
    return {
        "schema": "traceview.kernels/1",
        "trace": trace_part(result.trace),
        "device_ns": result.device_ns,
        "busy_ns": result.busy_ns,
        "distinct": None if result.kernels is None else len(result.kernels),
        "kernels": None if shown is None else [kernel_part(one) for one in shown],
        "families": None if result.families is None else [family_part(one) for one in result.families],
        "import_report": import_part(result.import_report),
        "notes": notes_part(result.notes),
    }


def check_document(
    result: CheckResult, trace: TraceInfo, summary: ImportSummary, exit_code: ExitCode
) -> dict[str, Any]:
    """``traceview.check-dispatch/1``; ``exit_code`` is what the program ends with, options considered."""
    return {
        "schema": "traceview.check-dispatch/1",
        "verdict": result.verdict.value,
        "summary": result.summary,
        "exit_code": int(exit_code),
        "trace": trace_part(trace),
        "busy_ns": result.table.busy_ns,
        "span_ns": result.table.span_ns,
        "dispatches": [_dispatch(row) for row in result.table.dispatches] if result.table.dispatches else None,
        "expectations_file": result.expectations_path,
        "context": {name: getattr(result.context, name) for name in ("torch", "cudnn", "cuda", "gpu", "notes")},
        "expectations": None if result.expectations is None else [expectation_part(one) for one in result.expectations],
        "findings": [finding_part(finding) for finding in result.findings],
        "unidentified": {"device_ns": result.table.unknown_ns, "names": list(result.table.unknown_names)},
        "import_report": import_part(summary),
        "notes": [
            *(
                [{"part": "expectations", "text": "No expectations were given: the built-in policy was applied."}]
                if result.expectations is None
                else []
            ),
            *({"part": "findings", "text": note} for note in result.notes),
            *(
                []
                if result.table.dispatches
                else [{"part": "dispatches", "text": "The trace has no device work and no op that asks for attention."}]
            ),
        ],
    }


def proposal_document(proposal: Proposal, path: str | None) -> dict[str, Any]:
    """``traceview.init-expectations/1``; ``path`` is ``None`` if no file was written."""
    return {
        "schema": "traceview.init-expectations/1",
        "path": path,
        "expectations": list(proposal.stated),
        "accepted": proposal.accepted,
        "text": proposal.text,
    }


def expectation_part(result: ExpectationResult) -> dict[str, Any]:
    """One expectation, prohibition or limit, judged."""
    return {
        "kind": result.kind.value,
        "line": result.line,
        "text": result.text,
        "verdict": result.verdict.value,
        "observed": result.observed,
        "accepted": result.accepted,
    }


def finding_part(finding: Finding) -> dict[str, Any]:
    """One finding, the same in every document."""
    return {
        "code": finding.code,
        "severity": finding.severity.value,
        "title": finding.title,
        "where": finding.where,
        "evidence": list(finding.evidence),
        "cost_ns": finding.cost_ns,
        "cost_of": finding.cost_of.value,
        "confidence": finding.confidence.value,
        "fix": finding.fix,
        "false_alarm_if": finding.false_alarm_if,
    }


def ranked_part(finding: RankedFinding) -> dict[str, Any]:
    """One finding with what a fix can win."""
    return {
        **finding_part(finding),
        "share": finding.share,
        "won_ns": finding.won_ns,
        "window": finding.window.value,
        "trust": finding.trust,
        "limited_by": list(finding.limited_by),
    }


def _dispatch(row: Dispatch) -> dict[str, Any]:
    return {
        "op": row.op,
        "family": row.family,
        "implementation": row.implementation,
        "provider": row.provider,
        "direction": row.direction,
        "stage": row.stage,
        "count": row.count,
        "device_ns": row.device_ns,
        "share": row.share,
        "host_ns": row.host_ns,
        "attribution": row.attribution,
        "evidence": row.evidence,
        "verdict": row.verdict,
        "inputs": row.inputs,
        "reasons": [
            {
                "rule": reason.rule,
                "status": reason.status,
                "text": reason.text,
                "evidence": reason.evidence,
                "source": reason.source,
            }
            for reason in row.reasons
        ],
        "kernels": [
            {"name": kernel.name, "count": kernel.count, "device_ns": kernel.device_ns} for kernel in row.kernels
        ],
        "event_ids": list(row.event_ids),
    }


def trace_part(trace: TraceInfo) -> dict[str, Any]:
    """``trace``, the same in every document."""
    return {
        "path": trace.files[0],
        "files": list(trace.files),
        "format": trace.format,
        "producer": trace.producer,
        "producer_version": trace.producer_version,
        "devices": [
            {
                "device": one.device,
                "ordinal": one.ordinal,
                "name": one.name,
                "vendor": one.vendor,
                "compute_capability": one.compute_capability,
                "architecture": one.architecture,
                "rank": one.rank,
                "used": one.used,
            }
            for one in trace.devices
        ],
        "events": trace.events,
        "truncated": trace.truncated,
        "trust": trace.trust,
    }


def import_part(summary: ImportSummary) -> dict[str, Any]:
    """``import_report``, the same in every document."""
    return {
        "trust": summary.trust,
        "truncated": summary.truncated,
        "counts": {kind: count.n for kind, count in sorted(summary.counts.items())},
        "examples": {kind: count.example for kind, count in sorted(summary.counts.items()) if count.example},
        "notes": [{"kind": note.kind, "text": note.text, "trust": note.trust} for note in summary.notes],
    }


def notes_part(notes: Sequence[PartNote]) -> list[dict[str, str]]:
    """``notes``: why a part is null or limited."""
    return [{"part": note.part, "text": note.text} for note in notes]


def kernel_part(use: KernelUse) -> dict[str, Any]:
    """One kernel."""
    return {
        "name": use.name,
        "family": use.family,
        "implementation": use.implementation,
        "provider": use.provider,
        "tensor_core": use.tensor_core,
        "count": use.count,
        "total_ns": use.total_ns,
        "mean_ns": use.mean_ns,
        "union_ns": use.union_ns,
        "share": use.share,
        "busy_share": use.busy_share,
    }


def family_part(use: KernelUse) -> dict[str, Any]:
    """One family of device work."""
    return {
        "family": use.family,
        "count": use.count,
        "total_ns": use.total_ns,
        "union_ns": use.union_ns,
        "share": use.share,
        "busy_share": use.busy_share,
    }
