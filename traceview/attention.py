"""Every attention call of a trace: who asked, what ran, and how that is known.

A call is found in one of three ways, best witness first:

1. An op that asks for attention (``aten::scaled_dot_product_attention``, a library's custom op). What ran is read
   from the kernels under it, or from a child op that only one path has.
2. An attention kernel without such an op: captured graphs, custom launches, windows that opened too late.
3. A softmax between two matrix products without either: attention written by hand (:mod:`traceview.unfused`), or left
   so by XLA, proven by the compiled program (:mod:`traceview.xla_attention`).

"Math" and "unfused" always need positive proof. A call whose kernels are not recognised is ``unknown``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import launches, nesting, unfused, xla_attention
from traceview.graph_captures import captured_ops
from traceview.knowledge.ops import find_attention_op
from traceview.schema import Column, FrameSchema
from traceview.xla import identify_work

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from traceview.timeline import Timeline

SLOW: Final = ("math", "unfused")
"""Implementations that materialise the whole score matrix."""

UNTOLD: Final = ("unknown", "opaque")
"""Implementations that are none: the trace does not tell."""


class Attribution(StrEnum):
    """How much of the way from the request to the kernel the trace shows."""

    ATTRIBUTED = "attributed"
    """The op that asked for the kernel is recorded."""
    KERNEL_ONLY = "kernel-only"
    """The kernel is recorded, the op that asked for it is not."""
    OPAQUE = "opaque"
    """A replayed graph launched the kernel: the op was gone by then."""


class Evidence(StrEnum):
    """What the implementation of a call is read from."""

    KERNEL = "kernel"
    """The name of a kernel that ran."""
    OP = "op"
    """The name of an op that only this path calls."""
    SHAPES = "shapes"
    """Matrix product, softmax, matrix product whose recorded shapes feed each other."""
    CHAIN = "chain"
    """Batched matrix product, softmax, batched matrix product as ops, shapes not recorded."""
    MATRICES = "matrices"
    """Matrix product, softmax, matrix product without batches: one head, or a soft lookup in a table. Inferred."""
    ORDER = "order"
    """Only the order of kernels on a stream: inferred, not proven."""
    NONE = "none"
    """Nothing recorded tells."""


ATTENTION_CALLS: Final = FrameSchema(
    "attention_calls",
    "One row per attention call.",
    (
        Column("call", pl.UInt32, "", "key; `AttentionCalls.members` lists the device events of each call"),
        Column("event_id", pl.UInt32, "", "the event that stands for the call: its op, else its kernel or softmax"),
        Column("op", pl.String, "", "what asked: op name, or the chain of ops for attention by hand", nullable=True),
        Column("direction", pl.String, "", "`forward` or `backward`"),
        Column("implementation", pl.String, "", "implementation id; `unknown` if the trace does not tell"),
        Column("provider", pl.String, "", "whose build ran", nullable=True),
        Column("attribution", pl.String, "", "see `Attribution`"),
        Column("evidence", pl.String, "", "see `Evidence`"),
        Column("host_ns", pl.Int64, "ns", "duration of the op on the host", nullable=True),
        Column("inputs", pl.UInt32, "", "key into `Timeline.inputs` of the op", nullable=True),
        Column("stage", pl.Categorical, "", "stage of the call", nullable=True),
    ),
)


INFERRED: Final = (Evidence.ORDER.value, Evidence.MATRICES.value)
"""Evidence that shows what looks like attention, and does not prove that it is."""


@dataclass(frozen=True, slots=True)
class AttentionCalls:
    """All attention calls (:data:`ATTENTION_CALLS`) and, in ``members``, the device events ``id`` of each ``call``."""

    calls: pl.DataFrame
    members: pl.DataFrame


def find_calls(timeline: Timeline) -> AttentionCalls:
    """Find the attention calls of a linked timeline."""
    work = _device_work(timeline)
    roots = _Roots(timeline)
    rooted = _with_their_calls(
        work.with_columns(
            pl.Series("root", roots.of_events(work["op_id"])),
            pl.Series("captured_root", roots.of_events(work["captured_op"])),
        )
    )
    own, free = rooted.filter(pl.col("root") >= 0), rooted.filter(pl.col("root") < 0)
    # A call that was captured ran nothing then: its replays are the calls.
    replayed = set(free["captured_root"].unique()) - {-1} - set(own["root"])
    by_op = _calls_by_op(timeline, roots, own, without=replayed)
    by_kernel = _calls_by_kernel(timeline, free)
    taken = by_kernel.members["id"]
    parts = [by_op, by_kernel]
    proven = xla_attention.find(timeline, free.filter(~pl.col("id").is_in(taken.implode())))
    if proven is not None:
        parts.append(AttentionCalls(*proven))
        taken = pl.concat([taken, proven[1]["id"]])
    by_hand = unfused.find_chains(
        timeline, free.filter(~pl.col("id").is_in(taken.implode())), under_attention=roots.host_rows_under()
    )
    return _joined([*parts, _with_provider(timeline, AttentionCalls(*by_hand))])


def _with_provider(timeline: Timeline, found: AttentionCalls) -> AttentionCalls:
    """Chains of XLA ops are XLA's own doing, not that of a library."""
    compiled = timeline.events.filter(pl.col("kind") == "xla_op")["id"]
    ours = pl.col("event_id").is_in(compiled.implode())
    provider = pl.when(ours).then(pl.lit("xla")).otherwise(pl.col("provider"))
    return AttentionCalls(found.calls.with_columns(provider=provider), found.members)


def _device_work(timeline: Timeline) -> pl.DataFrame:
    """Device work with its kernel identity and its attribution."""
    work = timeline.device_work.with_columns(pl.col("name").cast(pl.String))
    work = identify_work(timeline, work).drop("signature", "tensor_core", "precision")
    return with_attribution(timeline, work)


def with_attribution(timeline: Timeline, work: pl.DataFrame) -> pl.DataFrame:
    """Device work with its ``attribution`` and, for a replayed graph, the op it was captured from (``captured_op``).

    Args:
        timeline: Linked timeline.
        work: Rows with ``id``, ``launch_id`` and ``op_id``.
    """
    replays = launches.graph_launch_ids(timeline.events)
    captured = captured_ops(timeline).rename({"op_id": "captured_op"})
    return work.join(captured, on="id", how="left", maintain_order="left").with_columns(
        attribution=pl.when(pl.col("launch_id").is_in(replays.implode()) & pl.col("captured_op").is_null())
        .then(pl.lit(Attribution.OPAQUE.value))
        .when(pl.col("op_id").is_not_null() | pl.col("captured_op").is_not_null())
        .then(pl.lit(Attribution.ATTRIBUTED.value))
        .otherwise(pl.lit(Attribution.KERNEL_ONLY.value))
    )


class _Roots:
    """The outermost op that asks for attention around each event."""

    def __init__(self, timeline: Timeline) -> None:
        events = timeline.events
        ops = events.filter(pl.col("kind") == "op").select("id", pl.col("name"))
        names = ops["name"].unique().cast(pl.String)
        self.known = {name: op for name in names if (op := find_attention_op(name))}
        self.asking = ops.filter(pl.col("name").cast(pl.String).is_in(list(self.known))).with_columns(
            pl.col("name").cast(pl.String)
        )
        self._parent = events["parent_id"].cast(pl.Int64).fill_null(-1).to_numpy()
        self._on_host = events["thread"].is_not_null().to_numpy()
        marked = np.zeros(events.height, bool)
        marked[self.asking["id"].to_numpy()] = True
        self._root = self._outermost(marked)

    def _outermost(self, marked: NDArray[np.bool_]) -> NDArray[np.int64]:
        """For each event the outermost marked event around it (itself included), -1 if there is none."""
        if not marked.any():
            return np.full(len(marked), -1, np.int64)
        nearest = nesting.nearest_marked(self._parent, marked)
        asking = np.flatnonzero(marked)
        above = np.where(self._parent[asking] >= 0, nearest[self._parent[asking]], -1)
        next_up = np.arange(len(marked))
        next_up[asking[above >= 0]] = above[above >= 0]
        while not np.array_equal(next_up[next_up[asking]], next_up[asking]):
            next_up[asking] = next_up[next_up[asking]]
        return np.where(nearest >= 0, next_up[nearest], -1)

    def of_events(self, ids: pl.Series) -> NDArray[np.int64]:
        """Root of each event id; -1 for none and for null."""
        known = ids.fill_null(0).to_numpy()
        return np.where(ids.is_not_null().to_numpy(), self._root[known], -1)

    def host_rows_under(self) -> NDArray[np.bool_]:
        """For each event whether it lies under an op that asks for attention."""
        under: NDArray[np.bool_] = (self._root >= 0) & self._on_host
        return under

    def table(self) -> pl.DataFrame:
        """One row per root: its event, and what the names under it prove."""
        facts = self.asking.with_columns(
            root=pl.Series(self._root[self.asking["id"].to_numpy()]),
            direction=pl.Series([self.known[name].direction for name in self.asking["name"]], dtype=pl.String),
            backend=pl.Series([self.known[name].backend for name in self.asking["name"]], dtype=pl.String),
            proven=pl.Series([self.known[name].implementation for name in self.asking["name"]], dtype=pl.String),
            asks=pl.Series([self.known[name].asks for name in self.asking["name"]], dtype=pl.String),
        ).sort("id")
        return facts.group_by("root", maintain_order=True).agg(
            pl.col("name").first().alias("op"),
            pl.col("direction").first(),
            pl.col("asks").first(),
            pl.col("backend").drop_nulls().last(),
            pl.col("proven").drop_nulls().last(),
        )


