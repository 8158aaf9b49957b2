"""Short names of tensor types, as kernels and people call them."""

from __future__ import annotations

from typing import Final

_SHORT: Final = {
    "BFloat16": "bf16",
    "Half": "fp16",
    "float": "fp32",
    "double": "fp64",
    "Float8_e4m3fn": "fp8",
    "Float8_e5m2": "fp8",
    "Float8_e4m3fnuz": "fp8",
    "Float8_e5m2fnuz": "fp8",
    "long int": "int64",
    "int": "int32",
}
"""Names of the C++ types that PyTorch's profiler records. Source: pytorch ``c10/core/ScalarType.h``, and recorded
traces, read 2026-11."""

FLOATING: Final = ("fp64", "fp32", "fp16", "bf16", "fp8")
"""Short names of the floating-point types."""


def short_dtype(name: str) -> str:
    """``c10::BFloat16`` as ``bf16``; a name that is not known stays."""
    bare = name.removeprefix("c10::")
    return _SHORT.get(bare, bare)
