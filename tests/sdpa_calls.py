"""Calls of scaled dot-product attention as a profiler records them, from a few words."""

from __future__ import annotations

import json
from dataclasses import replace
from math import prod
from typing import Any

from traceview.eligibility import Device, SdpaCall, read_call

SDPA = "aten::scaled_dot_product_attention"

A100 = Device("cuda", 8, 0, "NVIDIA A100-SXM4-80GB")
RTX4090 = Device("cuda", 8, 9, "NVIDIA GeForce RTX 4090")
H100 = Device("cuda", 9, 0, "NVIDIA H100 80GB HBM3")
B200 = Device("cuda", 10, 0, "NVIDIA B200")
RTX5090 = Device("cuda", 12, 0, "NVIDIA GeForce RTX 5090")
T4 = Device("cuda", 7, 5, "Tesla T4")
SOME_GPU = Device("cuda")
MI300 = Device("rocm", 9, 4, "AMD Instinct MI300X")
RX7900 = Device("rocm", 11, 0, "AMD Radeon RX 7900 XTX")
CPU = Device("cpu")

Q = [2, 16, 128, 64]
"""Batch × heads × tokens × head size of most calls here."""


def contiguous(dims: list[int]) -> list[int]:
    return [prod(dims[axis + 1 :]) for axis in range(len(dims))]


def recorded(
    query: Any = Q,
    key: Any = None,
    value: Any = None,
    *,
    dtype: str = "c10::BFloat16",
    mask: Any = None,
    mask_dtype: str = "bool",
    dropout: str = "0.",
    causal: str = "False",
    gqa: str = "False",
    strides: Any = None,
    without: tuple[str, ...] = (),
    arguments: int = 8,
) -> dict[str, str | None]:
    """The JSON texts that Kineto writes for one call; ``without`` names the fields that are not recorded.

    ``arguments``: 6 in PyTorch 2.0, 7 up to 2.4, 8 since.
    """
    key = key or query
    dims = [query, key, value or key, mask or [], [], [], [], []]
    fields = {
        "dims": dims,
        "dtypes": [dtype, dtype, dtype, mask_dtype if mask else "", "Scalar", "Scalar", "", "Scalar"],
        "strides": strides or [contiguous(sizes) for sizes in dims],
        "concrete": ["", "", "", "", dropout, causal, "", gqa],
    }
    return {name: None if name in without else json.dumps(value[:arguments]) for name, value in fields.items()}


def call(*dims: Any, training: bool | None = None, **more: Any) -> SdpaCall:
    read = read_call(SDPA, recorded(*dims, **more))
    assert read is not None
    return replace(read, training=training)
