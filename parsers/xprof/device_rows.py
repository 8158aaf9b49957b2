"""Rows of device planes: ops and modules of TPUs, kernels and copies of GPUs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from . import kernel_details
from .columns import REF, STR
from .distinct import distinct
from .lanes import Lane, Owner, lane_of, stream_of
from .rows import KIND, NULL, has, integers, labels
from .xla_ops import is_control, kind_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .rows import PlaneRows
    from .source import SourceFile

_LANE_KINDS: Final = {
    Lane.MODULES: "xla_module", Lane.STEPS: "annotation", Lane.SCOPES: "annotation", Lane.ASYNC: "other",
    Lane.COUNTERS: "counter", Lane.OTHER: "other", Lane.DERIVED: "other",
}  # fmt: skip
_WAITING: Final = re.compile(r"(?i)barrier|wait|sync")
_COPY: Final = re.compile(r"^(Memcpy|MemCpy|memcpy|Copy(Device|Host)To(Device|Host)|__amd_rocclr_copy)")
_FILL: Final = re.compile(r"^(Memset|memset|__amd_rocclr_fillBuffer|FillBuffer)")
_GRAPH: Final = re.compile(r"^(CudaGraph|HipGraph|command_buffer)", re.IGNORECASE)
"""A replayed graph recorded as one block."""


def fill(rows: PlaneRows, device: int, source: SourceFile) -> dict[str, int]:
    """Give the rows of a device plane their meaning.

    Args:
        rows: The rows.
        device: Key of the device.
        source: The file, for texts.

    Returns:
        How many rows of which sort were left out or read in another way.
    """
    plane = rows.plane
    counts: dict[str, int] = {}
    rows.device[:] = device
    stream = rows.column("stream")
    waits = np.array(
        [KIND["sync" if _WAITING.search(entry.name) else "other"] for entry in plane.names] or [0], np.uint8
    )
    for line in plane.lines:
        at = slice(line.first, line.stop)
        stream[at] = stream_of(line)
        lane = lane_of(rows.place, line)
        if lane is Lane.DERIVED:
            rows.keep[at] = False
            counts["derived-row"] = counts.get("derived-row", 0) + line.stop - line.first
        if lane in _LANE_KINDS:
            rows.kind[at] = KIND[_LANE_KINDS[lane]]
        if lane is Lane.ASYNC and line.stop > line.first:
            counts["async-copy-in-flight"] = counts.get("async-copy-in-flight", 0) + line.stop - line.first
        if lane is Lane.WAITS:
            rows.kind[at] = waits[plane.name_of[at]]
    if rows.place.owner is Owner.TPU:
        _ops(rows)
    else:
        _kernels(rows, source)
    return counts


_SPARSE_CORE_LANE: Final = 1 << 16
"""Lanes of sparse cores have numbers of their own on the device of the core."""


def fill_beside(rows: PlaneRows, device: int, source: SourceFile) -> dict[str, int]:
    """Give the rows of a sparse core their meaning: work beside that of a core, like its copies in flight.

    Args:
        rows: The rows.
        device: Key of the device of the core.
        source: The file, for texts.
    """
    fill(rows, device, source)
    rows.kind[:] = KIND["other"]
    stream = rows.column("stream")
    stream[stream != NULL] += _SPARSE_CORE_LANE * (1 + (rows.place.sparse_core or 0))
    work = sum(at.stop - at.start for at in _lines(rows, Lane.OPS))
    return {"sparse-core-row": work}


def _lines(rows: PlaneRows, *lanes: Lane) -> list[slice]:
    return [slice(one.first, one.stop) for one in rows.plane.lines if lane_of(rows.place, one) in lanes]


def _ops(rows: PlaneRows) -> None:
    plane = rows.plane
    categories, words = labels(plane, "hlo_category")
    mask = np.zeros(len(rows), np.bool_)
    for at in _lines(rows, Lane.OPS):
        mask[at] = True
    if mask.any():
        set_op_kinds(rows, mask, categories, words)
        for at in _lines(rows, Lane.OPS):
            open_control(rows, np.arange(at.start, at.stop), categories, words)
    flops, moved = integers(plane, "flops"), integers(plane, "bytes_accessed")
    for at in _lines(rows, Lane.OPS, Lane.ASYNC):
        if flops is not None:
            rows.column("flops")[at] = _known(flops[at])
        if moved is not None:
            rows.column("bytes")[at] = _known(moved[at])


def _known(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Without the negative numbers by which a profiler says that it does not know."""
    return np.where(values < 0, NULL, values)


