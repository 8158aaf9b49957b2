"""Stages from annotations: explicit marks, labels of known frameworks, and the user's own words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from traceview import profiler_steps
from traceview.capture_info import MARK_PREFIX
from traceview.knowledge.range_names import RangeKind, RangeName, is_diffusion_part, read_range_name
from traceview.stage_sources.found import MOST_NAMES, NO_RANGES

if TYPE_CHECKING:
    from traceview.stage_sources.found import HostTree


@dataclass(frozen=True, slots=True)
class Labels:
    """What the annotations of a trace say; each frame as :data:`traceview.stage_sources.found.STAGE_RANGES`.

    Attributes:
        marks: Explicit marks.
        phases: Iterations of a serving engine.
        stages: All other stages.
        notes: What was seen and not used, in words.
    """

    marks: pl.DataFrame
    phases: pl.DataFrame
    stages: pl.DataFrame
    notes: tuple[str, ...]


def has_marks(tree: HostTree) -> bool:
    """The trace has explicit marks. Costs next to nothing: only distinct names are looked at."""
    names = tree.timeline.events.filter(pl.col("kind") == "annotation")["name"].unique().cast(pl.String)
    return bool(names.str.starts_with(MARK_PREFIX).any())


def find(tree: HostTree) -> Labels:
    """Read every annotation of the host."""
    ranges = tree.named(("annotation",))
    # A range with the number of a step is the step itself: as a stage it would be all of it.
    steps = profiler_steps.numbered(tree.timeline)["id"]
    ranges = ranges.filter(~pl.col("id").is_in(steps.implode()) | pl.col("name").str.starts_with(MARK_PREFIX))
    if not ranges.height:
        return Labels(NO_RANGES, NO_RANGES, NO_RANGES, ())
    distinct = ranges["name"].unique().to_list()
    read = {name: read_range_name(name) for name in distinct}
    if len({one.stage for one in read.values() if is_diffusion_part(one)}) < 2:
        # `transformer_forward` alone is also the word of a detector for its own part.
        read = {
            name: RangeName(one.kind, name, known=False, family="word") if is_diffusion_part(one) else one
            for name, one in read.items()
        }
    facts = pl.DataFrame(
        {
            "name": distinct,
            "stage": [read[name].stage for name in distinct],
            "kind": [read[name].kind.value for name in distinct],
            "family": [read[name].family for name in distinct],
        },
        schema_overrides={"name": pl.String, "stage": pl.String, "kind": pl.String, "family": pl.String},
    )
    told = ranges.join(facts, on="name", how="left", maintain_order="left")
    unnamed = told.filter((pl.col("family") == "mark") & (pl.col("stage") == "")).height
    told = told.filter(pl.col("stage") != "")
    marks = _few_marks(told.filter(pl.col("family") == "mark"))
    words = told.filter((pl.col("kind") == RangeKind.STAGE.value) & (pl.col("family") != "mark"))
    phases = told.filter(pl.col("kind") == RangeKind.PHASE.value)
    stages, notes = _not_layers(words)
    if unnamed:
        are = "mark names no stage and is" if unnamed == 1 else "marks name no stage and are"
        notes = (*notes, f"{unnamed:,} {are} left out: {MARK_PREFIX} must be followed by a name")
    return Labels(marks.select("id", "stage"), phases.select("id", "stage"), stages.select("id", "stage"), notes)


def _few_marks(marks: pl.DataFrame) -> pl.DataFrame:
    """Marks as written; if a loop numbers them, without the number at the end."""
    if marks["stage"].n_unique() <= MOST_NAMES:
        return marks
    short = pl.col("stage").str.replace(r"[\s_#:\-]*\d+$", "").str.strip_suffix("/")
    return marks.with_columns(stage=pl.when(short == "").then("stage").otherwise(short))


def _not_layers(words: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Drop the user's own words where they are too many to be stages; labels of frameworks stay."""
    own = words.filter(pl.col("family") == "word")
    names = own["stage"].n_unique()
    if names <= MOST_NAMES:
        return words, ()
    # Stages enclose layers and calls, so they take the most time together.
    heaviest = own.group_by("stage").agg(pl.col("dur_ns").sum()).sort("dur_ns", "stage", descending=[True, False])
    kept = heaviest.head(MOST_NAMES // 2)["stage"]
    note = f"{names:,} distinct annotations are too many to be stages; the {len(kept)} that take the most time are used"
    return words.filter((pl.col("family") != "word") | pl.col("stage").is_in(kept.implode())), (note,)
