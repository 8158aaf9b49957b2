"""What was asked for and what ran: one row per (op, inputs, stage, implementation).

Attention calls come from :mod:`traceview.attention`; every other device kernel is grouped under the innermost op that
launched it. Device time is a union of intervals per device, so concurrent kernels are not counted twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from traceview import intervals
from traceview.attention import SLOW, UNTOLD, AttentionCalls, Attribution, Evidence, find_calls, with_attribution
from traceview.reasons import Reason, eligibility_reasons
from traceview.sdpa import SdpaExplainer
from traceview.xla import identify_work, without_number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from traceview.timeline import Timeline


@dataclass(frozen=True, slots=True)
class KernelShare:
    """One kernel of a dispatch: how often it ran and the sum of its durations, ns."""

    name: str
    count: int
    device_ns: int


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One row of the dispatch table.

    Attributes:
        op: What asked; ``None`` if the op is not recorded.
        family: ``"attention"``, ``"gemm"``, …
        implementation: What ran; for families other than attention the kernel family's own id, ``None`` if unnamed.
        provider: Whose build it is, ``None`` if the name does not tell.
        direction: ``"forward"`` or ``"backward"``.
        stage: Stage, ``None`` before a stage analysis.
        count: Calls (for other families: kernels).
        device_ns: Union of the device time of its kernels, per device, ns.
        share: ``device_ns`` over the busy time of all devices; ``None`` without device work.
        host_ns: Host time of the ops, ns; ``None`` if no op is recorded.
        attribution: See :class:`traceview.attention.Attribution`.
        evidence: See :class:`traceview.attention.Evidence`.
        verdict: ``"ok"``, ``"slow"`` or ``"unknown"``.
        inputs: Recorded dims, dtypes, strides and concrete values as JSON text, or ``None``.
        reasons: What speaks for this reading.
        kernels: The kernels, longest first.
        event_ids: First few events of the row, to look at.
    """

    op: str | None
    family: str
    implementation: str | None
    provider: str | None
    direction: str
    stage: str | None
    count: int
    device_ns: int
    share: float | None
    host_ns: int | None
    attribution: str
    evidence: str
    verdict: str
    inputs: dict[str, str | None] | None
    reasons: tuple[Reason, ...]
    kernels: tuple[KernelShare, ...]
    event_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DispatchTable:
    """All dispatches, attention first, then by device time; and what the table could not see.

    Attributes:
        dispatches: The rows.
        busy_ns: Union of device work over all devices, ns.
        device_events: Number of device-work events.
        unknown_ns: Sum of the durations of kernels that no signature names, ns.
        unknown_names: The longest of them.
        span_ns: From the first to the last device work of each device, summed over devices, ns; 0 if not known.
        calls: The attention calls, with the device events of each; ``None`` in a table that was not built from a
            timeline.
    """

    dispatches: tuple[Dispatch, ...]
    busy_ns: int
    device_events: int
    unknown_ns: int
    unknown_names: tuple[str, ...]
    span_ns: int = 0
    calls: AttentionCalls | None = field(default=None, repr=False, compare=False)

    @property
    def attention(self) -> tuple[Dispatch, ...]:
        """The attention rows."""
        return tuple(row for row in self.dispatches if row.family == "attention")


def dispatch_table(timeline: Timeline, *, torch: str | None = None, cudnn: str | None = None) -> DispatchTable:
    """Build the dispatch table of a linked timeline.

    Args:
        timeline: A linked timeline.
        torch: PyTorch version, if known; it narrows the reasons of scaled dot-product attention.
        cudnn: cuDNN version, if known.
    """
    calls = find_calls(timeline)
    work = _work(timeline)
    busy_ns = _device_union(work)
    attention = _attention_rows(timeline, calls, work, busy_ns, SdpaExplainer(timeline, torch=torch, cudnn=cudnn))
    rest = _other_rows(timeline, work.filter(~pl.col("id").is_in(calls.members["id"].implode())), busy_ns)
    unknown = (
        work.filter(pl.col("family") == "unknown")
        .group_by("name")
        .agg(pl.col("dur_ns").sum())
        .sort("dur_ns", "name", descending=[True, False])
    )
    return DispatchTable(
        dispatches=(*attention, *rest),
        busy_ns=busy_ns,
        device_events=work.height,
        unknown_ns=int(unknown["dur_ns"].sum()),
        unknown_names=tuple(unknown["name"].head(5)),
        span_ns=_span(work),
        calls=calls,
    )