def set_op_kinds(
    rows: PlaneRows, mask: NDArray[np.bool_], categories: NDArray[np.uint32], words: list[str | None]
) -> None:
    """Kinds of XLA ops, worked out once for each pair of name and category."""
    chosen = np.flatnonzero(mask)
    pairs = rows.plane.name_of[chosen].astype(np.int64) * len(words) + categories[chosen]
    found, inverse = distinct(pairs)
    kinds = [KIND[kind_of(_short(rows, pair // len(words)), words[pair % len(words)])] for pair in found.tolist()]
    rows.kind[chosen] = np.array(kinds, np.uint8)[inverse]


def _short(rows: PlaneRows, index: int) -> str:
    entry = rows.plane.names[index]
    return entry.display_name or entry.name


def open_control(
    rows: PlaneRows, at: NDArray[np.intp], categories: NDArray[np.uint32], words: list[str | None]
) -> None:
    """Make loops, branches and calls that hold other ops of the line rows that span work without being any.

    The work is in the ops that they run; counting both would count it twice and hide every wait inside a loop.

    Args:
        rows: Rows of the plane.
        at: Those of one line that are ops, in the order of the file.
        categories: For each row of the plane the index of its category.
        words: The categories.
    """
    width = len(words)
    pairs, inverse = distinct(rows.plane.name_of[at].astype(np.int64) * width + categories[at])
    is_holder = [is_control(_short(rows, pair // width), words[pair % width]) for pair in pairs.tolist()]
    control = np.array(is_holder or [False], np.bool_)[inverse]
    if not control.any():
        return
    starts, ends = rows.start_ns[at], rows.start_ns[at] + rows.dur_ns[at]
    order = np.lexsort((-(ends - starts), starts))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    holders = np.flatnonzero(control)
    following = place[holders] + 1
    inner = order[np.minimum(following, len(order) - 1)]
    holds = (following < len(order)) & (starts[inner] < ends[holders]) & (ends[inner] <= ends[holders])
    rows.kind[at[holders[holds]]] = KIND["other"]


def _kernels(rows: PlaneRows, source: SourceFile) -> None:
    plane = rows.plane
    mask = np.zeros(len(rows), np.bool_)
    for at in _lines(rows, Lane.WORK):
        mask[at] = True
    by_name = np.array([KIND[_kernel_kind(entry.name)] for entry in plane.names] or [0], np.uint8)
    kinds = by_name[plane.name_of]
    kinds[has(plane, "memcpy_details") & (kinds == KIND["kernel"])] = KIND["memcpy"]
    kinds[has(plane, "memset_details") & (kinds == KIND["kernel"])] = KIND["memset"]
    rows.kind[mask] = kinds[mask]
    for name in ("memcpy_details", "memset_details"):
        _copied(rows, name, source)
    correlation = integers(plane, "correlation_id")
    if correlation is not None:
        rows.column("correlation")[mask] = correlation[mask]


def _kernel_kind(name: str) -> str:
    if _COPY.search(name):
        return "memcpy"
    if _FILL.search(name):
        return "memset"
    return "graph" if _GRAPH.search(name) else "kernel"


def _copied(rows: PlaneRows, name: str, source: SourceFile) -> None:
    """Bytes of copies and fills, out of their details."""
    column = rows.plane.columns.get(name)
    if column is None:
        return
    for kind in (REF, STR):
        mask = column.kind == kind
        if not mask.any():
            continue
        if kind == REF:
            keys, inverse = distinct(column.value[mask].view(np.int64))
            texts = [column.interned.get(key, "") for key in keys.tolist()]
        else:
            texts, inverse = (
                source.texts(column.value[mask], column.length[mask]),
                np.arange(int(mask.sum()), dtype=np.uint32),
            )
        sizes = [kernel_details.copied_bytes(text) for text in texts]
        table = np.array([NULL if size is None or size >= 1 << 63 else size for size in sizes], np.int64)
        rows.column("bytes")[column.row[mask]] = table[inverse]
