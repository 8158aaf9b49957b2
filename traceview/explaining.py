"""Why each call ran what it ran, told as a person asks: asked, got, refused, not excluded, cost, what to change."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from traceview.attention import INFERRED, SLOW, UNTOLD
from traceview.callers import caller
from traceview.dispatch import dispatch_table
from traceview.eligibility import read_call
from traceview.knowledge.attention_wrappers import WRAPPERS
from traceview.reasons import Reason, Role, changes
from traceview.rules.base import Facts
from traceview.rules.catalogue import RULES
from traceview.sdpa import version_conflicts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from traceview.dispatch import Dispatch, DispatchTable
    from traceview.eligibility import SdpaCall, Tensor
    from traceview.findings import Finding
    from traceview.timeline import Timeline

ATTENTION: Final = "attention"

_RULE_OF: Final = {"unfused": "TV101", "math": "TV102", "unknown": "TV103"}
"""The rule that is about an implementation; its advice is given where the rulebook has none."""

_UNEXPECTED: Final = (Role.CAUSE, Role.OPEN, Role.NOT_EXCLUDED)
"""Reasons that only a call has which a backend before the one that ran did not take."""


@dataclass(frozen=True, slots=True)
class Explained:
    """Calls of one op that ran one implementation for one set of reasons.

    Attributes:
        rows: Their dispatches, one per input signature, longest first; never empty.
        where: Module and source line that called the first, ``None`` if no stack was recorded.
        expected: What ran needs no explanation.
        change: What to change, one line per backend; empty if nothing has to be.
    """

    rows: tuple[Dispatch, ...]
    where: str | None
    expected: bool
    change: tuple[str, ...]

    @property
    def first(self) -> Dispatch:
        """The dispatch with the most device time, which stands for the others."""
        return self.rows[0]

    @property
    def count(self) -> int:
        """Calls; for families other than attention, kernels."""
        return sum(row.count for row in self.rows)

    @property
    def device_ns(self) -> int:
        """Device time, ns."""
        return sum(row.device_ns for row in self.rows)

    @property
    def host_ns(self) -> int | None:
        """Host time of the ops, ns; ``None`` if no op is recorded."""
        known = [row.host_ns for row in self.rows if row.host_ns is not None]
        return sum(known) if known else None

    @property
    def cost_ns(self) -> int | None:
        """Upper bound of the device time that a fix can save, ns; ``None`` if nothing slow is proven."""
        return self.device_ns if self.first.implementation in SLOW and self.device_ns else None

    @property
    def proven(self) -> bool:
        """Whether what ran is recorded, and not concluded from the order of kernels."""
        return self.first.evidence not in INFERRED

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The reasons of the first dispatch; those of the others name the same rules."""
        return self.first.reasons

    def of(self, *roles: Role) -> tuple[Reason, ...]:
        """The reasons of some roles."""
        return tuple(reason for reason in self.reasons if reason.role in roles)