def _work(timeline: Timeline) -> pl.DataFrame:
    work = timeline.device_work.select(
        "id", "kind", "start_ns", "dur_ns", "device", "launch_id", "op_id", "stage", name=pl.col("name").cast(pl.String)
    )
    is_xla = pl.col("kind").cast(pl.String).is_in(["xla_op", "collective"])
    return identify_work(timeline, work).with_columns(
        name=pl.when(is_xla).then(without_number(pl.col("name"))).otherwise("name")
    )


def _device_union(work: pl.DataFrame) -> int:
    """Length of the union of the rows' intervals, device by device, ns."""
    return sum(_unions(work.with_columns(row=pl.lit(0))).values())


def _span(work: pl.DataFrame) -> int:
    """From the first start to the last end, device by device, ns."""
    ends = work.group_by("device").agg(
        first=pl.col("start_ns").min(), last=(pl.col("start_ns") + pl.col("dur_ns")).max()
    )
    return int((ends["last"] - ends["first"]).sum())


def _unions(work: pl.DataFrame) -> dict[int, int]:
    """For each ``row``, the union of its device time, summed over devices, ns."""
    if not work.height:
        return {}
    placed = work.with_columns(group=pl.struct("row", "device").rank("dense").cast(pl.Int64) - 1)
    starts = placed["start_ns"].to_numpy()
    totals = intervals.grouped_total(placed["group"].to_numpy(), starts, starts + placed["dur_ns"].to_numpy())
    rows = placed.select("group", "row").unique().with_columns(ns=pl.lit(pl.Series(totals)).gather(pl.col("group")))
    return dict(rows.group_by("row").agg(pl.col("ns").sum()).iter_rows())


def _kernels(work: pl.DataFrame) -> dict[int, tuple[KernelShare, ...]]:
    """For each ``row``, its kernels, longest first."""
    kernels = (
        work.group_by("row", "name")
        .agg(pl.len().alias("count"), pl.col("dur_ns").sum())
        .sort("row", "dur_ns", "name", descending=[False, True, False])
    )
    found: dict[int, list[KernelShare]] = {}
    for row, name, count, dur_ns in kernels.iter_rows():
        found.setdefault(row, []).append(KernelShare(name, count, dur_ns))
    return {row: tuple(shares) for row, shares in found.items()}


def _share(device_ns: int, busy_ns: int) -> float | None:
    return device_ns / busy_ns if busy_ns else None


_CALL_KEY: Final = [
    "op", "direction", "implementation", "provider", "stage", "inputs", "attribution", "evidence"
]  # fmt: skip


def _attention_rows(
    timeline: Timeline, calls: AttentionCalls, work: pl.DataFrame, busy_ns: int, explainer: SdpaExplainer
) -> list[Dispatch]:
    signatures = _signatures(timeline)
    grouped = calls.calls.with_columns(row=pl.struct(_CALL_KEY).rank("dense"))
    own = calls.members.join(grouped.select("call", "row"), on="call").join(work, on="id")
    unions, kernels = _unions(own), _kernels(own)
    witnesses = _kernels(own.filter(pl.col("family") == "attention"))
    devices = dict(own.group_by("row").agg(pl.col("device").unique()).iter_rows())
    rows = []
    for key, group in grouped.group_by([*_CALL_KEY, "row"], maintain_order=True):
        facts: dict[str, Any] = dict(zip([*_CALL_KEY, "row"], key, strict=True))
        row = facts["row"]
        device_ns = unions.get(row, 0)
        host_ns = group["host_ns"].drop_nulls().to_list()
        witness = witnesses[row][0].name if row in witnesses else None
        rows.append(
            Dispatch(
                op=facts["op"],
                family="attention",
                implementation=facts["implementation"],
                provider=facts["provider"],
                direction=facts["direction"],
                stage=facts["stage"],
                count=group.height,
                device_ns=device_ns,
                share=_share(device_ns, busy_ns),
                host_ns=sum(host_ns) if host_ns else None,
                attribution=facts["attribution"],
                evidence=facts["evidence"],
                verdict=_verdict(facts["implementation"]),
                inputs=signatures.get(facts["inputs"]),
                reasons=(
                    _observed(facts, witness),
                    *_eligibility(timeline, explainer, facts, group, devices.get(row, ()), kernels.get(row, ())),
                ),
                kernels=kernels.get(row, ()),
                event_ids=tuple(group["event_id"].head(3)),
            )
        )
    return sorted(rows, key=lambda row: (-row.device_ns, -(row.host_ns or 0), row.event_ids))


