"""Planes that several tests of authored spaces write."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sample_traces.xspace_bytes import Plane, Space


def gpu(space: Space, **stats: object) -> Plane:
    """An empty plane of an NVIDIA GPU of compute capability 9.0."""
    return space.plane(
        "/device:GPU:0", 1, device_vendor="NVIDIA", compute_cap_major=9, compute_cap_minor=0, core_count=132, **stats
    )
