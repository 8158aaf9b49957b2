"""Whose a kernel is by its outermost C++ namespace, read from ``kernel_namespaces.toml``.

It says nothing about what the kernel does, and is asked only where no signature names a provider.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

_FILE: Final = "kernel_namespaces.toml"


@dataclass(frozen=True, slots=True)
class Namespace:
    """One row: kernels in namespace ``name`` are built by ``provider``; ``source`` says how that is known."""

    name: str
    provider: str
    source: str


@cache
def namespaces() -> tuple[Namespace, ...]:
    """All rows of the table that ships with the package."""
    text = resources.files("traceview.knowledge").joinpath(_FILE).read_text("utf-8")
    return tuple(Namespace(**row) for row in tomllib.loads(text)["namespace"])
