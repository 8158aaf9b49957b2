"""Attention written by hand: matrix product, softmax over the scores, matrix product.

It carries no attention op and no attention kernel, so only its shape gives it away. The softmax must sit between two
matrix products, and where shapes are recorded the products must really make the scores and consume the
probabilities. Where they are not, nothing but element-wise work (scale, mask, cast, dropout, copies) may lie in
between. A mixture-of-experts router (product, softmax, top-k) or a classifier head (product, softmax, end) does not
pass, nor does a softmax between two linear layers: what adds a bias vector, or runs under ``aten::linear``, multiplies
by weights, and scores are products of activations. Products without batches around a softmax over one matrix may be
attention of one head or a soft lookup in a table: they are told as what they look like, never as proven.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import intervals, nesting
from traceview.knowledge.attention_wrappers import WRAPPERS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceview.timeline import Timeline

_PRODUCT_OP: Final = r"^aten::(bmm|baddbmm|mm|addmm|_scaled_mm|mkldnn_\w*matmul)$|^triton_tem_fused_\w*mm"
_BATCHED_OP: Final = r"^aten::(bmm|baddbmm)$"
_SINGLE_OP: Final = r"^aten::(mm|_scaled_mm)$"
_BIASED_OP: Final = r"^aten::addmm$"
_LINEAR_OP: Final = r"^aten::(linear|mkldnn_linear|_addmm_activation)$|Addmm\w*Backward\d*$|Linear\w*Backward\d*$"
"""An op that multiplies by weights, or the step back through one; products under it make or read no scores."""
_SOFTMAX_OP: Final = (
    r"^aten::(_softmax|_masked_softmax|_softmax_backward_data|_masked_softmax_backward)$"
    r"|^Scaled\w*Softmax\w*$|^triton_\w*softmax"
)
_PLAIN_OP: Final = (
    r"^aten::(add|sub|mul|div|rsub|neg|where|masked_fill|masked_scale|to|_to_copy|copy|clone|contiguous|fill|zero"
    r"|dropout|native_dropout\w*|bernoulli|eq|ne|lt|le|gt|ge|all|any|isneginf|isinf|isnan|logical_\w+|bitwise_\w+"
    r"|maximum|minimum|clamp\w*|tanh|ones\w*|zeros\w*|full\w*|empty\w*|arange|tril|triu|cat|stack|expand\w*|view"
    r"|_unsafe_view|reshape|_reshape_alias|transpose|t|permute|squeeze|unsqueeze|slice|select|as_strided|alias|detach"
    r"|resize|repeat|repeat_interleave|nan_to_num|lift_fresh|type_as|result_type|sum|amax|max|scalar_tensor"
    r"|softmax|_safe_softmax|matmul|linear|einsum|chunk|split\w*|narrow|flatten|unflatten|item|_local_scalar_dense"
    r"|resolve_(conj|neg)|numpy_T|m[TH]|adjoint|swapaxes|swapdims|movedim|new_\w+|tile|unbind|pow|exp|sqrt|rand_like)_?$"
    r"|^triton_(poi|per|red|for)_"
)
_NO_STEP_OP: Final = (
    r"^aten::(view|_unsafe_view|reshape|_reshape_alias|transpose|t|permute|squeeze|unsqueeze|slice|select|as_strided|alias"
    r"|detach|expand\w*|narrow|chunk|split\w*|flatten|unflatten|resolve_(conj|neg)|numpy_T|m[TH]|movedim|swapaxes|unbind"
    r"|empty\w*|new_empty\w*|matmul|einsum|softmax|to|_to_copy|contiguous|clone|dropout|result_type|lift_fresh)_?$"
    r"|^(autograd::engine::evaluate_function: )?(torch::autograd::)?(\w+Backward\d*|AccumulateGrad)$|^detach$"
)
"""What is recorded on the host and does no work itself: views, allocations, and ops that call the one that works."""

_MAX_STEPS_BETWEEN: Final = 24
"""Launches allowed between softmax and product; math in PyTorch 2.5+ itself has about ten."""

_MAX_STEPS_WITH_SHAPES: Final = 64
"""The same where shapes prove the chain: a relative position bias alone takes some twenty."""

_SKIP, _PLAIN, _PRODUCT, _SOFTMAX, _BREAK = range(5)
_PLAIN_FAMILIES: Final = ("elementwise", "reduce", "rng", "fusion", "quantize", "rope")


def find_chains(
    timeline: Timeline, work: pl.DataFrame, *, under_attention: NDArray[np.bool_]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Find attention by hand on devices, and on the CPU where ops did their work there.

    Args:
        timeline: Linked timeline.
        work: Device work outside any attention op, with ``family``, ``role`` and ``attribution``.
        under_attention: For each event whether it lies under an attention op.

    Returns:
        Calls and members, as :class:`traceview.attention.AttentionCalls` has them.
    """
    parent = timeline.events["parent_id"].cast(pl.Int32).fill_null(nesting.NO_PARENT).to_numpy()
    around = _around(timeline, parent)
    on_device = _device_sequence(timeline, work, around)
    on_host = _host_sequence(timeline, under_attention, around, parent)
    calls, members = [], []
    offset = 0
    for sequence, device in ((on_device, True), (on_host, False)):
        found = _chains(sequence, timeline.inputs)
        if not found.height:
            continue
        numbered = found.with_row_index("call", offset=offset)
        calls.append(numbered.drop("first", "last"))
        if device:
            members.append(_members(sequence, numbered))
        offset += found.height
    if not calls:
        return _NO_CALLS, _NO_MEMBERS
    return pl.concat(calls), pl.concat(members) if members else _NO_MEMBERS


