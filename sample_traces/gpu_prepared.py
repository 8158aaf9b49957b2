"""A case of ``make_gpu.py`` that is ready to be recorded."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(slots=True)
class Prepared:
    """A case that is ready to be recorded.

    Attributes:
        name: Name of the trace.
        kind: ``"attention"``, ``"gemm"`` or ``"host"``.
        call: What is recorded, once a step.
        asked: What the program asked for.
        says: What the framework itself says, or what was planted.
        setting: Switches, entered while it is warmed up and recorded.
    """

    name: str
    kind: str
    call: Callable[[], object]
    asked: dict[str, Any]
    says: dict[str, Any]
    setting: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext
