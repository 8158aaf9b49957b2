"""Attention that an XLA program runs as separate products and a softmax, as the compiled program itself proves.

The parser finds it in the program (detail ``unfused_attention``: part of which attention each op is). Here the runs of
those ops become calls: each run of the softmax is one, with the products before and after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.xla import PATH_KEYS, with_detail

if TYPE_CHECKING:
    from traceview.timeline import Timeline

DETAIL: Final = "unfused_attention"


def find(timeline: Timeline, work: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame] | None:
    """Calls and members, as :class:`traceview.attention.AttentionCalls` has them; ``None`` if programs prove none.

    Args:
        timeline: Linked timeline.
        work: Device work with ``id``, ``device``, ``start_ns``, ``op_id``, ``attribution`` and ``stage``.
    """
    detail = timeline.details.get(DETAIL)
    if detail is None or not detail.height:
        return None
    parts = (
        detail.select("id", value=pl.col("value").cast(pl.String).str.json_decode(pl.List(pl.String)))
        .explode("value")
        .with_columns(chain=pl.col("value").str.replace(r":\w+$", ""), part=pl.col("value").str.extract(r":(\w+)$"))
        .drop("value")
    )
    rows = work.join(parts, on="id", how="inner").sort("start_ns")
    is_softmax = pl.col("part").is_in(["softmax", "single"])
    softmax = rows.filter(is_softmax).with_row_index("call")
    if not softmax.height:
        return None
    by = ["device", "chain"]
    owners = softmax.select(*by, "start_ns", "call")
    others = rows.filter(~is_softmax).select("id", *by, "start_ns", "part")
    # The first product ran before the softmax that it feeds, everything else after it.
    before = others.filter(pl.col("part") == "first").join_asof(
        owners, on="start_ns", by=by, strategy="forward", check_sortedness=False
    )
    after = others.filter(pl.col("part") != "first").join_asof(
        owners, on="start_ns", by=by, strategy="backward", check_sortedness=False
    )
    members = pl.concat(
        [softmax.select("id", "call"), before.select("id", "call"), after.select("id", "call")]
    ).drop_nulls()
    names = timeline.events.select(op_id="id", asked=pl.col("name").cast(pl.String))
    path = framework_paths(timeline, softmax["id"])
    calls = (
        softmax.join(names, on="op_id", how="left", maintain_order="left")
        .join(path, on="id", how="left", maintain_order="left")
        .select(
            "call",
            event_id="id",
            op=pl.coalesce("path", "asked"),
            direction=pl.when(pl.col("path").str.contains("transpose(", literal=True))
            .then(pl.lit("backward"))
            .otherwise(pl.lit("forward")),
            implementation=pl.lit("unfused"),
            provider=pl.lit("xla"),
            attribution=attributed_by_path(),
            evidence=pl.when(pl.col("part") == "single").then(pl.lit("matrices")).otherwise(pl.lit("shapes")),
            host_ns=pl.lit(None, pl.Int64),
            inputs=pl.lit(None, pl.UInt32),
            stage="stage",
        )
    )
    # An op may be the last product of one attention and the first of the next: the earlier call keeps it.
    return calls, members.sort("call").unique("id", keep="first", maintain_order=True)


def framework_paths(timeline: Timeline, ids: pl.Series) -> pl.DataFrame:
    """Framework path of each XLA op without its primitive (``id``, ``path``), as far as it is recorded."""
    rows = with_detail(timeline, pl.DataFrame({"id": ids}), PATH_KEYS, "text")
    path = pl.col("text").str.replace(r"[:;].*$", "").str.replace(r"/[^/]*$", "")
    return rows.select("id", path=pl.when(path != "").then(path)).drop_nulls()


def attributed_by_path() -> pl.Expr:
    """``attribution`` of rows with their ``path``: where it is recorded, so is the op that asked."""
    known = pl.col("path").is_not_null() & (pl.col("attribution") == "kernel-only")
    return pl.when(known).then(pl.lit("attributed")).otherwise(pl.col("attribution")).alias("attribution")