def _signatures(timeline: Timeline) -> dict[int, dict[str, str | None]]:
    return {
        row["inputs"]: {key: row[key] for key in ("dims", "dtypes", "strides", "concrete")}
        for row in timeline.inputs.iter_rows(named=True)
    }


def _eligibility(
    timeline: Timeline,
    explainer: SdpaExplainer,
    facts: dict[str, Any],
    calls: pl.DataFrame,
    devices: Iterable[int],
    kernels: Iterable[KernelShare],
) -> tuple[Reason, ...]:
    """Why PyTorch chose this backend; nothing for calls that are not its forward, or of which only a replay is seen."""
    if facts["direction"] != "forward" or timeline.events["thread"][calls["event_id"][0]] is None:
        return ()
    explanation = explainer.explain(
        facts["op"], calls["event_id"][0], facts["implementation"], devices, [one.name for one in kernels]
    )
    return () if explanation is None else eligibility_reasons(explanation)


def _verdict(implementation: str) -> str:
    if implementation in SLOW:
        return "slow"
    return "unknown" if implementation in UNTOLD else "ok"


def _observed(facts: dict[str, Any], kernel: str | None) -> Reason:
    """The reading of the trace in one sentence; ``kernel`` is the longest attention kernel, if any ran."""
    sentence = {
        Evidence.KERNEL.value: f"kernel {kernel} ran" if kernel else "matrix products and a softmax ran under the op",
        Evidence.OP.value: "an op that only this path calls is recorded",
        Evidence.SHAPES.value: "a matrix product makes the scores, a softmax reads them, a second product consumes it",
        Evidence.CHAIN.value: "a softmax stands between two batched matrix products; shapes are not recorded",
        Evidence.MATRICES.value: "a softmax stands between two products of single matrices: one head, or a soft lookup",
        Evidence.ORDER.value: "a softmax kernel stands between two matrix products on one stream; inferred from order",
        Evidence.NONE.value: "no kernel and no op under the call tells which path ran",
    }[facts["evidence"]]
    where = {
        Attribution.ATTRIBUTED.value: "",
        Attribution.KERNEL_ONLY.value: "; its launch or op is not recorded",
        Attribution.OPAQUE.value: "; a graph replay hides the op that asked for it",
    }[facts["attribution"]]
    return Reason(rule="observed", status="observed", text=sentence + where, evidence="trace", source="this trace")


def _other_rows(timeline: Timeline, work: pl.DataFrame, busy_ns: int) -> list[Dispatch]:
    events = timeline.events
    placed = with_attribution(timeline, work)
    asked = placed["captured_op"].zip_with(placed["captured_op"].is_not_null(), placed["op_id"])
    described = placed.with_columns(
        op=events["name"].gather(asked).cast(pl.String), inputs=events["inputs"].gather(asked)
    )
    signatures = _signatures(timeline)
    key = ["op", "family", "implementation", "provider", "stage", "inputs", "attribution"]
    keyed = described.sort("id").with_columns(row=pl.struct(key).rank("dense"))
    unions, kernels = _unions(keyed), _kernels(keyed)
    groups = keyed.group_by([*key, "row"], maintain_order=True).agg(
        pl.len().alias("count"), event_ids=pl.col("id").head(3)
    )
    rows = []
    for facts in groups.iter_rows(named=True):
        device_ns = unions[facts["row"]]
        unknown = facts["family"] == "unknown"
        rows.append(
            Dispatch(
                op=facts["op"],
                family=facts["family"],
                implementation=facts["implementation"],
                provider=facts["provider"],
                direction="forward",
                stage=facts["stage"],
                count=facts["count"],
                device_ns=device_ns,
                share=_share(device_ns, busy_ns),
                host_ns=None,
                attribution=facts["attribution"],
                evidence=Evidence.NONE.value if unknown else Evidence.KERNEL.value,
                verdict="unknown" if unknown else "ok",
                inputs=signatures.get(facts["inputs"]),
                reasons=(),
                kernels=kernels[facts["row"]],
                event_ids=tuple(facts["event_ids"]),
            )
        )
    return sorted(rows, key=lambda row: (-row.device_ns, row.event_ids))
