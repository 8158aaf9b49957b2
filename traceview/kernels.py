"""What is this kernel? From the name of a device event to family, implementation, provider and precision.

The knowledge is data: ``traceview/knowledge/kernels_*.toml``, one row per signature, see
:mod:`traceview.knowledge.kernel_table`. This module normalises names, lets the first matching row win, and reads the
precision out of the name. A name that no row knows stays ``unknown``: nothing is guessed, and no row swallows
arbitrary names.

Matching runs in the linear-time regular expression engine of Polars, so that a hostile name cannot stall an import.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

import polars as pl

from traceview.knowledge.kernel_namespaces import namespaces
from traceview.knowledge.kernel_table import Family, Role, Signature, load_signatures
from traceview.knowledge.mangled import expand_mangled
from traceview.schema import Column, FrameSchema

__all__ = [
    "ATTENTION_IMPLEMENTATIONS",
    "FUSED_ATTENTION",
    "KERNEL_NAMES",
    "PRECISIONS",
    "Family",
    "Role",
    "Signature",
    "identify",
    "normalise",
    "signatures",
]

FUSED_ATTENTION: Final = (
    "flash-1", "flash-2", "flash-3", "flash-4", "mem-efficient", "cudnn", "flashinfer", "trtllm", "triton", "flex",
    "aotriton", "ck", "aiter", "sage", "pallas", "paged", "mla", "cpu-flash", "vendor",
)  # fmt: skip
"""Implementation ids of fused attention kernels, the ids of ``dispatch.toml``."""

ATTENTION_IMPLEMENTATIONS: Final = (*FUSED_ATTENTION, "math", "unfused", "unknown", "opaque")
"""Every attention implementation id. Only a dispatch can be ``math``, ``unfused`` or ``opaque``, never one kernel."""

PRECISIONS: Final = (
    "fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8", "int4", "w4a16", "w8a16", "w4a8",
)  # fmt: skip
"""Precision ids. For matrix kernels the type of the inputs; ``w4a16`` and the like: weight bits, activation bits."""

KERNEL_NAMES: Final = FrameSchema(
    "kernel names",
    "What each distinct device-event name is. One row per name.",
    (
        Column("name", pl.String, "", "name as recorded"),
        Column("signature", pl.String, "", "id of the signature that matched first; null: none", nullable=True),
        Column("family", pl.String, "", "what the kernel computes, one of `Family`; `unknown` if no row knows it"),
        Column("implementation", pl.String, "", "which implementation; attention: a closed list", nullable=True),
        Column("provider", pl.String, "", "whose build it is; null if the name does not tell", nullable=True),
        Column(
            "tensor_core", pl.Boolean, "", "uses matrix units (tensor core, MFMA, MXU); null: unknown", nullable=True
        ),
        Column("precision", pl.String, "", "precision of the inputs, one of `PRECISIONS`", nullable=True),
        Column("role", pl.String, "", "`main`, or `helper`: belongs to another kernel's dispatch"),
    ),
)

_TOKENS: Final = {
    "f64": "fp64", "d": "fp64", "z": "fp64", "double": "fp64", "fp64": "fp64",
    "f32": "fp32", "cf32": "fp32", "s": "fp32", "c": "fp32", "float": "fp32", "fp32": "fp32",
    "tf32": "tf32", "xf32": "tf32",
    "f16": "fp16", "h": "fp16", "fp16": "fp16", "half": "fp16",
    "bf16": "bf16", "b": "bf16", "t": "bf16", "bfloat16": "bf16", "b16": "bf16",
    "f8": "fp8", "b8": "fp8", "q": "fp8", "fp8": "fp8", "e4m3": "fp8", "e5m2": "fp8", "mxe4m3": "fp8", "mxfp8": "fp8",
    "fp8_fp4": "w4a8",
    "e2m1": "fp4", "mxe2m1": "fp4", "fp4": "fp4", "mxf4": "fp4", "mxfp4": "fp4", "nvfp4": "fp4",
    "i8": "int8", "int8": "int8", "i": "int8",
    "i4": "int4", "int4": "int4",
}  # fmt: skip
"""Spellings of a type in kernel names, lower case, to precision ids."""

_TEMPLATE_TYPES: Final = (
    ("fp4", r"e2m1|fp4(?:x2)?_t|__nv_fp4|Float4"),
    ("fp8", r"e4m3|e5m2|Float8_|__nv_fp8|fp8_t|FP8"),
    ("bf16", r"[Bb][Ff]loat16|bf16"),
    ("fp16", r"\b(?:__half2?|half_t|half|Half|_Float16|float16_t|fp16)\b"),
    ("tf32", r"tfloat32|tf32"),
    ("fp32", r"\bfloat[234]?\b"),
    ("fp64", r"\bdouble\b"),
)
"""C++ type names in template arguments, narrowest first: the narrowest type named is the one of the data."""


_LONGEST: Final = 1 << 16
"""Characters of a name that are looked at: the longest kernel names of CUTLASS have some ten thousand."""


def signatures() -> tuple[Signature, ...]:
    """The whole table, in matching order. Loaded once, on first use."""
    return load_signatures()


def normalise(names: pl.Series) -> pl.Series:
    """The form of a name that signatures match: no return type, no suffix of the loader, no anonymous namespaces.

    ``void f<(int)4>(x)`` becomes ``f<4>(x)``, ``attn_fwd.kd`` and ``attn_fwd [clone .kd]`` become ``attn_fwd``,
    ``(anonymous namespace)::f`` and ``<unnamed>::f`` become ``f``, HLO text ``%add.1 = f32[] …`` becomes ``add.1``, and
    the Itanium-mangled ``_ZN5aiter9fmha_fwdE`` becomes ``aiter::fmha_fwd``.

    Args:
        names: names as recorded, dtype String or Categorical.

    Returns:
        A String series of the same length and name.
    """
    text = names.cast(pl.String)
    frame = text.alias("_").to_frame()
    name = pl.col("_").str.strip_chars()
    name = name.str.replace(r"^%?([^ ]+) = .*$", "${1}").str.strip_prefix("%")
    name = name.str.replace(r"(?: ?\[clone [^\]]*\])+$", "").str.strip_suffix(".kd")
    # XLA marks an instruction that it computes again or copies behind its number: ``fusion.12.remat2``.
    name = name.str.replace(r"(?:\.(?:remat\d*|clone))+((?:\.\d+)*)$", "${1}")
    name = name.map_batches(_expand_mangled_names, return_dtype=pl.String)
    name = name.str.replace(r"^(?:static )?(?:__global__ )?void ", "")
    name = name.str.replace(r"^(?:typename )?std::enable_if<.*?>::type ", "")
    name = name.str.replace_all(r"\(anonymous namespace\)::|<unnamed>::|\{anonymous\}::|_GLOBAL__N_[0-9A-Za-z_]*::", "")
    name = name.str.replace_all(
        r"\((?:int|bool|long|short|char|unsigned|unsigned (?:int|long|short|char)|(?:unsigned )?long long)\)(-?[0-9])",
        "${1}",
    )
    return frame.select(name).to_series().alias(text.name)


def identify(names: pl.Series) -> pl.DataFrame:
    """Say what each distinct name is. The first signature that matches wins.

    Args:
        names: device-event names as recorded; duplicates are looked at once, nulls are ignored.

    Returns:
        A :data:`KERNEL_NAMES` frame, one row per distinct name, in no promised order.
    """
    distinct = names.drop_nulls().unique().cast(pl.String).alias("name")
    return _RECENT.identified(distinct)


class _Recent:
    """Names that were looked at a moment ago: the loader and several analyses ask for those of the same trace."""

    def __init__(self) -> None:
        self._known: pl.DataFrame | None = None

    def identified(self, distinct: pl.Series) -> pl.DataFrame:
        """Facts of distinct names."""
        known = self._known  # Once: another thread may put another frame in its place at any time.
        asked = distinct.to_frame()
        if known is None:
            found = _identified(distinct)
        else:
            new = asked.join(known, on="name", how="anti")["name"]
            old = known.join(asked, on="name", how="semi")
            if not len(new):
                return old
            found = pl.concat([old, _identified(new)])
        if found["name"].str.len_bytes().sum() <= _MOST_KEPT:
            self._known = found
        return found


_MOST_KEPT: Final = 4 << 20
"""Bytes of names that are kept from one question to the next."""

_RECENT: Final = _Recent()


def _identified(distinct: pl.Series) -> pl.DataFrame:
    frame = pl.DataFrame([distinct, normalise(distinct.str.slice(0, _LONGEST)).alias("text")])
    frame = frame.with_columns(_first_match(frame["text"]))
    frame = frame.join(_facts(), on="row", how="left", nulls_equal=False)
    frame = frame.with_columns(
        pl.col("family").fill_null(str(Family.UNKNOWN)),
        pl.col("role").fill_null(str(Role.MAIN)),
        provider=pl.coalesce("provider", _by_namespace()),
    )
    return _with_precision(frame).select(KERNEL_NAMES.dtypes.keys())


def _by_namespace() -> pl.Expr:
    """The provider whose namespace is around the whole of ``text``, null for none."""
    known = {one.name: one.provider for one in namespaces()}
    outermost = pl.col("text").str.extract("^([0-9A-Za-z_]+)::")
    return outermost.replace_strict(known, default=None, return_dtype=pl.String)


def _expand_mangled_names(names: pl.Series) -> pl.Series:
    mangled = names.str.starts_with("_Z")
    if not mangled.any():
        return names
    return pl.Series(names.name, [expand_mangled(n) if n.startswith("_Z") else n for n in names.to_list()])


def _first_match(text: pl.Series) -> pl.Series:
    """Row number of the first signature that matches each text, null where none does.

    A regular expression costs more to compile than to run, so a row is only compiled for texts that hold one of its
    words.
    """
    patterns, words, always = _rust_patterns(), _words(), _always_tried()
    found: list[int | None] = [None] * len(text)
    at = pl.int_range(len(text), eager=True).alias("at")
    held = text.str.extract_many(words["word"].unique().to_list(), overlapping=True).alias("word")
    pairs = pl.DataFrame([at, held]).explode("word").join(words, on="word").select("row", "at").unique()
    candidates = dict(pairs.group_by("row").agg("at").iter_rows()) | dict.fromkeys(always, range(len(text)))
    for row in sorted(candidates):
        open_texts = [index for index in candidates[row] if found[index] is None]
        if not open_texts:
            continue
        matched = text.gather(open_texts).str.contains(patterns[row])
        for index, match in zip(open_texts, matched.to_list(), strict=True):
            if match:
                found[index] = row
    return pl.Series("row", found, dtype=pl.UInt16)


@cache
def _words() -> pl.DataFrame:
    """Each word that a signature needs, with the row number of the signature."""
    pairs = [(word, row) for row, signature in enumerate(load_signatures()) for word in signature.needs]
    return pl.DataFrame(pairs, schema={"word": pl.String, "row": pl.UInt16}, orient="row")


@cache
def _always_tried() -> tuple[int, ...]:
    return tuple(row for row, signature in enumerate(load_signatures()) if not signature.needs)


@cache
def _rust_patterns() -> tuple[str, ...]:
    return tuple(ascii_classes(signature.regex) for signature in load_signatures())


_CLASS_OR_ESCAPE: Final = re.compile(r"\\\\|\\[wdb]|\[(?:\\.|[^\]\\])*\]")


def ascii_classes(regex: str) -> str:
    r"""``regex`` with ``\w``, ``\d`` and ``\b`` spelled out for ASCII.

    Kernel names are ASCII, and Unicode character tables compile slowly.
    """

    def spell(match: re.Match[str]) -> str:
        token = match[0]
        if token.startswith("["):
            return token.replace("\\w", "0-9A-Za-z_").replace("\\d", "0-9")
        return {"\\w": "[0-9A-Za-z_]", "\\d": "[0-9]", "\\b": r"(?-u:\b)"}.get(token, token)

    return _CLASS_OR_ESCAPE.sub(spell, regex)


@cache
def _facts() -> pl.DataFrame:
    """The table as a frame, keyed by row number."""
    table = load_signatures()
    return pl.DataFrame(
        {
            "row": list(range(len(table))),
            "signature": [s.id for s in table],
            "family": [str(s.family) for s in table],
            "implementation": [s.implementation for s in table],
            "provider": [s.provider for s in table],
            "tensor_core": [s.tensor_core for s in table],
            "precision": [s.precision for s in table],
            "role": [str(s.role) for s in table],
        },
        schema_overrides={
            "row": pl.UInt16,
            "tensor_core": pl.Boolean,
            "implementation": pl.String,
            "provider": pl.String,
        },
    )


def _with_precision(frame: pl.DataFrame) -> pl.DataFrame:
    """Replace ``{precision}`` and ``template`` in the precision column by what the name says."""
    by_type = frame.filter(pl.col("precision") == "template").select("name", _template_type().alias("told"))
    parts = [by_type]
    table = load_signatures()
    for (row,), group in frame.filter(pl.col("precision") == "{precision}").group_by("row"):
        regex = table[int(str(row))].regex
        index = re.compile(regex).groupindex["precision"]
        word = pl.col("text").str.extract(ascii_classes(regex), index).str.to_lowercase()
        precision = word.replace_strict(_TOKENS, default=None, return_dtype=pl.String)
        parts.append(group.select("name", precision.alias("told")))
    stated = pl.when(~pl.col("precision").is_in(["{precision}", "template"])).then("precision")
    return frame.join(pl.concat(parts), on="name", how="left").with_columns(precision=pl.coalesce(stated, "told"))


def _template_type() -> pl.Expr:
    return pl.coalesce(
        [
            pl.when(pl.col("text").str.contains(ascii_classes(pattern))).then(pl.lit(precision))
            for precision, pattern in _TEMPLATE_TYPES
        ]
    )