def _calls_by_op(timeline: Timeline, roots: _Roots, work: pl.DataFrame, *, without: Collection[int]) -> AttentionCalls:
    table = roots.table().filter(~pl.col("root").is_in(list(without)))
    kernels = (
        work.filter(pl.col("family") == "attention")
        .group_by("root", "implementation", "provider")
        .agg(pl.col("dur_ns").sum(), main=(pl.col("role") == "main").any())
        .sort(["root", "main", "dur_ns", "implementation"], descending=[False, True, True, False])
        .group_by("root", maintain_order=True)
        .agg(pl.col("implementation").first().alias("ran"), pl.col("provider").first())
    )
    seen = work.group_by("root").agg(
        products=(pl.col("family") == "gemm").any(),
        softmax=(pl.col("family") == "softmax").any(),
        opaque=(pl.col("attribution") == Attribution.OPAQUE.value).any(),
    )
    calls = table.join(kernels, on="root", how="left").join(seen, on="root", how="left")
    calls = calls.with_columns(timeline.events[name].gather(calls["root"]) for name in ("dur_ns", "inputs", "stage"))
    by_hand = pl.col("products").fill_null(value=False) & pl.col("softmax").fill_null(value=False)
    # The op that only the math path calls outweighs any kernel; a kernel outweighs the name of the wrapper around it.
    implementation = (
        pl.when(pl.col("proven") == "math").then(pl.lit("math"))
        .when(pl.col("ran").is_not_null()).then(pl.col("ran"))
        .when(pl.col("proven").is_not_null()).then(pl.col("proven"))
        .when(by_hand & (pl.col("asks") == "sdpa") & pl.col("backend").is_null()).then(pl.lit("math"))
        .when(by_hand & pl.col("backend").is_null()).then(pl.lit("unfused"))
        .when(pl.col("backend") == "efficient").then(pl.lit("mem-efficient"))
        .otherwise(pl.lit("unknown"))
    )  # fmt: skip
    evidence = (
        pl.when(pl.col("proven") == "math").then(pl.lit(Evidence.OP.value))
        .when(pl.col("ran").is_not_null()).then(pl.lit(Evidence.KERNEL.value))
        .when(pl.col("proven").is_not_null() | (pl.col("backend") == "efficient")).then(pl.lit(Evidence.OP.value))
        .when(by_hand & pl.col("backend").is_null()).then(pl.lit(Evidence.KERNEL.value))
        .otherwise(pl.lit(Evidence.NONE.value))
    )  # fmt: skip
    calls = calls.with_columns(implementation=implementation, evidence=evidence).with_columns(
        provider=pl.when(pl.col("provider").is_null() & (pl.col("asks") == "sdpa") & (pl.col("evidence") != "none"))
        .then(pl.lit("pytorch"))
        .otherwise(pl.col("provider"))
    )
    # The op row itself is recorded, so the call is attributed even if a graph replays its kernels elsewhere.
    shaped = calls.select(
        event_id=pl.col("root").cast(pl.UInt32),
        op=pl.col("op"),
        direction=pl.col("direction"),
        implementation=pl.col("implementation"),
        provider=pl.col("provider"),
        attribution=pl.lit(Attribution.ATTRIBUTED.value),
        evidence=pl.col("evidence"),
        host_ns=pl.col("dur_ns"),
        inputs=pl.col("inputs"),
        stage=pl.col("stage"),
    ).with_row_index("call")
    members = (
        work.select("id", event_id=pl.col("root").cast(pl.UInt32))
        .join(shaped.select("event_id", "call"), on="event_id", how="inner")
        .select("id", "call")
    )
    return AttentionCalls(shaped, members)