_CALL_COLUMNS: Final = {
    "call": pl.UInt32,
    "event_id": pl.UInt32,
    "op": pl.String,
    "direction": pl.String,
    "implementation": pl.String,
    "provider": pl.String,
    "attribution": pl.String,
    "evidence": pl.String,
    "host_ns": pl.Int64,
    "inputs": pl.UInt32,
    "stage": pl.Categorical,
}
_NO_CALLS: Final = pl.DataFrame(schema=_CALL_COLUMNS)
_NO_MEMBERS: Final = pl.DataFrame(schema={"id": pl.UInt32, "call": pl.UInt32})


def _device_sequence(timeline: Timeline, work: pl.DataFrame, around: pl.DataFrame) -> pl.DataFrame:
    """Device work per stream in order of time, each row classed."""
    events = timeline.events
    rows = work.with_columns(
        op=events["name"].gather(work["op_id"]).cast(pl.String),
        op_inputs=events["inputs"].gather(work["op_id"]),
        by_weights=around["by_weights"].gather(work["op_id"]).fill_null(value=False),
        asked=around["asked"].gather(work["op_id"]),
    ).sort("process", "device", "stream", "start_ns", nulls_last=True)
    family, op = pl.col("family"), pl.col("op").fill_null("")
    classes = (
        pl.when(pl.col("kind").is_in(["memcpy", "memset"])).then(_SKIP)
        .when((family == "softmax") | op.str.contains(_SOFTMAX_OP)).then(_SOFTMAX)
        .when((family == "gemm") & (pl.col("role") == "helper")).then(_PLAIN)
        .when(family == "gemm").then(_PRODUCT)
        .when(family.is_in(list(_PLAIN_FAMILIES))).then(_PLAIN)
        .when((family == "unknown") & op.str.contains(_PLAIN_OP)).then(_PLAIN)
        .otherwise(_BREAK)
    )  # fmt: skip
    return rows.select(
        "id",
        lane=pl.struct("process", "device", "stream").rank("dense").cast(pl.Int64),
        role_class=classes.cast(pl.Int8),
        op=pl.col("op"),
        name=pl.col("name"),
        inputs=pl.col("op_inputs"),
        asked=pl.col("asked"),
        by_weights=pl.col("by_weights") | op.str.contains(_BIASED_OP),
        attribution=pl.col("attribution"),
        stage=pl.col("stage"),
        start_ns=pl.lit(None, pl.Int64),
        dur_ns=pl.lit(None, pl.Int64),
    )


def _around(timeline: Timeline, parent: NDArray[np.int32]) -> pl.DataFrame:
    """What lies around each event, itself included: ``by_weights`` and ``asked``.

    The first says whether an op that multiplies by weights does; the second names the op of PyTorch that writes
    attention out, null for none.
    """
    names = timeline.events.select(pl.col("name").unique()).with_columns(text=pl.col("name").cast(pl.String))

    def nearest(wanted: pl.Expr) -> NDArray[np.int32]:
        found = names.filter(wanted)["name"]
        marked = timeline.events["name"].is_in(found.implode()).fill_null(value=False).to_numpy()
        return nesting.nearest_marked(parent, marked)

    wrapper = pl.Series(nearest(pl.col("text").is_in(list(WRAPPERS)))).cast(pl.Int64)
    ids = wrapper.set(wrapper < 0, None).cast(pl.UInt32)
    return pl.DataFrame(
        {
            "by_weights": nearest(pl.col("text").str.contains(_LINEAR_OP)) >= 0,
            "asked": timeline.events["name"].gather(ids).cast(pl.String),
        }
    )


