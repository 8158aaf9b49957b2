"""NVTX rows: ranges, and among them the operators of PyTorch with their sizes.

``torch.autograd.profiler.emit_nvtx`` and ``nsys profile --pytorch=autograd-shapes-nvtx`` push one range per operator
whose text is ``aten::addmm, seq = 3, op_id = 12, sizes = [[2, 3], []], input_op_ids = [(11,0)]``. PyTorch
``torch/csrc/profiler/util.cpp``, ``getNvtxStr``, read 2026-11. Sizes are recorded with ``record_shapes``, dtypes never.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview import schema
from traceview.parsers.nsys import tables as t
from traceview.parsers.nsys.identity import process_part
from traceview.parsers.nsys.names import distinct_of
from traceview.parsers.nsys.part import NUMBER, Part, timed
from traceview.timeline import Count

if TYPE_CHECKING:
    from traceview.parsers.nsys.identity import Owners
    from traceview.parsers.nsys.names import Names

INTS: Final = ("start", "end", "eventType", "globalTid", "endGlobalTid", "textId", "domainId")
TEXTS: Final = ("text",)

# Nsight Systems documentation, "NVTX event types", read 2026-11.
MARK: Final = 34
THREAD_NAME: Final = 39
RANGES: Final = (59, 60, 70, 71)
"""Push/pop and start/end ranges, as pushed and as read from an NVTXT file."""
DOMAIN_NAME: Final = 75
NO_EVENT: Final = (33, THREAD_NAME, DOMAIN_NAME, 76)
"""Names of categories, threads and domains: they describe events and are none."""

_SUFFIX: Final = r", (?:seq = -?\d+|op_id = \d+|sizes = \[|input_op_ids = \[).*$"
"""What ``emit_nvtx`` puts behind the name of an operator."""

_OPERATOR: Final = r"^[a-z_][\w]*(?:::\w+)+(?:\.\w+)?$|^detach_?$|^record_param_comms$"
"""A name of PyTorch's dispatcher: a namespace in lower case. Ranges that modules set (``FSDP::pre_forward (block.3)``)
have another form. The bare names are PyTorch's own."""

_PLAIN_OPERATOR: Final = r"^(?:aten|prim|prims|c10d)::\w+(?:\.\w+)?$"
"""Without anything behind the name only the namespaces of PyTorch itself are believed."""

UNNAMED: Final = "unnamed range"
"""Name of a range without a text, or whose text is not in the export."""

_COMPILER: Final = (
    r"^(?:TSL:)?Xla(?:Compile\w*|Pass(?:Pipeline)?|Emit\w+|Optimize\w+|MemoryScheduler|BufferAssignment"
    r"|CreateGpuExecutable|AutotunerCompilation):#"
)
"""Ranges that XLA sets while it compiles (``XlaCompile:#module=jit_f,program_id=2#``), in its domain ``TSL``. Names in
public exports of JAX programs, read 2026-11."""

_LONGEST_SIZES: Final = 4096


@dataclass(frozen=True, slots=True)
class NvtxEvents:
    """The NVTX rows of an export: events, distinct input signatures, and the names that threads were given."""

    part: Part
    inputs: pl.DataFrame
    thread_names: dict[int, str]


