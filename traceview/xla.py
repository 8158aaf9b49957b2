"""What XLA ops are, beyond their names: what a fusion holds, where it came from, and how long it took itself.

XLA calls most of its ops ``fusion.123``. The profile says more, as details of the event: the category, the opcodes
inside (``fused_ops``), the framework path (``op_name``), the target of a custom call. A name that is a kernel's own
(cuBLAS, a Pallas kernel, a collective) outweighs all of that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import nesting
from traceview.kernels import identify

if TYPE_CHECKING:
    from traceview.timeline import Timeline

XLA_KINDS: Final = ("xla_op", "collective", "async_wait")
"""Kinds of rows that an XLA program's own line may hold."""

CATEGORY_KEYS: Final = ("hlo_category", "category")
"""Detail names under which a category is recorded, best first."""

TEXT_KEYS: Final = ("long_name", "hlo_text", "expression")
"""Detail names under which the text of the instruction is recorded, best first."""

PATH_KEYS: Final = ("op_name", "tf_op", "level 0")
"""Detail names under which the framework path of the op is recorded, best first."""

PRODUCT: Final = (
    r"^(convolution( (base|window)-dilated)*|convolution fusion|dot|dot fusion|gemm fusion|ragged-dot|scaled-dot)$"
)
"""Categories of matrix products. XLA on TPUs calls a fusion around one ``convolution fusion``."""

CONVOLUTION_PATH: Final = r"conv_general_dilated|(^|/)(depthwise_?)?conv[123]d|Conv[123]D"
"""Framework paths of what is a convolution and no matrix product: the primitive of JAX, the ops of TensorFlow."""

FROM_HOST: Final = r"^(infeed|outfeed|host (send|recv))(-done)?$"
"""Categories of ops in which a device waits for the host. Sends and receives between devices have others.
openxla/xla ``xla_op_utils.h`` (``IsOffDutyOp``), read 2026-11."""

_FROM_HOST_NAME: Final = r"^%?(infeed|outfeed)(-done)?(\.|$)"

CATEGORY_FAMILIES: Final = {
    "loop fusion": "fusion", "input fusion": "fusion", "output fusion": "fusion", "custom fusion": "fusion",
    "non-elementwise fusion": "fusion", "megacore fusion": "fusion", "gather fusion": "index",
    "scatter fusion": "index", "data formatting": "elementwise", "non-fusion elementwise": "elementwise",
}  # fmt: skip
"""Family of ops whose name tells nothing, by categories that are no opcode. openxla/xla ``hlo_instruction.cc``
(``ToCategory``) and ``xla_op_utils.h``, read 2026-11."""

_OPEN: Final = ("unknown", "fusion", "elementwise", "reduce", "other")
"""Families of names that say how XLA made an op, not what it computes."""

_PALLAS_KERNEL: Final = r"([^/]+)/pallas_call(?:[:;].*)?$"
_TRITON: Final = r"^__triton(_nested)?_gemm"
_SOFTMAX_OPS: Final = ("exponential", "reduce")
"""Opcodes that a softmax has in one fusion; an activation has no reduction and a norm no exponential."""

_NUMBER: Final = r"(?:\.(?:\d+|remat\d*|clone))+$"


def without_number(name: pl.Expr) -> pl.Expr:
    """Names of XLA ops without the number that tells one instruction of a program from the next."""
    return name.str.replace(_NUMBER, "")


def with_detail(timeline: Timeline, rows: pl.DataFrame, keys: tuple[str, ...], column: str) -> pl.DataFrame:
    """``rows`` (with ``id``) with the first recorded detail of ``keys`` as text; null where none is recorded."""
    found = rows.with_columns(pl.lit(None, pl.String).alias(column))
    for key in keys:
        detail = timeline.details.get(key)
        if detail is None:
            continue
        text = detail.select("id", here=pl.col("value").cast(pl.String).str.strip_chars('"'))
        found = (
            found.join(text.unique("id", keep="first"), on="id", how="left", maintain_order="left")
            .with_columns(pl.coalesce(column, "here").alias(column))
            .drop("here")
        )
    return found


