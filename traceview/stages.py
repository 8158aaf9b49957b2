"""Which stage of the program each event belongs to.

Host events belong to the innermost stage range around them. Device work belongs to the stage of the call that launched
it, whenever it runs: a host range says when work was asked for, not when it ran. A graph replay is one launch, so all
its work has one stage. Work of a backward pass is launched by a thread of its own and belongs to the stage that is open
on the thread that waits for it.

The sources, best first, are those of :class:`traceview.stage_sources.found.Source`. A source adds stages only outside
the ranges of better ones, so a user's own marks are never cut up or renamed by what is found besides them; only the
phases of a serving engine take other stages into them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview.stage_sources import labels, patterns, scopes, stacks
from traceview.stage_sources.found import MOST_NAMES, NO_RANGES, HostTree, Source
from traceview.stage_sources.patterns import StagePattern, stage_patterns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceview.timeline import Timeline

__all__ = [
    "StagePattern",
    "Staging",
    "assign_stages",
    "has_marks",
    "matches",
    "open_stages",
    "stage_patterns",
]

NO_STAGE: Final = -1

BACKWARD: Final = "backward"
_MOSTLY: Final = 0.8
_BACKWARD_OP: Final = r"^autograd::engine::|^torch::autograd::|^\w+Backward\d*$"

_RANGES: Final = {
    "id": pl.UInt32, "stage": pl.String, "source": pl.String, "process": pl.UInt32, "thread": pl.UInt32,
    "start_ns": pl.Int64, "end_ns": pl.Int64,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Staging:
    """A timeline with its stages.

    Attributes:
        timeline: The timeline, ``events.stage`` set where a stage is known.
        ranges: The host ranges that open stages, by id: ``id``, ``stage`` (path), ``source``, ``process``, ``thread``,
            ``start_ns``, ``end_ns``.
        sources: What the stages come from, best first; empty: no stage is known.
        notes: What could not be used or found, in words.
    """

    timeline: Timeline
    ranges: pl.DataFrame
    sources: tuple[Source, ...]
    notes: tuple[str, ...]

    @property
    def why_none(self) -> str | None:
        """Why no stage is known; ``None`` if one is."""
        if self.sources:
            return None
        why = "no annotation, no function or module of a recorded Python stack and no XLA scope names a stage"
        return "; ".join((why, *self.notes))


def has_marks(timeline: Timeline) -> bool:
    """The trace has explicit marks of stages."""
    return labels.has_marks(HostTree(timeline))


def assign_stages(timeline: Timeline, given: Sequence[StagePattern] = ()) -> Staging:
    """Find the stages of a trace and set ``stage`` of its events.

    Args:
        timeline: With launches linked.
        given: Stages of the user, in order of precedence.
    """
    tree = HostTree(timeline)
    found = labels.find(tree)
    by_pattern, without = patterns.find(tree, given)
    ranges = _Ranges(tree)
    ranges.add(found.marks, Source.MARK)
    ranges.add(by_pattern, Source.PATTERN)
    ranges.add(found.phases, Source.PHASE)
    ranges.add(found.stages, Source.ANNOTATION)
    ranges.add(stacks.functions(tree), Source.FRAME)
    ranges.add(stacks.modules(tree, ranges.free()), Source.MODULE)
    threads = _backward_threads(timeline)
    placed = _limit_names(_under_backward(_with_paths(tree, ranges.all()), threads))
    by_scope = scopes.find(timeline, given)
    unseen = [name for name in without if name not in set(by_scope.filter("by_user")["stage"])]
    codes = _Codes()
    stage = _of_host(tree, placed, codes)
    used = set(placed["source"])
    if _fill_backward(timeline, placed, threads, stage, codes):
        used.add(Source.AUTOGRAD.value)
    _of_device(timeline, stage)
    if _fill_scopes(by_scope, stage, codes):
        used.add(Source.SCOPE.value)
    notes = [*found.notes, *(f"the pattern of stage {name} matches no name in the trace" for name in unseen)]
    return Staging(
        timeline=replace(timeline, events=timeline.events.with_columns(codes.column(stage))),
        ranges=placed,
        sources=tuple(source for source in Source if source.value in used),
        notes=tuple(notes),
    )


def matches(stage: str | None, pattern: str) -> bool:
    """Whether a stage is meant by a glob.

    It is if the glob matches the whole path, or that of a stage around it (work in ``denoise/attention`` is work in
    ``denoise``); and, for a glob without ``/``, if it matches any one part of the path.
    """
    if stage is None:
        return False
    parts = stage.split("/")
    outer = ["/".join(parts[: at + 1]) for at in range(len(parts))]
    return any(fnmatchcase(one, pattern) for one in (outer if "/" in pattern else [*outer, *parts]))


class _Ranges:
    """Stage ranges by source; each source is kept out of the ranges of better ones."""

    def __init__(self, tree: HostTree) -> None:
        self._tree = tree
        self._parts: list[pl.DataFrame] = []
        self._closed = np.empty(0, np.uint32)
        """Ids of the ranges that take no others into them."""

    def free(self) -> NDArray[np.bool_]:
        """One flag per event: it lies in no range, and around none."""
        if not len(self._closed):
            return np.ones(len(self._tree.parent), bool)
        inside = self._tree.nearest(self._closed) >= 0
        return ~inside & ~self._tree.around(self._closed)

    def add(self, ranges: pl.DataFrame, source: Source) -> None:
        """Add what a source found; what lies in or around better ranges is left out."""
        if not ranges.height:
            return
        free = self.free()
        kept = ranges.filter(pl.Series(free).gather(ranges["id"])).with_columns(source=pl.lit(source.value))
        if source is Source.PHASE:
            # An engine may be labelled twice, the iteration and its forward pass: the outer label is the iteration.
            ids = kept["id"].to_numpy()
            kept = kept.filter(pl.Series(self._tree.nearest(ids, strict=True)[ids] < 0))
        else:
            self._closed = np.concatenate([self._closed, kept["id"].to_numpy()])
        self._parts.append(kept)

    def all(self) -> pl.DataFrame:
        """Everything added: ``id``, ``stage``, ``source``, by id."""
        if not self._parts:
            return NO_RANGES.with_columns(source=pl.lit(None, pl.String))
        return pl.concat(self._parts).unique("id", keep="first").sort("id")


def _with_paths(tree: HostTree, ranges: pl.DataFrame) -> pl.DataFrame:
    """Ranges with ``stage`` as the whole path, and where they are; inner ranges of the same stage are left out."""
    if not ranges.height:
        return pl.DataFrame(schema=_RANGES)
    ids = ranges["id"].to_numpy()
    outer = tree.nearest(ids, strict=True)[ids].tolist()
    paths: dict[int, str] = {}
    # Whoever encloses an event comes before it.
    for event, name, around in zip(ids.tolist(), ranges["stage"].to_list(), outer, strict=True):
        paths[event] = _join(paths.get(around, ""), name)
    repeats = [paths.get(around) == paths[event] for event, around in zip(ids.tolist(), outer, strict=True)]
    events = tree.timeline.events
    where = events.select("process", "thread", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"))
    return pl.concat(
        [
            ranges.select("id", stage=pl.Series(list(paths.values()), dtype=pl.String), source="source"),
            where[ranges["id"]],
        ],
        how="horizontal",
    ).filter(~pl.Series(repeats))


def _join(outer: str, name: str) -> str:
    """The path of a stage inside another: ``forward`` and ``forward/sparse`` make ``forward/sparse``."""
    if not outer:
        return name
    around, own = outer.split("/"), name.split("/")
    if own == around[-len(own) :] or (len(own) == 1 and own[0] in around):
        return outer
    for length in range(min(len(around), len(own)), 0, -1):
        if around[-length:] == own[:length]:
            own = own[length:]
            break
    return "/".join([*around, *own])


def _limit_names(ranges: pl.DataFrame) -> pl.DataFrame:
    """Cut the paths that were found, not given, to the depth at which they are few."""
    own = pl.col("source").is_in([Source.MARK.value, Source.PATTERN.value])
    found = ranges.filter(~own)["stage"].unique().to_list()
    depth = max((path.count("/") + 1 for path in found), default=0)
    while depth > 1 and len({tuple(path.split("/")[:depth]) for path in found}) > MOST_NAMES:
        depth -= 1
    cut = pl.col("stage").str.split("/").list.head(max(depth, 1)).list.join("/")
    return ranges.with_columns(stage=pl.when(own).then("stage").otherwise(cut))


class _Codes:
    """Small numbers for stage paths, so that a stage per event costs four bytes."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self._known: dict[str, int] = {}

    def of(self, path: str) -> int:
        """The number of a path."""
        if path not in self._known:
            self._known[path] = len(self.paths)
            self.paths.append(path)
        return self._known[path]

    def column(self, stage: NDArray[np.int32]) -> pl.Series:
        """The column of the events."""
        if not self.paths:
            return pl.Series("stage", [None], dtype=pl.Categorical).new_from_index(0, len(stage))
        at = pl.Series(np.maximum(stage, 0).astype(np.uint32)).set(pl.Series(stage < 0), None)
        return pl.Series("stage", self.paths, dtype=pl.Categorical).gather(at)


