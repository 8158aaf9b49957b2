"""The signature table: which kernel names mean what, as typed rows read from ``kernels_*.toml``.

Facts are data. A new library version is a new row or a wider pattern with a new example, never code. Each row says
where the fact comes from and how sure it is; each example is a test.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any, Final

TABLE_FILES: Final = (
    "kernels_transfer.toml",
    "kernels_collective.toml",
    "kernels_attention.toml",
    "kernels_moe.toml",
    "kernels_conv.toml",
    "kernels_gemm.toml",
    "kernels_llm.toml",
    "kernels_recurrent.toml",
    "kernels_aten.toml",
    "kernels_libraries.toml",
    "kernels_compiled.toml",
    "kernels_named.toml",
)
"""Matching order: files in this order, rows in file order; special before general, `kernels_named.toml` last."""


class Family(StrEnum):
    """What a kernel computes. Closed list."""

    ATTENTION = "attention"
    GEMM = "gemm"
    CONV = "conv"
    MOE = "moe"
    COLLECTIVE = "collective"
    NORM = "norm"
    SOFTMAX = "softmax"
    ELEMENTWISE = "elementwise"
    REDUCE = "reduce"
    POOL = "pool"
    EMBEDDING = "embedding"
    INDEX = "index"
    RNG = "rng"
    OPTIMIZER = "optimizer"
    QUANTIZE = "quantize"
    ROPE = "rope"
    SAMPLING = "sampling"
    LOSS = "loss"
    FFT = "fft"
    MEMCPY = "memcpy"
    MEMSET = "memset"
    CACHE = "cache"
    RECURRENT = "recurrent"
    SPARSE = "sparse"
    FUSION = "fusion"
    OTHER = "other"
    UNKNOWN = "unknown"


FAMILY_DOCS: Final[dict[Family, str]] = {
    Family.ATTENTION: "fused attention, forward or backward, and its helpers",
    Family.GEMM: "dense matrix multiplication, batched, grouped or matrix-vector, also with quantised weights",
    Family.CONV: "convolution, and the layout and im2col kernels a convolution library adds",
    Family.MOE: "mixture of experts: routing, permutation, expert GEMM, reduction",
    Family.COLLECTIVE: "communication between devices: NCCL, RCCL, custom all-reduce, expert dispatch, NVSHMEM",
    Family.NORM: "layer, RMS, group, batch and L2 norm, alone or with an addition",
    Family.SOFTMAX: "softmax, forward or backward; between two GEMMs it is the mark of unfused attention",
    Family.ELEMENTWISE: "one output per position: arithmetic, activation, cast, copy, fill, dropout, concatenation",
    Family.REDUCE: "sums, means, extrema, scans, histograms",
    Family.POOL: "pooling, interpolation, grid sampling, padding",
    Family.EMBEDDING: "embedding lookup and its backward, embedding bags",
    Family.INDEX: "gather, scatter, index, sort, top-k, unique, masks to indices, metadata of batches",
    Family.RNG: "random numbers",
    Family.OPTIMIZER: "parameter updates, gradient scaling and clipping over many tensors",
    Family.QUANTIZE: "quantisation, dequantisation, scales of low-precision formats",
    Family.ROPE: "rotary position embedding, alone or with the query/key norm or cache write",
    Family.SAMPLING: "choosing tokens: top-k/top-p, penalties, speculative verification",
    Family.LOSS: "loss functions, and log-softmax, which says nothing about attention",
    Family.FFT: "Fourier transforms",
    Family.MEMCPY: "copies by the driver",
    Family.MEMSET: "fills by the driver",
    Family.CACHE: "writes, gathers and reshapes of a key/value cache or a state cache",
    Family.RECURRENT: "recurrent and state-space models: LSTM, Mamba scan, linear attention, delta rules",
    Family.SPARSE: "sparse and block-sparse matrix work",
    Family.FUSION: "compiler-made kernels (XLA, Inductor, NVRTC) whose name does not say which single thing they do",
    Family.OTHER: "known, and none of these: spin and barrier kernels, asserts, linear algebra, profiler marks",
    Family.UNKNOWN: "no row of the table knows this name",
}
"""One line on each family, for the docs."""


class Role(StrEnum):
    """Whether a kernel stands for itself."""

    MAIN = "main"
    HELPER = "helper"


class Evidence(StrEnum):
    """How a signature is known."""

    BINARY = "B"
    SOURCE = "S"
    HEADER = "H"
    TRACE = "T"
    INFERRED = "I"
    UNCONFIRMED = "U"


EVIDENCE_DOCS: Final[dict[Evidence, str]] = {
    Evidence.BINARY: "string found in a shipped binary",
    Evidence.SOURCE: "read in source code",
    Evidence.HEADER: "read in shipped headers or Python files",
    Evidence.TRACE: "seen in a recorded trace or a report of one",
    Evidence.INFERRED: "inferred from the words in the name",
    Evidence.UNCONFIRMED: "general knowledge, not confirmed",
}
"""One line on each class of evidence, for the docs."""


@dataclass(frozen=True, slots=True)
class Signature:
    """One row: names that match ``regex`` (searched in the normalised name) are this.

    ``regex`` uses the syntax that Python ``re`` and Rust ``regex`` share: no look-around, no back references.
    ``precision`` is an id, ``{precision}`` (the named group of the regex), ``template`` (the narrowest C++ type named)
    or None. ``since`` and ``until`` are ``package version``; ``arch`` lists the device generations, where known.
    ``needs`` is a quick filter: every match holds at least one of these words; a row without it is always tried.
    """

    id: str
    regex: str
    family: Family
    implementation: str | None
    provider: str | None
    tensor_core: bool | None
    precision: str | None
    role: Role
    since: str | None
    until: str | None
    arch: tuple[str, ...]
    needs: tuple[str, ...]
    source: str
    evidence: Evidence
    checked: str
    examples: tuple[str, ...]


_KEYS: Final = frozenset(Signature.__dataclass_fields__)
_FILE_KEYS: Final = frozenset({"schema", "checked", "sources", "signature"})


class TableError(ValueError):
    """A row of the shipped table is not well formed: a defect of the package."""


@cache
def load_signatures() -> tuple[Signature, ...]:
    """Read the table that ships with the package, in matching order.

    Raises:
        TableError: names the file, the row and what is wrong with it.
    """
    rows: list[Signature] = []
    folder = resources.files("traceview.knowledge")
    for file in TABLE_FILES:
        rows.extend(parse_table(folder.joinpath(file).read_text("utf-8"), file))
    return tuple(rows)


def parse_table(text: str, file: str) -> list[Signature]:
    """Rows of one table file.

    Args:
        text: TOML with ``schema = 1``, ``checked`` (default date), ``[sources]`` (key to text) and ``[[signature]]``.
        file: its name, for messages.

    Raises:
        TableError: names the file, the row and what is wrong with it.
    """
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TableError(f"{file}: {error}") from error
    if table.get("schema") != 1 or not _FILE_KEYS.issuperset(table):
        raise TableError(f"{file}: expected schema = 1 and the keys {sorted(_FILE_KEYS)}, found {sorted(table)}")
    return [_signature(row, table, file) for row in table["signature"]]


def _signature(row: dict[str, Any], table: dict[str, Any], file: str) -> Signature:
    where = f"{file}: {row.get('id', 'row without id')}"
    if not _KEYS.issuperset(row):
        raise TableError(f"{where}: unknown keys {sorted(set(row) - _KEYS)}")
    try:
        return Signature(
            id=row["id"],
            regex=row["regex"],
            family=Family(row["family"]),
            implementation=row.get("implementation"),
            provider=row.get("provider"),
            tensor_core=row.get("tensor_core"),
            precision=row.get("precision"),
            role=Role(row.get("role", "main")),
            since=row.get("since"),
            until=row.get("until"),
            arch=tuple(row.get("arch", ())),
            needs=tuple(row.get("needs", ())),
            source=table["sources"][row["source"]],
            evidence=Evidence(row["evidence"]),
            checked=str(row.get("checked", table["checked"])),
            examples=tuple(row["examples"]),
        )
    except (KeyError, ValueError) as error:
        raise TableError(f"{where}: {error}") from error
