"""The name of a device's architecture, as its vendor's compilers call it: ``sm90``, ``gfx942``."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Final

_TARGET: Final = re.compile(r"\bgfx[0-9a-f]{3,4}\b")


def architecture(vendor: str | None, name: str | None, major: int | None, minor: int | None) -> str | None:
    """The architecture of a device, ``None`` if what is recorded does not settle it.

    Args:
        vendor: As in :data:`traceview.schema.DEVICES`.
        name: Product name.
        major: Compute capability, or gfx number, major. AMD's number lacks the stepping: 9.4 is no ``gfx94``.
        minor: The same, minor.

    Returns:
        ``"sm"`` and the compute capability for NVIDIA, the target of ``amd_targets.toml`` for AMD.
    """
    if vendor == "nvidia" and major is not None and minor is not None:
        return f"sm{major * 10 + minor}"
    return _amd(name or "", major, minor) if vendor == "amd" else None


def _amd(name: str, major: int | None, minor: int | None) -> str | None:
    """Some traces give the target itself for the product name."""
    said = _TARGET.search(name)
    if said:
        return said[0]
    table = amd_targets()
    for row in table["name"]:
        if re.search(row["pattern"], name):
            return str(row["target"])
    return next((str(row["target"]) for row in table["number"] if (row["major"], row["minor"]) == (major, minor)), None)


@cache
def amd_targets() -> dict[str, Any]:
    """The tables of ``amd_targets.toml``."""
    return tomllib.loads(files("traceview.knowledge").joinpath("amd_targets.toml").read_text(encoding="utf-8"))
