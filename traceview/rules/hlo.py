"""What XProf records about an XLA op beside its name: category and text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from traceview.xla import CATEGORY_KEYS, PATH_KEYS, TEXT_KEYS, with_detail

if TYPE_CHECKING:
    from traceview.rules.base import Facts

__all__ = ["CATEGORY_KEYS", "PATH_KEYS", "TEXT_KEYS", "with_detail", "xla_rows"]


def xla_rows(facts: Facts) -> pl.DataFrame:
    """Device work that XLA ops did: ops of a TPU or a CPU, and the kernels of a GPU that name their op."""
    named = facts.timeline.details.get("hlo_op")
    is_op = pl.col("kind") == "xla_op"
    if named is not None:
        is_op |= (pl.col("kind") == "kernel") & pl.col("id").is_in(named["id"].implode())
    return facts.work.filter(is_op)
