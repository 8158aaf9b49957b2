"""One recorded call of scaled dot-product attention, typed; what is not recorded stays ``None``.

Profilers write the arguments of an op as JSON lists: dims, dtype names, strides, and values of scalars. Files differ:
strides and values are missing in older ones, ``None`` is ``""`` with dims ``[]``, and a nested tensor is written like
``None`` (PyTorch 2.13, seen on a live capture). Nothing here fails on a text it does not understand.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from traceview.knowledge.sdpa import signature_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_DTYPES: Final = {
    "float": "float32", "float32": "float32", "double": "float64", "float64": "float64",
    "half": "float16", "float16": "float16", "bfloat16": "bfloat16", "bool": "bool",
    "float8_e4m3fn": "float8_e4m3fn", "float8_e5m2": "float8_e5m2",
    "float8_e4m3fnuz": "float8_e4m3fnuz", "float8_e5m2fnuz": "float8_e5m2fnuz",
    "char": "int8", "signed char": "int8", "int8": "int8", "unsigned char": "uint8", "uint8": "uint8",
    "byte": "uint8", "short": "int16", "short int": "int16", "int16": "int16", "int": "int32", "int32": "int32",
    "long": "int64", "long int": "int64", "long long": "int64", "int64": "int64",
    "complex<float>": "complex64", "complex<double>": "complex128",
}  # fmt: skip
_PREFIXES: Final = ("c10::", "at::", "torch.")
_MAX_RANK: Final = 64


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor argument as recorded.

    Attributes:
        dims: Sizes, outermost first; ``None`` if not recorded (PyTorch does not record those of nested tensors).
        dtype: PyTorch's name without prefix (``"bfloat16"``, ``"float32"``); ``None`` if not recorded or unknown.
        strides: Strides in elements, as many as ``dims``; ``None`` if not recorded.
    """

    dims: tuple[int, ...] | None = None
    dtype: str | None = None
    strides: tuple[int, ...] | None = None

    def dim(self, index: int) -> int | None:
        """One size; ``None`` if it is not recorded or the tensor has no such dimension."""
        if self.dims is None or not -len(self.dims) <= index < len(self.dims):
            return None
        return self.dims[index]

    @property
    def last_stride(self) -> int | None:
        """Stride of the last dimension; ``None`` if not recorded."""
        return self.strides[-1] if self.strides else None


@dataclass(frozen=True, slots=True)
class SdpaCall:
    """What a trace recorded of one call.

    Attributes:
        op: The op whose arguments these are.
        query: First argument, usually batch × heads × queries × head size.
        key: Second argument, batch × key heads × keys × head size.
        value: Third argument, batch × key heads × keys × value head size.
        mask: The attention mask; ``None`` if there is none or if it is not recorded, see ``mask_known``.
        mask_known: Whether it is recorded that there is a mask or that there is none.
        dropout_p: Dropout probability.
        is_causal: The causal flag.
        enable_gqa: The flag for fewer key heads than query heads; ``False`` if the op has no such argument.
        training: Whether a gradient was asked for, where an op says so.
        argument_count: Number of recorded arguments, which narrows the PyTorch version; ``None`` without any.
        dtype_by_kernels: The dtypes are not recorded, but proven by the names of the kernels that ran.
    """

    op: str
    query: Tensor = Tensor()
    key: Tensor = Tensor()
    value: Tensor = Tensor()
    mask: Tensor | None = None
    mask_known: bool = False
    dropout_p: float | None = None
    is_causal: bool | None = None
    enable_gqa: bool | None = None
    training: bool | None = None
    argument_count: int | None = None
    dtype_by_kernels: bool = False