def events(frame: pl.DataFrame, names: Names, owners: Owners, *, ends_recorded: bool = True) -> NvtxEvents:
    """Ranges and marks; PyTorch's operators become kind ``op``.

    Args:
        frame: Rows of the table.
        names: Strings by id.
        owners: Gives keys to threads.
        ends_recorded: The table has ends at all; without them no range was open, and none is known to enclose anything.
    """
    rows = frame.height
    texts = _texts(frame, names)
    thread_names = _thread_names(frame, texts)
    frame = frame.with_columns(name=texts).with_row_index("row")
    event_type = frame["eventType"]
    counts: dict[str, Count] = {}
    if frame.height and event_type.null_count() == frame.height:
        # An export that somebody rewrote without the column: rows with a name and an end are ranges all the same.
        event_type = pl.select(pl.when(frame["end"].is_not_null()).then(RANGES[0])).to_series()
        counts["range-type-missing"] = Count(int(event_type.is_not_null().sum()), "NVTX row without eventType")
        frame = frame.with_columns(eventType=event_type)
    is_mark = (event_type == MARK).fill_null(value=False)
    wanted = is_mark | event_type.is_in([*RANGES]).fill_null(value=False)
    other = frame.filter(~wanted & ~event_type.is_in([*NO_EVENT]).fill_null(value=False))
    if other.height:
        counts["lost-nvtx-type"] = Count(other.height, f"eventType {other['eventType'][0]}")
    if absent := int((_without_string(frame, names) & wanted).sum()):
        counts["lost-name"] = Count(absent, "range without a name")
    frame = frame.filter(wanted).with_columns(
        end=pl.when(pl.col("eventType") == MARK).then(pl.col("start")).otherwise(pl.col("end"))
    )
    place = frame["row"]
    part, frame = timed(t.NVTX, frame, "annotation")
    part.row, part.rows = place.to_numpy()[part.row].astype(np.uint32), rows
    part.counts.update(counts)
    part.kind[(frame["eventType"] == MARK).to_numpy()] = NUMBER["other"]
    if part.open_end is not None and not ends_recorded:
        part.counts["call-without-end"] = Count(int(part.open_end.sum()), part.table)
        part.open_end = None
    if part.open_end is not None:
        part.counts["open-range"] = Count(int(part.open_end.sum()), "a range that was open when the recording ended")
    inputs = _operators(part, frame["name"])
    crossing = (
        frame["endGlobalTid"].is_not_null()
        & (frame["endGlobalTid"] != frame["globalTid"])
        & (frame["endGlobalTid"] != 0)
    )
    threads = frame["globalTid"]
    nowhere = int((threads.is_null() & (frame["eventType"] == RANGES[0])).sum())
    if nowhere:
        part.counts["range-without-thread"] = Count(nowhere, str(frame.filter(threads.is_null())["name"][0])[:80])
    if crossing.any():
        # It was started on one thread and ended on another, so neither thread's calls lie in it by nesting.
        part.counts["range-across-threads"] = Count(int(crossing.sum()), str(frame.filter(crossing)["name"][0])[:80])
        threads = threads.set(crossing, None)
    part.columns["thread"] = owners.threads_of(threads)
    part.columns["process"] = owners.processes_of(process_part(frame["globalTid"]))
    return NvtxEvents(part, inputs, thread_names)


def _texts(frame: pl.DataFrame, names: Names) -> pl.Series:
    """Text of each row, inline or by id: both occur, even in one file. What has no text is called so."""
    distinct, place = distinct_of(frame["textId"])
    registered = [*(names.text(one) or None for one in distinct), None]
    by_id = pl.Series(registered, dtype=pl.Categorical).gather(pl.Series(place))
    inline = frame["text"].set(frame["text"] == "", None)
    if inline.null_count() == frame.height:
        return by_id.fill_null(pl.lit(UNNAMED, pl.Categorical)).alias("name")
    both = inline.cast(pl.Categorical)
    both = both.zip_with(both.is_not_null(), by_id) if frame["textId"].null_count() < frame.height else both
    return pl.select(both.fill_null(pl.lit(UNNAMED, pl.Categorical))).to_series().alias("name")


def _without_string(frame: pl.DataFrame, names: Names) -> pl.Series:
    """Rows whose text has an id that is not in the export."""
    absent = [one for one in frame["textId"].drop_nulls().unique() if names.text(one) is None]
    return frame["text"].is_null() & frame["textId"].is_in(absent).fill_null(value=False)


def _thread_names(frame: pl.DataFrame, texts: pl.Series) -> dict[int, str]:
    chosen = (frame["eventType"] == THREAD_NAME).fill_null(value=False)
    if not chosen.any():
        return {}
    named = pl.DataFrame({"tid": frame["globalTid"], "text": texts}).filter(chosen).drop_nulls()
    return {tid: text for tid, text in named.with_columns(pl.col("text").cast(pl.String)).iter_rows() if text}


def _operators(part: Part, texts: pl.Series) -> pl.DataFrame:
    """Set names, kinds and input signatures of the ranges; return the distinct signatures."""
    distinct = texts.unique()
    codes = distinct.to_physical().to_numpy()
    told = (
        pl.DataFrame({"text": distinct.cast(pl.String)})
        .with_columns(plain=pl.col("text").str.replace(_SUFFIX, ""))
        .with_columns(emitted=pl.col("plain").str.len_bytes() < pl.col("text").str.len_bytes())
        .with_columns(
            op=pl.when("emitted")
            .then(pl.col("text").str.contains(r", seq = \d+|, sizes = \[") | pl.col("plain").str.contains(_OPERATOR))
            .otherwise(pl.col("plain").str.contains(_PLAIN_OPERATOR)),
            compiler=pl.col("text").str.contains(_COMPILER),
            dims=pl.when("emitted").then(pl.col("text").str.extract(r", sizes = (\[.*?\])(?:, input_op_ids = .*)?$")),
        )
        .with_columns(dims=pl.col("dims").str.replace_all(" ", "", literal=True))
    )
    bad = told.filter(pl.col("dims").is_not_null() & ~_is_sizes()).height
    cut = told.filter(pl.col("dims").is_null() & pl.col("text").str.contains(", sizes = [", literal=True)).height
    told = told.with_columns(dims=pl.when(_is_sizes()).then("dims"))
    if bad + cut:
        part.counts["lost-sizes"] = Count(bad + cut, "sizes of an operator that are cut or damaged")
    signatures = told["dims"].drop_nulls().unique(maintain_order=True)
    key_of = dict(zip(signatures.to_list(), range(len(signatures)), strict=True))
    place = np.zeros(int(codes.max(initial=0)) + 1, np.uint32)
    place[codes] = np.arange(len(codes), dtype=np.uint32)
    at = pl.Series(place[texts.to_physical().to_numpy()])
    part.columns["name"] = told["plain"].cast(pl.Categorical).gather(at)
    is_op = told["op"].gather(at).to_numpy() & (part.kind == NUMBER["annotation"])
    part.kind[is_op] = NUMBER["op"]
    part.kind[told["compiler"].gather(at).to_numpy() & (part.kind == NUMBER["annotation"])] = NUMBER["compile"]
    if len(signatures):
        keys = told["dims"].replace_strict(key_of, default=None, return_dtype=pl.UInt32)
        part.columns["inputs"] = keys.gather(at)
    texts_of = signatures.alias("dims")
    return (
        pl.DataFrame({"inputs": pl.Series(range(len(signatures)), dtype=pl.UInt32), "dims": texts_of})
        .with_columns(*(pl.lit(None, pl.String).alias(name) for name in ("dtypes", "strides", "concrete")))
        .select(list(schema.INPUTS.dtypes))
    )


def _is_sizes() -> pl.Expr:
    """A list of lists of sizes, and nothing else."""
    return (pl.col("dims").str.len_bytes() <= _LONGEST_SIZES) & pl.col("dims").str.contains(
        r"^\[(?:\[(?:\d+(?:,\d+)*)?\](?:,\[(?:\d+(?:,\d+)*)?\])*)?\]$"
    )


def domains(frame: pl.DataFrame, names: Names) -> dict[tuple[int, int], str]:
    """``(globalPid, domainId)`` to the name that the program gave the domain; the default domain 0 has none."""
    rows = frame.filter(pl.col("eventType") == DOMAIN_NAME).drop_nulls(["globalTid", "domainId"])
    return {
        (row["globalTid"] & ~0xFFFFFF, row["domainId"]): row["text"] or names.text(row["textId"]) or ""
        for row in rows.iter_rows(named=True)
    }
