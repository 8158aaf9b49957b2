"""The devices of a trace beside each other: which one works least, and what it does instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.dashboards.views.overview import has_steps
from traceview.dashboards.views.table import Show, Table, in_ms
from traceview.render.names import plain
from traceview.render.units import percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.accounting import DeviceTime
    from traceview.report import Report

_ALIKE: Final = 0.01
"""Shares of busy time that are no further apart are told as one."""


def devices_table(report: Report) -> Table | None:
    """What each device did in the steps, least busy first; ``None`` where no two devices are recorded.

    The shares of a row are of the wall time of the device's own steps and add up to all of it.
    """
    devices = sorted(_devices(report), key=lambda one: (_busy(one), one.device))
    if len(devices) < 2:
        return None
    labels = {one.device: one.label for one in report.trace.devices}
    idle = [sum(one.idle_by_cause.values()) if one.idle_by_cause else one.idle_ns for one in devices]
    step = "step ms" if has_steps(report) else "recorded ms"
    frame = pl.DataFrame(
        {
            "device": [plain(labels.get(one.device, str(one.device))) for one in devices],
            step: in_ms(one.wall_ns / one.steps if one.steps else None for one in devices),
            "busy": [_busy(one) for one in devices],
            "compute": [_of(one, one.compute_ns) for one in devices],
            "exposed comm.": [_of(one, one.collective_ns) for one in devices],
            "exposed copies": [_of(one, one.copy_ns) for one in devices],
            "waits for async. work": [_of(one, one.async_wait_ns) for one in devices],
            "idle": [_of(one, ns + one.unattributed_ns) for one, ns in zip(devices, idle, strict=True)],
            "idle most for": [_cause(one) for one in devices],
        },
        schema_overrides={step: pl.Float64},
    )
    shows = {name: Show.SHARE for name, kind in frame.schema.items() if kind == pl.Float64}
    return Table(frame, {**shows, step: Show.MS, "device": Show.MEDIUM}, (_spread(frame),))


def _spread(frame: pl.DataFrame) -> str:
    """How far the devices are apart, in a sentence."""
    least, most = frame.row(0, named=True), frame.row(-1, named=True)
    if most["busy"] - least["busy"] <= _ALIKE:
        return f"{'Both' if frame.height == 2 else f'All {frame.height:,}'} devices are about equally busy."
    return (
        f"Of {frame.height:,} devices, {least['device']} is busy least ({percent(least['busy'])}) and {most['device']} "
        f"most ({percent(most['busy'])})."
    )


def _devices(report: Report) -> Sequence[DeviceTime]:
    return (report.time.devices or ()) if report.time else ()


def _cause(one: DeviceTime) -> str:
    """The cause of most of its idle time, if one is known."""
    causes = {name: ns for name, ns in one.idle_by_cause.items() if ns}
    return max(causes, key=lambda name: causes[name], default="")


def _busy(one: DeviceTime) -> float:
    return _of(one, one.busy_ns)


def _of(one: DeviceTime, ns: int) -> float:
    return ns / one.wall_ns if one.wall_ns else 0.0