def read_call(op: str, inputs: Mapping[str, str | None] | None) -> SdpaCall | None:
    """The typed call of a recorded input signature.

    Args:
        op: Op name, e.g. ``"aten::scaled_dot_product_attention"`` or, from compiled code, the op of one backend.
        inputs: JSON texts under ``dims``, ``dtypes``, ``strides`` and ``concrete`` as in
            :data:`traceview.schema.INPUTS`; missing keys and ``None`` mean not recorded.

    Returns:
        The call, or ``None`` if ``op`` is not an op of scaled dot-product attention whose arguments are known.
    """
    signature = signature_of(op)
    if signature is None:
        return None
    record = _Record(inputs or {})
    names = signature.arguments
    return SdpaCall(
        op=op,
        query=record.tensor(names.index("query")),
        key=record.tensor(names.index("key")),
        value=record.tensor(names.index("value")),
        **_mask(record, names, takes_mask=signature.takes_mask),
        dropout_p=record.number(_index(names, "dropout_p")),
        is_causal=record.flag(_index(names, "is_causal")),
        enable_gqa=record.flag(_index(names, "enable_gqa")),
        training=record.flag(_index(names, "compute_log_sumexp")),
        argument_count=record.argument_count,
    )


def _index(names: tuple[str, ...], name: str) -> int | None:
    return names.index(name) if name in names else None


def _mask(record: _Record, names: tuple[str, ...], *, takes_mask: bool) -> dict[str, Any]:
    if not takes_mask:
        return {"mask": None, "mask_known": True}
    index = names.index("attn_mask")
    given = record.given(index)
    return {"mask": record.tensor(index) if given else None, "mask_known": given is not None}


class _Record:
    """The four JSON lists, read without trust."""

    def __init__(self, inputs: Mapping[str, str | None]) -> None:
        self.dims = _json_list(inputs.get("dims"))
        self.dtypes = _json_list(inputs.get("dtypes"))
        self.strides = _json_list(inputs.get("strides"))
        self.concrete = _json_list(inputs.get("concrete"))

    @property
    def argument_count(self) -> int | None:
        counts = {len(part) for part in (self.dims, self.dtypes, self.concrete) if part}
        return counts.pop() if len(counts) == 1 else None

    def tensor(self, index: int) -> Tensor:
        dims = _sizes(_item(self.dims, index))
        # A scalar has no dims either, and a nested tensor is written as nothing at all: neither is a shape.
        dims = dims or None
        strides = _sizes(_item(self.strides, index))
        if dims is None or strides is None or len(strides) != len(dims):
            strides = None
        return Tensor(dims, _dtype(_item(self.dtypes, index)), strides)

    def given(self, index: int) -> bool | None:
        """Whether an optional tensor was passed; ``None`` if nothing tells."""
        dtype, dims = _item(self.dtypes, index), _item(self.dims, index)
        if isinstance(dtype, str):
            # A shape without a dtype contradicts itself.
            return None if not dtype and dims else dtype != ""
        if isinstance(dims, list):
            return bool(dims)
        return None

    def number(self, index: int | None) -> float | None:
        value = None if index is None else _item(self.concrete, index)
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            return None
        try:
            number = float(value)
        except (ValueError, OverflowError):
            return None
        return number if math.isfinite(number) else None

    def flag(self, index: int | None) -> bool | None:
        value = None if index is None else _item(self.concrete, index)
        if isinstance(value, bool):
            return value
        return {"true": True, "false": False}.get(value.lower()) if isinstance(value, str) else None


def _json_list(text: str | None) -> list[Any] | None:
    if not isinstance(text, str):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) else None


def _item(values: list[Any] | None, index: int) -> object:
    return values[index] if values is not None and index < len(values) else None


def _sizes(value: object) -> tuple[int, ...] | None:
    """A list of sizes or strides; ``None`` for anything else."""
    if not isinstance(value, list) or len(value) > _MAX_RANK:
        return None
    if not all(isinstance(size, int) and not isinstance(size, bool) and size >= 0 for size in value):
        return None
    return tuple(value)


def _dtype(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    name = value.strip()
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return _DTYPES.get(name.lower())