def waits_for_host(timeline: Timeline, rows: pl.DataFrame) -> pl.DataFrame:
    """Of the rows of XLA ops (with ``id`` and ``name``) those in which the device waited for the host."""
    told = with_detail(timeline, rows, CATEGORY_KEYS, "category")
    by_name = pl.col("name").cast(pl.String).str.contains(_FROM_HOST_NAME)
    return told.filter(pl.coalesce(pl.col("category").str.contains(FROM_HOST), by_name)).drop("category")


def identify_work(timeline: Timeline, work: pl.DataFrame) -> pl.DataFrame:
    """What each piece of device work is, from its name and, for XLA ops, from what the profile says of them.

    Args:
        timeline: Where the work is from.
        work: Rows with ``id``, ``kind`` and ``name`` (text).

    Returns:
        The same rows with the facts of :data:`traceview.kernels.KERNEL_NAMES`.
    """
    identity = identify(work["name"].unique(maintain_order=True))
    joined = work.join(identity, on="name", how="left", maintain_order="left")
    if not any(key in timeline.details for key in (*CATEGORY_KEYS, "custom_call_target")):
        return joined
    return _refined(timeline, joined)


def _refined(timeline: Timeline, rows: pl.DataFrame) -> pl.DataFrame:
    told = with_detail(timeline, rows.select("id", "name", "family", "provider"), CATEGORY_KEYS, "category")
    told = with_detail(timeline, told, PATH_KEYS, "path")
    for key in ("fused_ops", "custom_call_target", "backend_kind"):
        told = with_detail(timeline, told, (key,), key)
    is_open = pl.col("family").is_in(list(_OPEN)) & pl.col("category").is_not_null()
    softmax = pl.all_horizontal(pl.col("fused_ops").str.contains(f'"{op}"', literal=True) for op in _SOFTMAX_OPS)
    softmax |= pl.col("path").str.contains("softmax", literal=True) & ~pl.col("category").str.contains(PRODUCT)
    product = pl.col("category").str.contains(PRODUCT)
    triton = pl.col("backend_kind").str.contains(_TRITON)
    convolution = product & pl.col("path").str.contains(CONVOLUTION_PATH)
    told = told.with_columns(
        found=pl.when(~is_open).then(None)
        .when(triton).then(pl.lit("triton"))
        .when(convolution).then(pl.lit("convolution"))
        .when(product).then(pl.lit("product"))
        .when(softmax).then(pl.lit("softmax"))
    )  # fmt: skip
    on_tpu = timeline.devices.filter(pl.col("vendor") == "google")["device"]
    device = timeline.events["device"].gather(told["id"])
    told = told.with_columns(tpu=device.is_in(on_tpu.implode())).join(
        _called(told["custom_call_target"]), on="custom_call_target", how="left", maintain_order="left"
    )
    found, called = told["found"], told["called_family"].is_not_null() & (rows["family"].is_in(["unknown", "other"]))
    new = pl.DataFrame(
        {
            "family": found.replace_strict(
                {"triton": "gemm", "product": "gemm", "convolution": "conv", "softmax": "softmax"}, default=None
            ),
            "implementation": found.replace_strict(
                {"triton": "triton", "product": "fused", "convolution": "fused"}, default=None
            ),
            "called": called,
            "matrix": found.is_in(["product", "convolution"]) & told["tpu"],
            "any": found.is_not_null(),
        },
        schema_overrides={"family": pl.String, "implementation": pl.String},
    )
    # A product on a TPU runs on its matrix unit, also where the name alone already says that it is one.
    on_matrix_unit = told["category"].str.contains(PRODUCT) & told["tpu"]
    known_product = (rows["family"] == "gemm") & (rows["provider"] == "xla") & rows["tensor_core"].is_null()
    matrix = (new["matrix"] | (on_matrix_unit & known_product)).fill_null(value=False)
    columns = [
        pl.when(new["called"]).then(told[f"called_{fact}"]).when(new["any"]).then(new[fact]).otherwise(fact).alias(fact)
        for fact in ("family", "implementation")
    ]
    columns += [
        pl.when(new["called"])
        .then(told["called_tensor_core"])
        .when(matrix)
        .then(pl.lit(True))
        .when(new["any"])
        .then(pl.lit(None))
        .otherwise("tensor_core")
        .alias("tensor_core"),
        pl.when(new["any"] | new["called"]).then(pl.lit("xla")).otherwise("provider").alias("provider"),
        pl.when(new["any"]).then(pl.lit("main")).otherwise("role").alias("role"),
    ]
    return _by_category(_by_kernel(rows.with_columns(columns), told["path"]), told["category"])


