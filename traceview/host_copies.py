"""Copies between host and device that only host threads recorded.

The profiler of a GPU records each copy on the device. XProf records the copies to and from a TPU on the host only: on a
thread of the run time while the bytes move (``tpu::System::TransferToDevice``), or on the thread that called for it
(``DevicePut``).

Sources: names of host events in recorded XProf profiles of JAX 0.4 to 0.10 and libtpu, see
``parsers/xprof/host_events.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

if TYPE_CHECKING:
    from traceview.timeline import Timeline

TO_DEVICE: Final = r"^DevicePut|ToDevice|ToInfeed|H2D"
TO_HOST: Final = r"FromDevice|FromOutfeed|D2H"
_DEVICE_RECORDS: Final = r"(?i)[HD]to[HD]|[HD]2[HD]|Host|Pageable|Pinned"
_WITHIN_DEVICE: Final = r"(?i)DtoD|D2D|Device-to-Device|DeviceToDevice|Device -> Device"


def host_copies(timeline: Timeline) -> pl.DataFrame:
    """Copies that were recorded on host threads: ``id``, ``process``, ``to_device``, ``start_ns``, ``end_ns``.

    By start. ``to_device`` is null where the name does not tell the direction.

    Args:
        timeline: As loaded.
    """
    rows = timeline.events.select("id", "process", "kind", "name", "thread", "device", "start_ns", "dur_ns").filter(
        (pl.col("kind") == "memcpy") & pl.col("thread").is_not_null() & pl.col("device").is_null()
    )
    names = rows["name"].unique()
    text = names.cast(pl.String)
    known = pl.DataFrame({"name": names}).with_columns(
        to_device=pl.when(text.str.contains(TO_HOST))
        .then(pl.lit(value=False))
        .when(text.str.contains(TO_DEVICE))
        .then(pl.lit(value=True))
    )
    return (
        rows.join(known, on="name", how="left", maintain_order="left")
        .select("id", "process", "to_device", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"))
        .sort("start_ns", "id")
    )


def only_on_host(timeline: Timeline) -> pl.DataFrame:
    """The :func:`host_copies` of runs whose devices record no copy from or to the host themselves.

    Where they do, the host's events are the same copies once more.
    """
    found = host_copies(timeline)
    if not found.height:
        return found
    copies = timeline.device_work.filter(pl.col("kind") == "memcpy")
    names = copies["name"].unique()
    text = names.cast(pl.String)
    with_host = names.filter(text.str.contains(_DEVICE_RECORDS) & ~text.str.contains(_WITHIN_DEVICE))
    recorded = copies.filter(pl.col("name").is_in(with_host.implode()))["device"].unique()
    runs = timeline.devices.filter(pl.col("device").is_in(recorded.implode()))["run"].unique()
    silent = timeline.processes.filter(~pl.col("run").is_in(runs.implode()))["process"]
    return found.filter(pl.col("process").is_in(silent.implode()))


def devices_without_copies(timeline: Timeline) -> list[int]:
    """Devices that worked and of which copies from and to the host are recorded on the host alone, ascending.

    Where the host recorded copies and the device none, what such a copy costs the device is not in its own account.
    """
    found = only_on_host(timeline)
    # A copy from host to host is no copy of a device.
    known = found.filter(pl.col("to_device").is_not_null())
    if not known.height:
        return []
    runs = timeline.processes.filter(pl.col("process").is_in(known["process"].unique().implode()))["run"].unique()
    worked = timeline.device_work["device"].unique()
    chosen = timeline.devices.filter(pl.col("run").is_in(runs.implode()) & pl.col("device").is_in(worked.implode()))
    return chosen["device"].sort().to_list()
