"""What ``torch.compile`` compiled: each frame and version, its cost, and what came of it.

Spans of ``dynamo_timed`` nest; a compilation is one outermost frame, or one outermost span where no frame is recorded
(a backward graph). The id ``frame/version`` is read from the companion annotation that PyTorch writes beside each span
(``…_data: compile_id=0/1``, torch 2.8 and later) or from the compiled region that runs next. Names read in pytorch
``torch/_dynamo/utils.py`` and seen in traces of torch 2.13.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from traceview.callers import caller
from traceview.host_calls import innermost, named, outermost

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.timeline import Timeline

FRAME: Final = r"compile_inner|entire_frame_compile"
AUTOTUNE: Final = r"(?i)autotun|benchmark"
_CAPTURE: Final = r"CUDAGraphNode|cudagraph"
_TORCH: Final = r"\(dynamo_timed\)$|compile_inner|entire_frame_compile"
_COMPANION: Final = r"_data: .*compile_id=([0-9]+/[0-9]+)"
_REGION: Final = r"^Torch-Compiled Region: ([0-9]+/[0-9]+)$"
_LOOKUP: Final = r"^TorchDynamo Cache Lookup$"


def torch_compilations(timeline: Timeline) -> Iterator[dict[str, Any]]:
    """Rows of :data:`traceview.recompiles.RECOMPILES` without step and warm-up, in the order of time."""
    spans = named(timeline, ("compile",), _TORCH)
    if not spans.height:
        return
    rows = _compilations(timeline, spans)
    regions = _Regions(timeline)
    has_stacks = bool(timeline.events.filter(pl.col("kind") == "python").height)
    merged: dict[tuple[int | None, str | None, int | None], dict[str, Any]] = {}
    for row in rows.iter_rows(named=True):
        compile_id = row["compile_id"] or regions.next_id(row["thread"], row["end_ns"])
        what = "torch-compile"
        if not row["is_frame"] and _matches(row["name"], _CAPTURE):
            what = "graph-capture"
        elif not row["is_frame"] and _matches(row["name"], AUTOTUNE):
            what = "autotune"
        key = (row["process"], compile_id, row["step"])
        earlier = merged.get(key) if compile_id and what == "torch-compile" else None
        if earlier is not None and not row["is_frame"]:
            # What a frame leaves to be done after it (collecting garbage, a backward graph) is part of it.
            earlier["dur_ns"] += row["dur_ns"]
            continue
        function = (caller(timeline, row["id"]) if has_stacks else None) or (
            f"frame {compile_id.split('/')[0]}" if compile_id else None
        )
        found = {
            "what": what,
            "function": function,
            "compile_id": compile_id,
            "recompiled": bool(compile_id.split("/")[1].strip("0")) if compile_id else None,
            "reason": None,
            "shapes": None,
            "start_ns": row["start_ns"],
            "dur_ns": row["dur_ns"],
            "process": row["process"],
            "event_id": row["id"],
        }
        if what == "torch-compile" and compile_id:
            _add_outcome(found, regions, row, is_frame=row["is_frame"])
            merged[key] = found
        else:
            yield found
    yield from merged.values()


def _matches(name: str, pattern: str) -> bool:
    return bool(pl.Series([name]).str.contains(pattern)[0])


def _compilations(timeline: Timeline, spans: pl.DataFrame) -> pl.DataFrame:
    """The spans that stand for one compilation each, with ``compile_id`` where a companion tells it."""
    frames = outermost(timeline, spans.filter(pl.col("name").str.contains(FRAME)))
    tops = outermost(timeline, spans)
    around = innermost(timeline, frames["id"], tops["id"])
    others = tops.filter(~pl.col("id").is_in(around.implode()) & ~pl.col("id").is_in(frames["id"].implode()))
    columns = ("id", "name", "process", "thread", "start_ns", "dur_ns", "step")
    rows = pl.concat(
        [
            frames.select(columns).with_columns(is_frame=pl.lit(True)),
            others.select(columns).with_columns(is_frame=pl.lit(False)),
        ]
    ).with_columns(end_ns=pl.col("start_ns") + pl.col("dur_ns"))
    rows = rows.sort("start_ns")
    companions = (
        named(timeline, ("annotation", "op"), _COMPANION)
        .select("thread", "start_ns", said_ns="start_ns", compile_id=pl.col("name").str.extract(_COMPANION))
        .sort("start_ns")
    )
    after = rows.join_asof(companions, on="start_ns", by="thread", strategy="forward", check_sortedness=False)
    before = rows.join_asof(companions, on="start_ns", by="thread", strategy="backward", check_sortedness=False)
    inside = pl.when(after["said_ns"] <= after["end_ns"]).then(after["compile_id"])
    return rows.with_columns(compile_id=pl.coalesce(inside, before["compile_id"]))


def _add_outcome(found: dict[str, Any], regions: _Regions, row: dict[str, Any], *, is_frame: bool) -> None:
    """What the compiled version was called with, against the version before; or that it never ran."""
    compile_id = found["compile_id"]
    op, dims = regions.first_call(compile_id, row["thread"], row["end_ns"])
    earlier = regions.earlier_call(compile_id, row["thread"], row["end_ns"])
    if dims is not None:
        found["shapes"] = f"{op} {dims}" if earlier is None else f"{op} {earlier[1]} -> {dims}"
        if earlier is not None and earlier[0] == op and earlier[1] != dims:
            found["reason"] = "input shapes changed"
    elif is_frame and regions.runs_on_without(compile_id, row["thread"], row["end_ns"]):
        found["what"] = "eager-fallback"
        found["reason"] = (
            "no code compiled for it ran afterwards, so the frame runs uncompiled (limit of recompilations?)"
        )


class _Regions:
    """The runs of compiled code in a trace."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        regions = named(timeline, ("op", "annotation"), _REGION).sort("start_ns")
        ids = regions["name"].str.extract(_REGION)
        self._calls: dict[tuple[int, str], list[tuple[int, int]]] = {}
        self._threads: dict[int, list[tuple[int, str]]] = {}
        for thread, compile_id, start, length in zip(
            regions["thread"], ids, regions["start_ns"], regions["dur_ns"], strict=True
        ):
            self._calls.setdefault((thread, compile_id), []).append((start, start + length))
            self._threads.setdefault(thread, []).append((start, compile_id))
        lookups = named(timeline, ("op", "annotation"), _LOOKUP)
        self._lookups = {
            int(thread): rows["start_ns"].sort().to_numpy()
            for (thread,), rows in lookups.group_by("thread")
            if thread is not None
        }
        self._shaped = timeline.events.filter(
            (pl.col("kind") == "op") & pl.col("thread").is_not_null() & pl.col("inputs").is_not_null()
        ).select("thread", "start_ns", "name", "inputs")

    def next_id(self, thread: int, moment: int) -> str | None:
        """Id of the compiled code that runs next on a thread."""
        return next((name for start, name in self._threads.get(thread, ()) if start >= moment), None)

    def runs_on_without(self, compile_id: str, thread: int, moment: int) -> bool:
        """Compiled frames are looked up after a moment, but the code of this id never runs."""
        later = self._lookups.get(thread, np.empty(0, np.int64))
        ran = any(start >= moment for start, _ in self._calls.get((thread, compile_id), ()))
        return bool(self._calls) and not ran and bool(len(later)) and int(later[-1]) >= moment

    def first_call(self, compile_id: str, thread: int, moment: int) -> tuple[str | None, str | None]:
        """First op with recorded shapes in the first run of some compiled code after a moment, and its dims."""
        call = next((one for one in self._calls.get((thread, compile_id), ()) if one[0] >= moment), None)
        return (None, None) if call is None else self._first_op(thread, call)

    def earlier_call(self, compile_id: str, thread: int, moment: int) -> tuple[str | None, str | None] | None:
        """The same of the last run of any earlier version of the frame."""
        frame = compile_id.split("/", maxsplit=1)[0]
        before = [
            call
            for (on, other), calls in self._calls.items()
            if on == thread and other.split("/")[0] == frame and other != compile_id
            for call in calls
            if call[0] < moment
        ]
        return self._first_op(thread, max(before)) if before else None

    def _first_op(self, thread: int, call: tuple[int, int]) -> tuple[str | None, str | None]:
        inside = self._shaped.filter(
            (pl.col("thread") == thread) & (pl.col("start_ns") >= call[0]) & (pl.col("start_ns") < call[1])
        ).head(8)
        for name, key in inside.select(pl.col("name").cast(pl.String), "inputs").iter_rows():
            dims = self._timeline.inputs["dims"][key]
            if dims and any(character.isdigit() for character in dims):
                return name, dims
        return None, None