def _by_kernel(rows: pl.DataFrame, path: pl.Series) -> pl.DataFrame:
    """Pallas kernels whose op has a name that says nothing (``closed_call.21``): the path ends with the kernel's own.

    JAX writes ``…/splash_mha_fwd_residuals/pallas_call``, as seen in public compiled programs of 2026.
    """
    kernel = path.str.extract(_PALLAS_KERNEL).str.replace(r"^(?:\w+\()+", "").str.strip_chars_end(")")
    open_ = rows["family"].is_in(["unknown", "other"]) & kernel.is_not_null()
    if not open_.any():
        return rows
    facts = ("family", "implementation", "provider", "tensor_core", "precision", "role")
    known = identify(kernel.filter(open_)).filter(pl.col("family") != "unknown")
    told = rows.select(kernel=kernel).join(
        known.select(kernel="name", **{f"kernel_{fact}": fact for fact in facts}),
        on="kernel",
        how="left",
        maintain_order="left",
    )
    chosen = open_ & told["kernel_family"].is_not_null()
    return rows.with_columns(told[f"kernel_{fact}"].zip_with(chosen, rows[fact]).alias(fact) for fact in facts)


def _by_category(rows: pl.DataFrame, category: pl.Series) -> pl.DataFrame:
    """Rows whose name no signature knows, by the category that XLA gave to the op.

    A custom call may be anything, so its category tells nothing.
    """
    open_ = (rows["family"] == "unknown") & category.is_not_null() & (category != "custom-call")
    if not open_.any():
        return rows
    distinct = category.filter(open_).unique()
    # What is no fusion is called after its opcode, which is how the table knows ops: by opcode and number.
    known = identify(distinct + ".0").with_columns(category=pl.col("name").str.strip_suffix(".0"))
    known = known.filter(pl.col("family") != "unknown").select("category", by_opcode="family")
    families = dict(known.iter_rows()) | CATEGORY_FAMILIES
    told = category.replace_strict(families, default=None, return_dtype=pl.String)
    chosen = open_ & told.is_not_null()
    return rows.with_columns(
        family=told.zip_with(chosen, rows["family"]),
        provider=pl.when(chosen).then(pl.lit("xla")).otherwise("provider"),
    )


def _called(targets: pl.Series) -> pl.DataFrame:
    """What the targets of custom calls are, as far as their names are known."""
    identity = identify(targets.drop_nulls())
    known = identity.filter(pl.col("family") != "unknown")
    return known.select(
        custom_call_target="name",
        called_family="family",
        called_implementation="implementation",
        called_tensor_core="tensor_core",
    )


def self_ns(rows: pl.DataFrame) -> pl.Series:
    """Duration of each row less that of the rows directly within it, ns, for XLA ops; others keep their duration.

    Args:
        rows: Device work with ``kind``, ``device``, ``stream``, ``start_ns`` and ``dur_ns``.
    """
    durations = rows["dur_ns"].to_numpy().copy()
    chosen = np.flatnonzero(
        (rows["kind"].cast(pl.String).is_in(list(XLA_KINDS)) & rows["stream"].is_not_null()).to_numpy()
    )
    if len(chosen) > 1:
        part = rows[chosen]
        lanes = part.select(pl.struct("device", "stream").rank("dense")).to_series().cast(pl.UInt32).to_numpy()
        starts, lengths = part["start_ns"].to_numpy(), part["dur_ns"].to_numpy()
        order = np.lexsort((-lengths, starts, lanes))
        parent = nesting.parents(starts[order], (starts + lengths)[order], lanes[order], overhang_ns=0)
        inner = np.flatnonzero(parent >= 0)
        np.subtract.at(durations, chosen[order[parent[inner]]], lengths[order[inner]])
    return pl.Series("self_ns", np.maximum(durations, 0))
