"""Host ops whose name says that attention was asked for, and what else the name proves."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True, slots=True)
class AttentionOp:
    """One row of ``attention_ops.toml``.

    Attributes:
        pattern: Matched with ``search`` on the op name.
        asks: ``"sdpa"`` for PyTorch's own entry, ``"library"`` or ``"framework"`` for others.
        direction: ``"forward"`` or ``"backward"``.
        backend: The path the name proves, or ``None``.
        implementation: The implementation id the name proves, or ``None``.
    """

    pattern: re.Pattern[str]
    asks: str
    direction: str
    backend: str | None
    implementation: str | None


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(files("traceview.knowledge").joinpath("attention_ops.toml").read_text(encoding="utf-8"))


@cache
def _helpers() -> tuple[re.Pattern[str], ...]:
    """Names that hold the words of attention and ask for none."""
    return tuple(re.compile(row["pattern"]) for row in _table()["helper"])


@cache
def attention_ops() -> tuple[AttentionOp, ...]:
    """The table, in the order in which it is tried."""
    return tuple(
        AttentionOp(
            pattern=re.compile(row["pattern"]),
            asks=row["asks"],
            direction=row.get("direction", "forward"),
            backend=row.get("backend"),
            implementation=row.get("implementation"),
        )
        for row in _table()["op"]
    )


def find_attention_op(name: str) -> AttentionOp | None:
    """The row for an op name, or ``None`` if the name does not ask for attention."""
    found = next((op for op in attention_ops() if op.pattern.search(name)), None)
    return None if found is not None and any(helper.search(name) for helper in _helpers()) else found