def _of_host(tree: HostTree, ranges: pl.DataFrame, codes: _Codes) -> NDArray[np.int32]:
    """The number of the stage of each host event; :data:`NO_STAGE` for device rows and outside all stages."""
    stage = np.full(tree.timeline.events.height, NO_STAGE, np.int32)
    if not ranges.height:
        return stage
    ids = ranges["id"].to_numpy()
    stage[ids] = [codes.of(path) for path in ranges["stage"].to_list()]
    nearest = tree.nearest(ids)
    inside = nearest >= 0
    stage[inside] = stage[nearest[inside]]
    return stage


def open_stages(ranges: pl.DataFrame) -> tuple[NDArray[np.int64], NDArray[np.int64], list[str]]:
    """When which stage is the innermost open one on a thread: starts, ends, and the path of each stretch.

    Args:
        ranges: Ranges of one thread, as :attr:`Staging.ranges`, by id.
    """
    starts: list[int] = []
    ends: list[int] = []
    paths: list[str] = []
    stack: list[tuple[int, str]] = []
    now = 0

    def until(moment: int) -> None:
        nonlocal now
        while stack:
            end, path = stack[-1]
            stop = min(end, moment)
            if stop > now:
                starts.append(now)
                ends.append(stop)
                paths.append(path)
                now = stop
            if end > moment:
                return
            stack.pop()
        now = moment

    last = 0
    for start, end, path in ranges.select("start_ns", "end_ns", "stage").iter_rows():
        until(start)
        now = max(now, start)
        stack.append((end, path))
        last = max(last, end)
    until(last)
    return np.array(starts, np.int64), np.array(ends, np.int64), paths


