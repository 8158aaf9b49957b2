"""With inputs of which type an op was called."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from traceview.attention import SLOW
from traceview.knowledge.dtypes import FLOATING, short_dtype

if TYPE_CHECKING:
    from traceview.dispatch import Dispatch

_STORED_AS: Final = {"tf32": "fp32"}
"""Precision of a kernel to the type of its inputs, where they differ: TF32 is computed from fp32."""


def input_dtype(row: Dispatch, precision: str | None) -> str | None:
    """Short name of the type of an op's first tensor, ``None`` if it is not known.

    What the op recorded counts. Without it the kernel's name tells, but not inside slow attention, which converts its
    inputs before it multiplies them.

    Args:
        row: The dispatch.
        precision: What the name of its kernel says.
    """
    recorded = _first_tensor(row.inputs)
    if recorded is not None:
        return short_dtype(recorded)
    if row.inputs and row.inputs.get("dtypes"):
        return None
    named = _STORED_AS.get(precision or "", precision)
    return named if named in FLOATING and row.implementation not in SLOW else None


def _first_tensor(inputs: dict[str, str | None] | None) -> str | None:
    dims, dtypes = (_list(inputs.get(key)) if inputs else [] for key in ("dims", "dtypes"))
    for shape, dtype in zip(dims, dtypes, strict=False):
        if isinstance(shape, list) and shape and all(isinstance(size, int) for size in shape) and dtype:
            return dtype if isinstance(dtype, str) else None
    return None


def _list(text: str | None) -> list[Any]:
    try:
        value = json.loads(text) if text else []
    except ValueError:
        return []
    return value if isinstance(value, list) else []
