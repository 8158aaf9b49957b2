"""Published peaks of devices: dense (never with sparsity), per device as a trace shows it.

Each row of ``devices.json`` names its sources and how it is known. A peak is a bound, never a promise.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class DevicePeak:
    """One kind of device.

    Attributes:
        id: Stable id, e.g. ``"h100-sxm"``.
        peak_flops: FLOP/s by precision: ``fp16``, ``bf16``, ``tf32``, ``fp32``, ``fp8``, …; empty if not published.
        bandwidth: Bytes/s of its memory, ``None`` if not published.
        evidence: How the figures are known.
        sources: Where they stand.
    """

    id: str
    peak_flops: Mapping[str, float]
    bandwidth: float | None
    evidence: str
    sources: tuple[str, ...]


_PRECISIONS: Final[dict[str, tuple[str, ...]]] = {
    "c10::Half": ("fp16",),
    "c10::BFloat16": ("bf16",),
    # A trace does not tell whether fp32 products may use tf32, so the faster of the two is the floor.
    "float": ("tf32", "fp32_matrix", "fp32"),
    "double": ("fp64_matrix", "fp64_tensor", "fp64"),
    "c10::Float8_e4m3fn": ("fp8",),
    "c10::Float8_e5m2": ("fp8",),
    "c10::Float8_e4m3fnuz": ("fp8",),
    "signed char": ("int8",),
}
"""Precisions in which products of a dtype may be computed."""

BYTES: Final[dict[str, int]] = {
    "c10::Half": 2, "c10::BFloat16": 2, "float": 4, "double": 8, "c10::Float8_e4m3fn": 1, "c10::Float8_e5m2": 1,
    "c10::Float8_e4m3fnuz": 1, "signed char": 1,
}  # fmt: skip
"""Size of an element by dtype name."""


@cache
def find_device(name: str | None) -> DevicePeak | None:
    """The device of a product name as a trace has it, ``None`` if it is not known.

    Args:
        name: For example ``"NVIDIA H100 80GB HBM3"``.
    """
    if not name:
        return None
    return next((peak for patterns, peak in _table() if any(one.search(name) for one in patterns)), None)


def peak_flops(device: DevicePeak, dtype: str) -> float | None:
    """The highest published peak for products of a dtype, FLOP/s; ``None`` if there is none.

    Args:
        device: The device.
        dtype: Name as PyTorch records it, e.g. ``"c10::BFloat16"``.
    """
    known = [device.peak_flops[one] for one in _PRECISIONS.get(dtype, ()) if one in device.peak_flops]
    return max(known, default=None)


@cache
def _table() -> tuple[tuple[tuple[re.Pattern[str], ...], DevicePeak], ...]:
    document = json.loads(files("traceview.knowledge").joinpath("devices.json").read_text("utf-8"))
    return tuple(
        (
            tuple(re.compile(pattern) for pattern in row["match"]),
            DevicePeak(
                id=row["id"],
                peak_flops={key: value * 1e12 for key, value in row["peak_tflops"].items()},
                bandwidth=None if row["mem_bw_gbs"] is None else row["mem_bw_gbs"] * 1e9,
                evidence=json.dumps(row["evidence"]["mem_bw_gbs"]),
                sources=tuple(row["sources"]),
            ),
        )
        for row in document["devices"]
    )