def _backward_threads(timeline: Timeline) -> pl.Series:
    """Threads on which nodes of a backward pass stand at the top: those that autograd runs, mostly."""
    events = timeline.events
    names = events.filter(pl.col("kind").is_in(["op", "annotation"]))["name"].unique().cast(pl.String)
    names = names.filter(names.str.contains(_BACKWARD_OP))
    tops = events.filter(
        pl.col("thread").is_not_null()
        & pl.col("parent_id").is_null()
        & pl.col("kind").is_in(["op", "annotation"])
        # Of a thread whose events last no time no share can be told.
        & (pl.col("dur_ns") > 0)
    )
    is_node = pl.col("name").is_in(names.cast(pl.Categorical).implode())
    nodes = tops.group_by("thread").agg(share=pl.col("dur_ns").filter(is_node).sum() / pl.col("dur_ns").sum())
    # Without a device the backward pass runs on the thread that asked for it, between everything else.
    return nodes.filter(pl.col("share") > _MOSTLY)["thread"].sort()


def _main_threads(ranges: pl.DataFrame) -> dict[int, int]:
    """For each process the thread that its stages fill most: the one that waits for the others."""
    held = ranges.group_by("process", "thread").agg(ns=(pl.col("end_ns") - pl.col("start_ns")).sum())
    held = held.sort("ns", "thread", descending=[True, False]).unique("process", keep="first", maintain_order=True)
    return dict(held.select("process", "thread").drop_nulls().iter_rows())