@dataclass(frozen=True, slots=True)
class Explanations:
    """What ``traceview explain`` found.

    Attributes:
        wanted: The op name, family or glob that was asked about.
        table: Every dispatch of the trace.
        explained: Slow ones first, then those that cannot be told, then the others; by device time.
        findings: Findings about attention; empty if other ops were asked about.
        notes: Where what was given contradicts what was recorded, one sentence each.
    """

    wanted: str
    table: DispatchTable
    explained: tuple[Explained, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()


def explain_trace(
    timeline: Timeline, *, op: str = ATTENTION, torch: str | None = None, cudnn: str | None = None
) -> Explanations:
    """Explain the dispatches of a linked timeline.

    Args:
        timeline: With launches linked.
        op: A family (``"attention"``, ``"gemm"``, …), or a glob of op names, with or without ``aten::``.
        torch: PyTorch version, if known; else the one that the trace states, if it does.
        cudnn: cuDNN version, likewise.
    """
    table = dispatch_table(timeline, torch=torch, cudnn=cudnn)
    rows = [row for row in table.dispatches if _is_wanted(row, op)]
    facts = Facts(timeline, table)
    about_attention = any(row.family == ATTENTION for row in rows)
    rules = [rule for rule in RULES if ATTENTION in rule.name] if about_attention else []
    findings = tuple(finding for rule in rules for finding in rule.check(facts))
    explained = [_explained(timeline, group, findings) for group in _groups(rows)]
    conflicts = version_conflicts(timeline, {"torch": torch, "cudnn": cudnn})
    return Explanations(op, table, tuple(sorted(explained, key=_order)), findings, conflicts)


def explain_row(timeline: Timeline, row: Dispatch, findings: Sequence[Finding]) -> Explained:
    """Explain one row of a dispatch table.

    Args:
        timeline: The timeline of the table.
        row: The row.
        findings: Findings about attention, for advice where the rulebook has none.
    """
    return _explained(timeline, [row], findings)


def _is_wanted(row: Dispatch, op: str) -> bool:
    if row.family == op:
        return True
    return row.op is not None and any(fnmatchcase(name, op) for name in (row.op, row.op.removeprefix("aten::")))


def _groups(rows: Iterable[Dispatch]) -> Iterable[list[Dispatch]]:
    """Rows of one op and one implementation for which the same rules speak; they differ in shapes and stage."""
    groups: dict[tuple[object, ...], list[Dispatch]] = {}
    for row in rows:
        said = tuple((reason.role, reason.rule, reason.status, reason.detail.backends) for reason in row.reasons)
        key = (
            row.op, row.family, row.direction, row.implementation, row.provider, row.attribution, row.evidence, said
        )  # fmt: skip
        groups.setdefault(key, []).append(row)
    return groups.values()


def _explained(timeline: Timeline, rows: Sequence[Dispatch], findings: Sequence[Finding]) -> Explained:
    ordered = tuple(sorted(rows, key=lambda row: (-row.device_ns, -(row.host_ns or 0), row.event_ids)))
    first = ordered[0]
    expected = first.verdict == "ok" and not _is_surprising(first.reasons)
    return Explained(
        rows=ordered,
        where=caller(timeline, first.event_ids[0]) if first.event_ids else None,
        expected=expected,
        change=() if expected else _change(ordered, findings),
    )


def _is_surprising(reasons: Sequence[Reason]) -> bool:
    """Another backend would have come first, or a rule says that what ran cannot run."""
    return any(one.role in _UNEXPECTED or (one.role is Role.ORDER and one.status == "observed") for one in reasons)


def _change(rows: Sequence[Dispatch], findings: Sequence[Finding]) -> tuple[str, ...]:
    found = changes(reason for row in rows for reason in row.reasons)
    if found:
        return found
    code = _RULE_OF.get(rows[0].implementation or "")
    if code == "TV101" and rows[0].provider == "xla":
        code = "TV108"
    wrapper = WRAPPERS.get(rows[0].op or "")
    if code == "TV101" and wrapper:
        return (wrapper.fix,)
    fixes = (finding.fix for finding in findings if finding.code == code)
    return tuple(dict.fromkeys(fix for fix in fixes if fix not in {one.fix for one in WRAPPERS.values()}))[:1]


def _order(one: Explained) -> tuple[object, ...]:
    first = one.first
    kind = 0 if first.implementation in SLOW else 1 if first.implementation in UNTOLD else 3 if one.expected else 2
    return (kind, -one.device_ns, -(one.host_ns or 0), first.event_ids)


def asked(row: Dispatch) -> str:
    """What a call asked for, in one line: tensors with their roles, and the flags that the rules look at."""
    call = read_call(row.op, row.inputs) if row.op and row.inputs else None
    if call is None or call.query.dims is None:
        return ""
    parts = [f"{name} {_tensor(tensor)}" for name, tensor in (
        ("query", call.query), ("key", call.key), ("value", call.value)
    )]  # fmt: skip
    return ", ".join([*parts, *_flags(call)])


def _flags(call: SdpaCall) -> list[str]:
    mask = "" if call.mask is None else f"mask {_tensor(call.mask)}"
    if call.mask_known and call.mask is None:
        mask = "no mask"
    return [
        text
        for text in (
            mask,
            f"dropout {call.dropout_p:g}" if call.dropout_p else "",
            "is_causal" if call.is_causal else "",
            "enable_gqa" if call.enable_gqa else "",
            "training" if call.training else "",
        )
        if text
    ]


def _tensor(tensor: Tensor) -> str:
    dims = "dims not recorded" if tensor.dims is None else "[" + ",".join(str(size) for size in tensor.dims) + "]"
    return f"{dims} {tensor.dtype}" if tensor.dtype else dims
