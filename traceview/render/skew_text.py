"""Waiting in collectives as a table that text and Markdown share, and as a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traceview.collective_skew import skew_by_device
from traceview.render.grids import Grid
from traceview.render.page import Column
from traceview.render.units import durations, percent

if TYPE_CHECKING:
    from traceview.collective_skew import CollectiveSkew
    from traceview.report_parts import Device

_WORTH_A_SENTENCE: Final = 0.05
_MEANING: Final = (
    "The rank that comes last to a collective does not wait: its duration is the transfer, what others take longer is "
    "waiting. Only durations are compared, no clocks. exposed: the device did nothing else."
)


def skew_sentence(skew: CollectiveSkew, span_ns: int, described: dict[int, Device]) -> str:
    """For whom ranks waited, if it is much; else nothing.

    Args:
        skew: Waiting in collectives.
        span_ns: Time of all devices, first to last work, ns.
        described: The devices.
    """
    if not span_ns or skew.exposed_ns < _WORTH_A_SENTENCE * span_ns:
        return ""
    by_device = skew_by_device(skew).sort("late", "device", descending=[True, False])
    late, device, collectives = by_device.select("late", "device", "collectives").row(0)
    return (
        f"Waiting in collectives for a late rank: {percent(skew.exposed_ns / span_ns)} of the time of all devices, "
        f"{_label(device, described)} came last in {late:,} of {collectives:,}."
    )


def skew_grid(skew: CollectiveSkew, described: dict[int, Device]) -> Grid | None:
    """What each rank waited; ``None`` if no collective was matched between ranks."""
    if not skew.waits.height:
        return None
    rows = list(skew_by_device(skew).iter_rows(named=True))
    keys = ("dur_ns", "wire_ns", "wait_ns", "exposed_ns")
    unit, texts = durations(row[key] for row in rows for key in keys)
    cells = iter(texts)
    return Grid(
        f"Collectives ({unit})",
        (
            Column("device"),
            *(
                Column(name, number=True)
                for name in ("matched", "came last", "total", "transfer", "waiting", "exposed")
            ),
        ),
        [
            [
                _label(row["device"], described),
                f"{row['collectives']:,}",
                f"{row['late']:,}",
                *(next(cells) for _ in keys),
            ]
            for row in rows
        ],
        (_MEANING,),
    )


def _label(device: int, described: dict[int, Device]) -> str:
    return described[device].label if device in described else f"device {device}"
