"""What XProf records about an XLA op beside its name: category and text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

if TYPE_CHECKING:
    from traceview.timeline import Timeline

CATEGORY_KEYS: Final = ("hlo_category", "category")
"""Detail names under which a category is recorded, best first."""

TEXT_KEYS: Final = ("long_name", "hlo_text", "expression")
"""Detail names under which the text of the instruction is recorded, best first."""

PATH_KEYS: Final = ("tf_op", "op_name")
"""Detail names under which the framework path of the op is recorded, best first."""


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
