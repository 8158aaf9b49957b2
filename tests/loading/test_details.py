"""Arguments whose values are integers in one file and text in another."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from authored_timeline import kernel, unlinked
from traceview.merging import merge


def with_detail(value, dtype):
    one = unlinked(kernel("k", 0, 1))
    frame = pl.DataFrame({"id": pl.Series([0], dtype=pl.UInt32), "value": pl.Series([value], dtype=dtype)})
    return replace(one, details={"size": frame})


def test_integers_and_text_are_kept_apart():
    merged = merge([with_detail(7, pl.Int64), with_detail('"big"', pl.Categorical)])
    merged.validate()
    assert merged.details["size"].rows() == [(0, 7)]
    assert merged.details["size (text)"].rows() == [(1, '"big"')]
