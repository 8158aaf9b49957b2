"""Sizes inside ``kernel_details`` and ``memcpy_details``, in each way that profilers have written them.

Three variants are in use: ``regs:38 shm:0 grid:160,1,1`` (2020), ``regs:.. static_shared:.. grid:..`` (now), and those
of ROCm with ``private_mem`` and ``group_mem``; keys are parted by blanks or line breaks. Copies say ``size`` or
``num_bytes``.
"""

from __future__ import annotations

import re
from typing import Final

_PAIR: Final = re.compile(r"(\w+):(\S*)")


def pairs(text: str) -> dict[str, str]:
    """The keys and values of such a text."""
    return dict(_PAIR.findall(text))


def copied_bytes(text: str) -> int | None:
    """How many bytes a copy moved; ``None`` if the text does not say, or says 0 as ROCm does when it does not know."""
    found = pairs(text)
    size = found.get("size") or found.get("num_bytes") or ""
    if not (size.isascii() and size.isdigit() and len(size) < 20):
        return None
    if found.get("kind") == "Unknown" and int(size) == 0:
        return None
    return int(size)