def _host_sequence(
    timeline: Timeline, under_attention: NDArray[np.bool_], around: pl.DataFrame, parent: NDArray[np.int32]
) -> pl.DataFrame:
    """Ops that did their work on the CPU, per thread in order of time, each classed by its name."""
    events = timeline.events
    launching = events.filter(pl.col("device").is_not_null())["op_id"].drop_nulls().unique()
    op = pl.col("op")
    by_name = (
        pl.when(op.str.contains(_SOFTMAX_OP)).then(_SOFTMAX)
        .when(op.str.contains(_PRODUCT_OP)).then(_PRODUCT)
        .when(op.str.contains(_NO_STEP_OP)).then(_SKIP)
        .when(op.str.contains(_PLAIN_OP)).then(_PLAIN)
        .otherwise(_BREAK)
    )  # fmt: skip
    # Each name is looked at once: a trace has thousands of ops of one name.
    names = events.filter(pl.col("kind") == "op").select(pl.col("name").unique())
    names = names.with_columns(op=pl.col("name").cast(pl.String)).with_columns(named=by_name.cast(pl.Int8))
    solid = names.filter(pl.col("named").is_in([_PRODUCT, _SOFTMAX]))["name"]
    inside = _inside_of_the_work(timeline, solid, parent)
    ops = events.select("id", "thread", "start_ns", "dur_ns", "inputs", "stage", "kind", "name").with_columns(
        around["by_weights"], around["asked"]
    )
    ops = ops.filter((pl.col("kind") == "op") & ~pl.Series(under_attention) & ~pl.Series(inside))
    ops = ops.join(names, on="name", how="left", maintain_order="left").filter(pl.col("named") != _SKIP)
    classes = pl.when(pl.col("id").is_in(launching.implode())).then(_BREAK).otherwise("named")
    return ops.sort("thread", "start_ns", maintain_order=True).select(
        "id",
        lane=pl.col("thread").cast(pl.Int64),
        role_class=classes.cast(pl.Int8),
        op=op,
        name=op,
        inputs=pl.col("inputs"),
        asked=pl.col("asked"),
        by_weights=pl.col("by_weights") | op.str.contains(_BIASED_OP),
        attribution=pl.lit("attributed"),
        stage=pl.col("stage"),
        start_ns=pl.col("start_ns"),
        dur_ns=pl.col("dur_ns"),
    )


def _inside_of_the_work(timeline: Timeline, solid: pl.Series, parent: NDArray[np.int32]) -> NDArray[np.bool_]:
    """For each event whether a product or softmax does its work with it, or is itself only a wrapper of another one.

    ``vmap`` records a product once per level of batching, each inside the other: the innermost did the work. What a
    product of the CPU calls (copies, views) is no step between products.
    """
    events = timeline.events
    marked = (events["name"].is_in(solid.implode()) & (events["kind"] == "op")).fill_null(value=False).to_numpy()
    nearest = nesting.nearest_marked(parent, marked)
    rows = np.arange(len(marked))
    above = np.where(parent >= 0, nearest[parent], nesting.NO_PARENT)
    wrapper = np.zeros(len(marked), bool)
    outer = above[marked]
    wrapper[outer[outer >= 0]] = True
    within = (nearest >= 0) & (nearest != rows) & ~wrapper[nearest]
    inside: NDArray[np.bool_] = within | wrapper
    return inside


def _chains(sequence: pl.DataFrame, inputs: pl.DataFrame) -> pl.DataFrame:
    """Calls with the positions ``first`` and ``last`` of their products in ``sequence``."""
    kind = sequence["role_class"].to_numpy()
    lane = sequence["lane"].to_numpy()
    weights = sequence["by_weights"].to_numpy()
    solid = np.flatnonzero((kind == _PRODUCT) | (kind == _SOFTMAX))
    middle = np.flatnonzero(kind[solid] == _SOFTMAX)
    middle = middle[(middle > 0) & (middle < len(solid) - 1)]
    # The values may be projected after the softmax: then the layer stands between it and the product that reads them.
    projected = weights[solid[middle + 1]] & (middle + 2 < len(solid))
    first, softmax = solid[middle - 1], solid[middle]
    last = solid[np.minimum(middle + 1 + projected, len(solid) - 1)]
    # A product that reads another softmax just before makes no scores (linear attention, slots), unless shapes tell.
    earlier = solid[np.maximum(middle - 2, 0)]
    reads_one = (middle > 1) & (kind[earlier] == _SOFTMAX) & (lane[earlier] == lane[first])
    # Work that is not element-wise in between (a bias looked up, a top-k) is let through only by shapes.
    breaks = np.concatenate(([0], np.cumsum(kind == _BREAK)))
    plain_between = (
        (breaks[last] == breaks[first])
        & (np.maximum(softmax - first, last - softmax) <= _MAX_STEPS_BETWEEN)
        & ~projected
        & ~reads_one
    )
    fits = (
        (kind[first] == _PRODUCT)
        & (kind[last] == _PRODUCT)
        & (lane[first] == lane[softmax])
        & (lane[last] == lane[softmax])
        & ~weights[first]
        & ~weights[last]
        & (np.maximum(softmax - first, last - softmax) <= _MAX_STEPS_WITH_SHAPES)
    )
    shapes = {key: _dims(text) for key, text in inputs.select("inputs", "dims").iter_rows() if text}
    rows = []
    first, softmax, last, plain_between = first[fits], softmax[fits], last[fits], plain_between[fits]
    own = [sequence.select("inputs", "op", "name")[positions] for positions in (first, softmax, last)]
    read = sequence["inputs"][earlier[fits]].set(pl.Series(~reads_one[fits]), None).to_list()
    keys, ops, names = (zip(*(part[name].to_list() for part in own), strict=True) for name in ("inputs", "op", "name"))
    # A program repeats itself: what was found of one chain holds for all that look the same.
    known: dict[tuple[object, ...], tuple[str | None, str, str]] = {}
    positions = (first.tolist(), softmax.tolist(), last.tolist(), plain_between.tolist())
    for a, s, b, plain, key, op, name, other in zip(*positions, keys, ops, names, read, strict=True):
        alike = (key, op, name, other)
        if alike not in known:
            told = _agree(shapes.get(key[0]), shapes.get(key[1]), shapes.get(key[2]), op[0], op[2])
            weights_of = _scores(shapes.get(other))
            if told == "shapes" and weights_of and _consumes(_operands(shapes[key[0]] or [], op[0]), weights_of):
                told = None
            parts = [one or f"kernel {_short(kernel)}" for one, kernel in zip(op, name, strict=True)]
            backward = "backward" in (op[1] or name[1]).lower()
            known[alike] = told, " → ".join(parts), "backward" if backward else "forward"
        told, chain, direction = known[alike]
        if told is None or not (plain or told == "shapes"):
            continue
        rows.append({"first": a, "last": b, "position": s, "op": chain, "direction": direction, "evidence": told})
    # The step back through a linear layer looks like that through a product of activations.
    single = {row["evidence"] for row in rows if row["direction"] == "forward"}
    rows = [row for row in rows if row["evidence"] != "matrices" or "matrices" in single]
    if not rows:
        return _NO_CALLS.drop("call").with_columns(first=pl.lit(0), last=pl.lit(0)).clear()
    chains = pl.DataFrame(rows)
    softmax_rows = sequence[chains["position"].to_numpy()]
    return chains.select(
        "first",
        "last",
        event_id=softmax_rows["id"],
        op=pl.coalesce(softmax_rows["asked"], pl.col("op")),
        direction=pl.col("direction"),
        implementation=pl.lit("unfused"),
        provider=pl.lit(None, pl.String),
        attribution=softmax_rows["attribution"],
        evidence=pl.col("evidence"),
        host_ns=_host_time(sequence, chains["first"].to_numpy(), chains["last"].to_numpy()),
        inputs=softmax_rows["inputs"],
        stage=softmax_rows["stage"],
    )


def _host_time(sequence: pl.DataFrame, first: NDArray[np.int64], last: NDArray[np.int64]) -> pl.Series:
    """Time of the ops from the first to the last product of each chain, ns; null for work on a device."""
    if sequence["dur_ns"].null_count():
        return pl.Series([None] * len(first), dtype=pl.Int64)
    position, chain = _stretches(first, last)
    own = ~sequence["by_weights"].to_numpy()[position]
    start = sequence["start_ns"].to_numpy()[position]
    length = np.where(own, sequence["dur_ns"].to_numpy()[position], 0)
    return pl.Series(intervals.grouped_total(chain, start, start + length))


def _stretches(first: NDArray[np.int64], last: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every position from the first to the last product of each chain, and the number of that chain."""
    length = last - first + 1
    chain = np.repeat(np.arange(len(first)), length)
    return np.repeat(first, length) + np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length), chain


def _short(kernel: str) -> str:
    return kernel.removeprefix("void ").split("<")[0].split("(")[0][:60]


def _dims(text: str) -> list[list[int]] | None:
    """Argument shapes of one op; ``None`` if the text is not a list of integer lists."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    if not isinstance(value, list):
        return None
    shapes = []
    for shape in value:
        plain = isinstance(shape, list) and all(isinstance(size, int) for size in shape)
        shapes.append(list(shape) if plain else [])
    return shapes


def _agree(
    before: list[list[int]] | None,
    softmax: list[list[int]] | None,
    after: list[list[int]] | None,
    op_before: str | None,
    op_after: str | None,
) -> str | None:
    """How well it is proven that the products make and consume the scores; ``None`` if it is no attention."""
    ops = pl.Series([op_before or "", op_after or ""])
    single = ops.str.contains(_SINGLE_OP)
    scores = _scores(softmax)
    # One side without a batch, or both with scores that have one: the keys are weights or a table that all share.
    if single.any() and not (single.all() and len(scores or ()) in (0, 2)):
        return None
    if scores and before and after:
        made = _makes(_operands(before, op_before), scores)
        used = _consumes(_operands(after, op_after), scores)
        if made is not None and used is not None:
            if not (made and used):
                return None
            return "matrices" if single.all() else "shapes"
    if single.all():
        return "matrices"
    return "chain" if ops.str.contains(_BATCHED_OP).all() else "order"


def _scores(softmax: list[list[int]] | None) -> list[int] | None:
    return next((shape for shape in softmax or [] if len(shape) >= 2), None)


def _operands(arguments: list[list[int]], op: str | None) -> list[list[int]]:
    """The two matrices of a product: an output given to write to stands behind them, a matrix to add before them."""
    if op is None or not op.startswith("aten::"):
        return arguments
    begin = 1 if op in ("aten::addmm", "aten::baddbmm") else 0
    return arguments[begin : begin + 2]


def _numel(shape: list[int]) -> int:
    size = 1
    for extent in shape:
        size *= extent
    return size


def _makes(arguments: list[list[int]], scores: list[int]) -> bool | None:
    """Whether a product of these arguments has as many elements as the scores, laid out in the same last two sizes."""
    matrices = [shape for shape in arguments if len(shape) >= 2]
    if len(matrices) < 2:
        return None
    left, right = matrices[-2:]
    if left[-1] != right[-2]:
        return None
    batch = _numel(left[:-2])
    # Grouped heads may fold several query rows into one batch row, so only the row length and the total must agree;
    # the backward product yields the scores' own shape as well.
    return batch * left[-2] * right[-1] == _numel(scores) and right[-1] == scores[-1]


def _consumes(arguments: list[list[int]], scores: list[int]) -> bool | None:
    """Whether one argument of a product is the scores, perhaps with batch sizes folded together or transposed."""
    matrices = [shape for shape in arguments if len(shape) >= 2]
    if len(matrices) < 2:
        return None
    size, rows, row = _numel(scores), scores[-2], scores[-1]
    return any(
        _numel(shape) == size and (shape[-1] == row or (shape[-2] == row and shape[-1] == rows))
        for shape in matrices[-2:]
    )


def _members(sequence: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """Every device event from the first to the last product of each chain; an event belongs to one call only."""
    position, chain = _stretches(calls["first"].to_numpy(), calls["last"].to_numpy())
    own = ~sequence["by_weights"].to_numpy()[position]
    position, chain = position[own], chain[own]
    call = calls["call"].to_numpy()[chain]
    ids = sequence["id"].to_numpy()[position]
    # Two chains may share a product (one softmax's consumer is the next one's maker): the earlier call keeps it.
    return pl.DataFrame({"id": ids, "call": call.astype(np.uint32)}).unique("id", keep="first", maintain_order=True)
