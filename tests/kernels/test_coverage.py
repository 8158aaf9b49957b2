"""How much device time of real traces the signature table knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from traceview import load
from traceview.errors import TraceviewError
from traceview.kernels import identify

if TYPE_CHECKING:
    from pathlib import Path

OWN_KERNELS = {"cloverleaf-a100.sqlite"}
"""Simulations with kernels of their own, which nobody can know by name."""


def unknown_share(path: Path) -> tuple[float, list[str]]:
    """Share of device time with a name that no row knows, and the worst of those names."""
    work = load(path).device_work
    times = work.group_by(pl.col("name").cast(pl.String)).agg(pl.col("dur_ns").sum())
    total = int(times["dur_ns"].sum())
    if not total:
        return 0.0, []
    unknown = times.join(identify(times["name"]), on="name").filter(pl.col("family") == "unknown").sort("dur_ns")
    return int(unknown["dur_ns"].sum()) / total, [name[:120] for name in unknown["name"].tail(5)]


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["pytorch", "nsys", "xprof"])
def test_at_least_98_percent_of_device_time_is_known(corpus: Path, folder: str) -> None:
    short: dict[str, tuple[float, list[str]]] = {}
    read = 0
    for path in sorted((corpus / folder).iterdir()):
        try:
            share, worst = unknown_share(path)
        except TraceviewError:
            continue
        read += 1
        if share > 0.02 and path.name not in OWN_KERNELS:
            short[path.name] = (share, worst)
    if not read:
        pytest.skip(f"no reader for the traces in {folder}")
    assert short == {}
