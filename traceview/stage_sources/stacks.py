"""Stages from recorded Python stacks: functions of known programs, then modules."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.knowledge.frame_names import FRAME, MODULE, PIPELINE, stage_of_frame, stage_of_module
from traceview.stage_sources.found import MOST_NAMES, NO_RANGES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from traceview.stage_sources.found import HostTree

_SIGNIFICANT: Final = 0.05
"""A module that takes less host time than this share of its level does not make the level a split."""

_MOST_LEVELS: Final = 8
_REPEATED: Final = 2
_FRAME: Final = re.compile(FRAME)


def functions(tree: HostTree) -> pl.DataFrame:
    """Calls of functions that are stages of a known program, as stage ranges."""
    names = tree.names(("python",))
    names = names.filter(names.str.contains(FRAME.replace("?P<", "?<")))
    stages = {}
    for name in names.to_list():
        found = _FRAME.match(name)
        stage = stage_of_frame(found["file"], found["function"]) if found else None
        if stage:
            stages[name] = stage
    if not stages:
        return NO_RANGES
    told = pl.DataFrame({"name": list(stages), "stage": list(stages.values())})
    rows = tree.named(("python",), told["name"])
    return rows.join(told, on="name", how="inner", maintain_order="left").select("id", "stage")


def modules(tree: HostTree, free: NDArray[np.bool_]) -> pl.DataFrame:
    """Modules at the level of the call tree that splits a program into its parts, as stage ranges.

    The level is the outermost one at which at least two classes take some of the time. Modules around it are stages
    too, so that their own work has a name. A class that repeats inside one call of its parent is a layer, no part.

    Args:
        tree: The call trees.
        free: The events to look at; others belong to stages that are known better.
    """
    names = tree.names(("python",))
    rows = tree.named(("python",), names.filter(names.str.starts_with("nn.Module: ")))
    rows = rows.filter(pl.Series(free).gather(rows["id"]))
    if not rows.height:
        return NO_RANGES
    rows = rows.with_columns(
        stage=pl.col("name").str.extract(MODULE.replace("?P<class>", "")).fill_null(pl.col("name"))
    )
    ids = rows["id"].to_numpy()
    outer = tree.nearest(ids, strict=True)[ids]
    rows = rows.with_columns(outer=pl.Series(outer).cast(pl.Int64))
    level = rows.filter(pl.col("outer") < 0)
    named = _in_pipelines(tree, level)
    if named is not None:
        return named
    levels = [level]
    for _ in range(_MOST_LEVELS):
        main = _only_significant(levels[-1])
        if main is None:
            break
        calls = levels[-1].filter(pl.col("stage") == main)
        inner = rows.filter(pl.col("outer").is_in(calls["id"].cast(pl.Int64).implode()))
        if not inner.height or inner["stage"].n_unique() > MOST_NAMES:
            break
        below = _only_significant(inner)
        if below is not None and inner.filter(pl.col("stage") == below).height >= _REPEATED * calls.height:
            break
        levels.append(inner)
    if levels[0]["stage"].n_unique() > MOST_NAMES:
        return NO_RANGES
    return pl.concat(levels).select("id", "stage").sort("id")


def _only_significant(level: pl.DataFrame) -> str | None:
    """The one class of a level that takes nearly all of its time; ``None`` if several do, or none."""
    weights = level.group_by("stage").agg(pl.col("dur_ns").sum())
    heavy = weights.filter(pl.col("dur_ns") >= _SIGNIFICANT * int(weights["dur_ns"].sum()))
    return str(heavy["stage"][0]) if heavy.height == 1 else None


def _in_pipelines(tree: HostTree, level: pl.DataFrame) -> pl.DataFrame | None:
    """The outermost modules under a diffusion pipeline, by what they are there; ``None`` if there is no pipeline."""
    names = tree.names(("python",))
    files = names.str.extract(r"^([^()]*)\(")
    pipelines = names.filter(files.str.contains(PIPELINE.pattern).fill_null(value=False))
    calls = tree.named(("python",), pipelines)["id"].to_numpy()
    if not len(calls):
        return None
    inside = tree.nearest(calls)[level["id"].to_numpy()] >= 0
    stages = [
        stage_of_module(name, in_pipeline=bool(within)) or name
        for name, within in zip(level["stage"], inside, strict=True)
    ]
    if "denoise" not in stages or len(set(stages)) > MOST_NAMES:
        return None
    return level.select("id", stage=pl.Series(stages, dtype=pl.String)).sort("id")
