"""Which lines of a profile are whose: host threads, lanes of a device, or lines that a viewer derived from others.

Source: xla/tsl/profiler/utils/xplane_schema.cc and openxla/xprof ``derived_timeline.cc``. On a GPU only ``Stream #``
lines are recorded and all others repeat them in other groupings; on a TPU lines of the same names are the recording
itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .space import Line, Plane

HOST_PLANES: Final = (
    "/host:CPU", "/host:CUPTI", "/host:ROCTRACER", "/host:TPU-runtime", "/host:python-tracer", "/host:NVTX-CUPTI",
)  # fmt: skip
METADATA_PLANE: Final = "/host:metadata"
ENVIRONMENT_PLANE: Final = "Task Environment"

_GPU: Final = re.compile(r"^/device:GPU:([0-9]{1,9})$")
_TPU: Final = re.compile(r"^/device:TPU:([0-9]{1,9})( SparseCore\D*([0-9]{1,9}))?$")
_STREAM: Final = re.compile(r"^Stream #([0-9]{1,18})(?![0-9])")
_DERIVED: Final = frozenset(
    {
        "Steps", "XLA Modules", "XLA Ops", "XLA TraceMe", "TensorFlow Ops", "TensorFlow Name Scope", "Framework Ops",
        "Framework Name Scope", "Source code", "Source Code", "Launch Stats", "Async XLA Ops", "Kernel Launch",
    }
)  # fmt: skip
_FIRST_DERIVED_ID: Final = 0xDEADBEEF
_THREAD_NUMBER: Final = re.compile(r"/(-?[0-9]{1,18})(?=/|$)")
_MOST_THREAD_ID: Final = 1 << 32
"""Numbers beyond are hashes that the profiler made up, not thread ids of the system."""


class Owner(StrEnum):
    """What a plane belongs to."""

    GPU = "gpu"
    TPU = "tpu"
    HOST = "host"
    NONE = "none"
    """Holds no events of its own: programs, environment."""
    OTHER = "other"


class Lane(StrEnum):
    """What a line of a device holds."""

    WORK = "work"
    """Kernels and copies of one stream."""
    OPS = "ops"
    ASYNC = "async"
    MODULES = "modules"
    STEPS = "steps"
    SCOPES = "scopes"
    WAITS = "waits"
    COUNTERS = "counters"
    OTHER = "other"
    DERIVED = "derived"
    """Repeats what another line of the plane holds."""


@dataclass(frozen=True, slots=True)
class Place:
    """Owner of a plane, and for a device its number and, if it is one, that of the sparse core on it."""

    owner: Owner
    ordinal: int = 0
    sparse_core: int | None = None


def place_of(plane: str) -> Place:
    """What a plane belongs to, by its name."""
    if gpu := _GPU.match(plane):
        return Place(Owner.GPU, int(gpu[1]))
    if tpu := _TPU.match(plane):
        return Place(Owner.TPU, int(tpu[1]), int(tpu[3]) if tpu[3] else None)
    if plane in (METADATA_PLANE, ENVIRONMENT_PLANE):
        return Place(Owner.NONE)
    return Place(Owner.HOST if plane in HOST_PLANES else Owner.OTHER)


_ODD_DEVICE: Final = re.compile(r"^/device:(GPU|TPU):([0-9]{10}|[0-9]+ SparseCore\D*[0-9]{10})")


def odd_device(plane: str) -> str | None:
    """``"GPU"`` or ``"TPU"`` if a plane is one whose number cannot be true."""
    found = _ODD_DEVICE.match(plane)
    return found[1] if found else None


_TPU_LANES: Final = {
    "XLA Ops": Lane.OPS, "Sparse Core Ops": Lane.OPS, "XLA Modules": Lane.MODULES, "Sparse Core Modules": Lane.MODULES,
    "Async XLA Ops": Lane.ASYNC, "Steps": Lane.STEPS, "Sparse Core Steps": Lane.STEPS, "XLA TraceMe": Lane.WAITS,
    "Framework Ops": Lane.SCOPES, "Framework Name Scope": Lane.SCOPES, "TensorFlow Ops": Lane.SCOPES,
    "TensorFlow Name Scope": Lane.SCOPES, "Source code": Lane.SCOPES, "Source Code": Lane.SCOPES,
    "Tensor Core Sync Flag": Lane.WAITS, "Sparse Core Syncs": Lane.WAITS, "_counters_": Lane.COUNTERS,
}  # fmt: skip


_COUNTERS: Final = re.compile(r"^counters_[0-9]+$")
_WORK_LINE: Final = re.compile(r"^Stream #[0-9]")
"""Also where the number is no number of a stream: what ran on it is work."""


def lane_of(place: Place, line: Line) -> Lane:
    """What a line of a device plane holds."""
    if place.owner is Owner.TPU:
        # Hardware counters also come as ``counters_0``, seen in profiles of v5p and v6e pods.
        return Lane.COUNTERS if _COUNTERS.match(line.name) else _TPU_LANES.get(line.name, Lane.OTHER)
    if _WORK_LINE.match(line.name):
        return Lane.WORK
    if line.name == "_counters_":
        return Lane.COUNTERS
    if line.name in _DERIVED or _FIRST_DERIVED_ID <= line.id & 0xFFFFFFFF < _FIRST_DERIVED_ID + 32:
        return Lane.DERIVED
    return Lane.OTHER


def stream_of(line: Line) -> int:
    """Stream number of a line of a device: the one in its name, else the number of the line."""
    named = _STREAM.match(line.name)
    return int(named[1]) if named else line.id


def thread_of(plane: Plane, line: Line) -> tuple[int | None, str]:
    """Thread id and name of a host line; the id is ``None`` where the profiler made one up."""
    named = _THREAD_NUMBER.search(line.name)
    number = int(named[1]) if named else line.id
    name = _THREAD_NUMBER.sub("", line.name) or (f"thread {number}" if number else plane.name)
    if place_of(plane.name).owner is Owner.OTHER:
        name = f"{plane.name} {name}"
    return (number if 0 < number < _MOST_THREAD_ID else None), name