def _calls_by_kernel(timeline: Timeline, work: pl.DataFrame) -> AttentionCalls:
    """Attention kernels that no op asked for: one call per main kernel, helpers go to the main one before them."""
    kernels = work.filter(pl.col("family") == "attention").sort("start_ns")
    main = kernels.filter(pl.col("role") == "main")
    placed, homeless = _with_owners(kernels.filter(pl.col("role") != "main"), main)
    standing = pl.concat([main, homeless.select(main.columns)]).sort("start_ns")
    root = pl.col("captured_root")
    asked = standing.select(
        pl.when(root >= 0).then(root.cast(pl.UInt32, strict=False)).otherwise(pl.coalesce("captured_op", "op_id"))
    ).to_series()
    captured = standing["captured_op"].is_not_null()
    calls = (
        standing.with_columns(
            op=timeline.events["name"].gather(asked).cast(pl.String),
            captured_inputs=timeline.events["inputs"].gather(asked).set(~captured, None),
        )
        .join(xla_attention.framework_paths(timeline, standing["id"]), on="id", how="left", maintain_order="left")
        .select(
            event_id="id",
            op=pl.coalesce("path", "op"),
            direction=pl.when(pl.col("name").str.contains("(?i)bwd|backward|bprop"))
            .then(pl.lit("backward"))
            .otherwise(pl.lit("forward")),
            implementation=pl.col("implementation").fill_null("unknown"),
            provider="provider",
            attribution=xla_attention.attributed_by_path(),
            evidence=pl.lit(Evidence.KERNEL.value),
            host_ns=pl.lit(None, pl.Int64),
            inputs="captured_inputs",
            stage="stage",
        )
        .with_row_index("call")
    )
    owned = pl.concat(
        [
            standing.select("id", event_id="id"),
            placed.select("id", event_id="owner"),
        ]
    )
    members = owned.join(calls.select("event_id", "call"), on="event_id").select("id", "call")
    return AttentionCalls(calls, members)


def _with_their_calls(work: pl.DataFrame) -> pl.DataFrame:
    """Helper kernels that no op asked for get the ``root`` of the kernel they serve: calls are planned outside."""
    attention = pl.col("family") == "attention"
    helpers = work.filter(attention & (pl.col("role") != "main") & (pl.col("root") < 0)).sort("start_ns")
    if helpers.is_empty():
        return work
    main = work.filter(attention & (pl.col("role") == "main")).sort("start_ns")
    served, _ = _with_owners(helpers, main)
    found = served.select("id", "owner").join(main.select(owner="id", found="root"), on="owner").select("id", "found")
    work = work.join(found, on="id", how="left", maintain_order="left")
    return work.with_columns(root=pl.coalesce("found", "root")).drop("found")


def _with_owners(helpers: pl.DataFrame, main: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Helper kernels with the main one that each belongs to (``owner``), and those that belong to none.

    A helper goes to a kernel of its own implementation on its stream, to the one before rather than the one after. Code
    that merges partial results is shared: where its own implementation does not run, it serves whichever does.
    """
    placed = []
    for lane in (["device", "stream", "implementation"], ["device", "stream"]):
        owners = main.select(*lane, "start_ns", owner="id")
        for side in ("backward", "forward"):
            joined = helpers.join_asof(owners, on="start_ns", by=lane, strategy=side, check_sortedness=False)
            placed.append(joined.filter(pl.col("owner").is_not_null()))
            helpers = joined.filter(pl.col("owner").is_null()).drop("owner")
    return pl.concat(placed), helpers


def _joined(parts: list[AttentionCalls]) -> AttentionCalls:
    """All parts under one key, in the order in which the calls stand in the timeline."""
    offset = 0
    calls, members = [], []
    for part in parts:
        calls.append(part.calls.with_columns(pl.col("call") + offset))
        members.append(part.members.with_columns(pl.col("call") + offset))
        offset += part.calls.height
    columns = list(ATTENTION_CALLS.dtypes)
    all_calls = pl.concat([part.select(columns).cast({"call": pl.UInt32}) for part in calls]).sort("event_id", "call")
    all_members = pl.concat([part.select("id", "call").cast({"call": pl.UInt32}) for part in members])
    renumber = all_calls.select("call").with_row_index("new").cast({"new": pl.UInt32})
    return AttentionCalls(
        all_calls.with_columns(call=renumber["new"]),
        all_members.join(renumber, on="call").select("id", call="new").sort("call", "id"),
    )
