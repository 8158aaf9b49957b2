"""Which steps at the start of a recording are warm-up, and by what evidence.

Only steps at the start can be warm-up: compilation in a later step is a fault and stays in the figures. So is a second
compilation: where code was compiled in one step, the warm-up ends before the next step that compiles. A step is warm-up
if its name says so, if something was compiled, captured or loaded for a noticeable part of it, or if it lasts more than
twice the median of the steps after it. A step that is faster than those is none: it may be the only one that went well.
What goes on for more than half of the steps is no warm-up, but for the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from traceview.host_calls import host_union_ns, named

if TYPE_CHECKING:
    from traceview.timeline import Timeline

_NOTICEABLE: Final = 0.05
"""Compilation or loading that takes less of a step than this does not make it warm-up."""

_OUTLIER: Final = 2.0
_NAMED: Final = "its name says so"
_LEAST_LATER: Final = 2

_COMPILED: Final = "compiled"

_CAUSES: Final = (
    (_COMPILED, ("compile",), "."),
    ("captured a graph", ("api",), r"^(?:cuda|cu|hip)(?:StreamEndCapture|GraphInstantiate)\w*$"),
    ("loaded kernels", ("api", "overhead"), r"(?i)lazy function loading|ModuleLoad|LibraryLoad"),
    ("autotuned", ("op", "annotation", "compile"), r"(?i)autotun|benchmark_"),
)


def mark_warm_up(timeline: Timeline, steps: pl.DataFrame) -> pl.DataFrame:
    """Steps with ``warmup`` and ``why``.

    Args:
        timeline: Linked.
        steps: Columns ``process``, ``name``, ``start_ns``, ``end_ns``, ``host_start_ns``, ``host_end_ns``, by process
            and time.

    Returns:
        The same rows; ``warmup`` is null for the only step of a process: nothing tells it apart.
    """
    causes = [(what, named(timeline, kinds, pattern)) for what, kinds, pattern in _CAUSES]
    warm: list[bool | None] = []
    why: list[str | None] = []
    for _, own in steps.group_by("process", maintain_order=True):
        found = _of_process(own, causes)
        warm += [None] * own.height if own.height == 1 and found == [None] else [one is not None for one in found]
        why += found
    return steps.with_columns(warmup=pl.Series(warm, dtype=pl.Boolean), why=pl.Series(why, dtype=pl.String))


def _of_process(own: pl.DataFrame, causes: list[tuple[str, pl.DataFrame]]) -> list[str | None]:
    """For each step of a process why it is warm-up, or ``None``; never all of several steps."""
    walls = (own["end_ns"] - own["start_ns"]).to_numpy()
    found: list[str | None] = [None] * own.height
    compiled = False
    compiling = _compiling(own, dict(causes)[_COMPILED])
    for at, row in enumerate(own.iter_rows(named=True)):
        evidence = _evidence(row, causes)
        again = compiled and evidence is not None and evidence.startswith(_COMPILED)
        compiled |= evidence is not None and evidence.startswith(_COMPILED)
        reason = evidence or _outlier(walls, at, own["phase"].to_list(), compiling)
        if again or reason is None or (at + 1 == own.height and own.height > 1):
            break
        found[at] = reason
    flagged = [at for at, reason in enumerate(found) if reason not in {None, _NAMED}]
    if len(flagged) * 2 > own.height > _LEAST_LATER:
        # What goes on for most of the recording is how the program runs: it recompiles, it does not warm up.
        for at in flagged[1:]:
            found[at] = None
    return found


def _evidence(row: dict[str, object], causes: list[tuple[str, pl.DataFrame]]) -> str | None:
    if "warmup" in str(row["name"]).lower():
        return _NAMED
    start, end = int(row["host_start_ns"]), int(row["host_end_ns"])  # type: ignore[call-overload]
    parts = []
    for what, events in causes:
        inside = events.filter(
            pl.col("process").eq_missing(pl.lit(row["process"], pl.UInt32))
            & (pl.col("start_ns") >= start)
            & (pl.col("start_ns") < end)
        )
        ns = host_union_ns(inside) if inside.height else 0
        if ns > _NOTICEABLE * (end - start):
            parts.append(f"{what} for {ns / 1e6:.1f} ms")
    return ", ".join(parts) or None


def _compiling(own: pl.DataFrame, events: pl.DataFrame) -> np.ndarray:
    """For each step whether compilations took a noticeable part of it; spans within others count once more."""
    mine = events.filter(pl.col("process").eq_missing(pl.lit(own["process"][0], pl.UInt32))).sort("start_ns")
    done = np.concatenate([[0], np.cumsum(mine["dur_ns"].to_numpy())])
    starts, ends = own["host_start_ns"].to_numpy(), own["host_end_ns"].to_numpy()
    first, stop = (np.searchsorted(mine["start_ns"].to_numpy(), at) for at in (starts, ends))
    return np.asarray(done[stop] - done[first] > _NOTICEABLE * (ends - starts))


def _outlier(walls: np.ndarray, at: int, phases: list[str | None], compiling: np.ndarray) -> str | None:
    """A step that took longer than the ones after it.

    Steps of other phases of a serving engine are no measure for it, nor are steps that compile.
    """
    alike = [other > at and phases[other] == phases[at] and not compiling[other] for other in range(len(walls))]
    later = walls[alike]
    if len(later) < _LEAST_LATER:
        return None
    usual = float(np.median(later))
    if walls[at] > _OUTLIER * usual:
        return f"{walls[at] / usual:.1f} times the median of the steps after it" if usual else None
    return None
