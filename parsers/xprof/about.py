"""What a profile says of itself: devices, versions, clock, and everything that limits what it shows.

Host names, users, command lines and environments are not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from traceview import schema
from traceview.quantities import percent
from traceview.timeline import Note, RunInfo, Trust

from .lanes import ENVIRONMENT_PLANE, METADATA_PLANE, Owner, Place, odd_device
from .stats import number, whole, words

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from traceview.timeline import Count

    from .space import Plane, Space

_VERSIONS: Final = ("jaxlib_version", "libtpu_version", "cuda_version", "rocm_version", "tpu_version", "cudnn_version")
_VENDORS: Final = {"nvidia": "nvidia", "amd": "amd", "intel": "intel"}
_PEAKS: Final = (
    "peak_teraflops_per_second", "peak_hbm_bw_gigabytes_per_second", "peak_vmem_rd_bw_gigabytes_per_second",
    "peak_vmem_wr_bw_gigabytes_per_second", "memory_bandwidth", "clock_rate", "core_count",
)  # fmt: skip
_SHOWN: Final = 300
_MOST_MESSAGES: Final = 5


def device_row(plane: Plane, place: Place, *, key: int, run: int) -> dict[str, Any]:
    """A device as its plane describes it."""
    stats = plane.stats
    if place.owner is Owner.TPU:
        kind = words(stats, "device_type_string")
        # A profile of the viewer's kind does not name the chip, but the plane says that it is a TPU.
        name = kind or "TPU"
        if place.sparse_core is not None:
            name = f"{name} SparseCore {place.sparse_core}"
        return {"device": key, "run": run, "ordinal": place.ordinal, "name": name, "vendor": "google"}
    major, minor = whole(stats, "compute_cap_major"), whole(stats, "compute_cap_minor")
    vendor = _VENDORS.get((words(stats, "device_vendor") or "").lower())
    # Only NVIDIA wrote these planes before the vendor was recorded.
    if vendor is None and major is not None:
        vendor = "nvidia"
    return {
        "device": key,
        "run": run,
        "ordinal": place.ordinal,
        "name": words(stats, "gpu_device_name") or words(stats, "device_type_string"),
        "vendor": vendor,
        "compute_major": _fits(major, 31),
        "compute_minor": _fits(minor, 31),
        "memory_bytes": _fits(whole(stats, "memory_size"), 63),
        "sm_count": _fits(whole(stats, "core_count"), 31),
    }


def _fits(value: int | None, bits: int) -> int | None:
    return value if value is not None and 0 <= value < 1 << bits else None


def cpu_row(*, key: int, run: int, ordinal: int) -> dict[str, Any]:
    """The CPU as the device of XLA."""
    return {"device": key, "run": run, "ordinal": ordinal, "name": "CPU (XLA)"}


def devices_frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Frame of :data:`traceview.schema.DEVICES`."""
    return pl.DataFrame(rows, schema=schema.DEVICES.dtypes)


def run_info(space: Space, path: Path, *, origin_ns: int) -> RunInfo:
    """Where the file came from."""
    metadata = next((plane.stats for plane in space.planes if plane.name == METADATA_PLANE), {})
    jax = words(metadata, "jax_version")
    facts: dict[str, Any] = {name: value for name in _VERSIONS if (value := words(metadata, name))}
    peaks = {}
    for plane in space.planes:
        if plane.name.startswith("/device:"):
            told = {name: peak for name in _PEAKS if (peak := number(plane.stats, name))}
            if told:
                peaks[plane.name] = told
    if peaks:
        facts["peaks"] = peaks
    return RunInfo(
        path=path,
        format="xprof",
        producer="JAX profiler" if jax else "XProf",
        producer_version=jax,
        origin_unix_ns=_origin_unix_ns(space, origin_ns),
        metadata=facts,
    )


_EPOCH_NS: Final = range(946_684_800 * 10**9, 4_102_444_800 * 10**9)
"""2000 to 2100: a time in here is Unix time."""


def _origin_unix_ns(space: Space, origin_ns: int) -> int | None:
    if origin_ns in _EPOCH_NS:
        return origin_ns
    environment = next((plane.stats for plane in space.planes if plane.name == ENVIRONMENT_PLANE), {})
    started = whole(environment, "profile_start_time")
    return started + origin_ns if started is not None and started in _EPOCH_NS else None


def message_notes(space: Space) -> list[Note]:
    """What the profiler itself reported, and where the file breaks off."""
    notes = []
    for kind, messages, trust in (("error", space.errors, Trust.LIMITED), ("warning", space.warnings, Trust.LIMITED)):
        for message in messages[:_MOST_MESSAGES]:
            shown = " ".join(message.split())[:_SHOWN]
            notes.append(
                Note(
                    f"profiler-{kind}",
                    f"The profiler recorded an {kind}: {shown}"
                    if kind == "error"
                    else f"The profiler recorded a {kind}: {shown}",
                    trust,
                )
            )
        if len(messages) > _MOST_MESSAGES:
            notes.append(
                Note(f"profiler-{kind}", f"{len(messages) - _MOST_MESSAGES} more {kind}s of the profiler.", trust)
            )
    for plane in space.planes:
        dropped = words(plane.stats, "dropped_traces")
        if dropped and dropped != "0":
            text = (
                f"{plane.name} dropped events because its buffers were full ({dropped[:60]}): times are lower bounds."
            )
            notes.append(Note("profiler-dropped", text, Trust.POOR))
    if space.cut_at is not None:
        lost = f" {space.cut_plane} is left out." if space.cut_plane else ""
        n = len(space.planes)
        whole = "1 plane is whole" if n == 1 else f"{n:,} planes are whole"
        text = f"The file breaks off at byte {space.cut_at:,}: {whole}.{lost}"
        notes.append(Note("cut-off", text, Trust.POOR))
    return notes


_MOST_LOST: Final = 0.05
"""With more of the device work lost than this, totals are lower bounds at best."""


def loss_notes(counts: Mapping[str, Count], device_lost: int, device_whole: int) -> list[Note]:
    """What could not be read of the events, and how far the rest can be believed.

    Args:
        counts: What was left out, by kind.
        device_lost: How many rows of device work were lost.
        device_whole: How many there are with them.
    """
    lost = {kind: count.n for kind, count in sorted(counts.items()) if kind.startswith("lost-") and count.n}
    if not lost:
        return []
    kinds = ", ".join(f"{kind} {n:,}" for kind, n in lost.items())
    text = f"Parts of the profile could not be read ({kinds})"
    if not device_lost:
        return [Note("unreadable-events", f"{text}.", Trust.LIMITED)]
    share = device_lost / device_whole
    are = "is" if device_lost == 1 else "are"
    text += f"; {device_lost:,} of {device_whole:,} device events ({percent(share)}) {are} lost"
    much = share > _MOST_LOST
    end = "totals are lower bounds" if much else "totals may be too low"
    return [Note("unreadable-events", f"{text}: {end}.", Trust.POOR if much else Trust.LIMITED)]


def odd_device_notes(planes: Mapping[str, int]) -> list[Note]:
    """What to say of devices whose number cannot be true: name of the plane to how many events it has."""
    if not planes:
        return []
    kinds = " and ".join(sorted({odd_device(name) or "" for name in planes}))
    count, events = len(planes), sum(planes.values())
    text = (
        f"The number of {count:,} {kinds}{'s' if count > 1 else ''} cannot be true: {'its' if count == 1 else 'their'} "
        f"{events:,} event{'s are' if events > 1 else ' is'} read as of no device. Totals are lower bounds."
    )
    return [Note("device-number", text, Trust.POOR)]