def _open_at(ranges: pl.DataFrame, moments: NDArray[np.int64], codes: _Codes) -> NDArray[np.int32]:
    """The number of the innermost stage that is open on a thread at each moment."""
    starts, ends, paths = open_stages(ranges)
    if not paths:
        return np.full(len(moments), NO_STAGE, np.int32)
    numbers = np.array([codes.of(path) for path in paths], np.int32)
    at = np.maximum(np.searchsorted(starts, moments, side="right") - 1, 0)
    held = (moments >= starts[at]) & (moments < ends[at])
    return np.where(held, numbers[at], np.int32(NO_STAGE))


def _under_backward(ranges: pl.DataFrame, threads: pl.Series) -> pl.DataFrame:
    """Ranges on autograd's threads, put into the stage that is open on the thread that waits for them."""
    main = _main_threads(ranges)
    paths = ranges["stage"].to_list()
    for process, thread in main.items():
        waiting = ranges.filter(pl.col("thread") == thread)
        held = ranges.with_row_index("row").filter(
            (pl.col("process") == process) & (pl.col("thread") != thread) & pl.col("thread").is_in(threads.implode())
        )
        codes = _Codes()
        outer = _open_at(waiting, held["start_ns"].to_numpy(), codes)
        for row, code in zip(held["row"].to_list(), outer.tolist(), strict=True):
            paths[row] = _join(BACKWARD if code == NO_STAGE else codes.paths[code], paths[row])
    return ranges.with_columns(stage=pl.Series(paths, dtype=pl.String))


def _fill_backward(
    timeline: Timeline, ranges: pl.DataFrame, threads: pl.Series, stage: NDArray[np.int32], codes: _Codes
) -> bool:
    """Give the events of autograd's own threads their stage; whether any is backward for that reason alone."""
    main = _main_threads(ranges)
    rows = timeline.events.filter(
        pl.col("thread").is_in(threads.implode()) & ~pl.col("thread").is_in(list(main.values()))
    ).select("id", "process", "start_ns")
    rows = rows.filter(pl.Series(stage[rows["id"].to_numpy()] == NO_STAGE))
    only_backward = False
    for (process,), own in rows.group_by("process"):
        waiting = ranges.filter(pl.col("thread") == main.get(process, -1))
        outer = _open_at(waiting, own["start_ns"].to_numpy(), codes)
        if (outer == NO_STAGE).any():
            only_backward = True
            outer[outer == NO_STAGE] = codes.of(BACKWARD)
        stage[own["id"].to_numpy()] = outer
    return only_backward


def _of_device(timeline: Timeline, stage: NDArray[np.int32]) -> None:
    """Device rows: the stage of their launch; without one, that of the op that is known to have asked for them."""
    asked = (
        timeline.events.filter(pl.col("device").is_not_null())
        .select("id", by=pl.coalesce("launch_id", "op_id"))
        .drop_nulls()
    )
    stage[asked["id"].to_numpy()] = stage[asked["by"].to_numpy()]


def _fill_scopes(by_scope: pl.DataFrame, stage: NDArray[np.int32], codes: _Codes) -> bool:
    """Device rows with a named scope: those that the user named, and those without a better stage.

    A mark in the program is a part of the stage that launched it.
    """
    if not by_scope.height:
        return False
    ids = by_scope["id"].to_numpy()
    marked = by_scope["marked"].to_numpy()
    chosen = by_scope["by_user"].to_numpy() | marked | (stage[ids] == NO_STAGE)
    if not chosen.any():
        return False
    inside = marked & (stage[ids] != NO_STAGE)
    # Few distinct pairs of an outer stage and a mark, whatever the number of rows.
    joined: dict[tuple[int, str], int] = {}
    new = []
    outer_codes, paths = stage[ids[chosen]].tolist(), by_scope["stage"].gather(np.flatnonzero(chosen)).to_list()
    for outer, path, part in zip(outer_codes, paths, inside[chosen].tolist(), strict=True):
        key = (outer if part else NO_STAGE, path)
        if key not in joined:
            joined[key] = codes.of(_join(codes.paths[outer], path) if part else path)
        new.append(joined[key])
    stage[ids[chosen]] = new
    return True
