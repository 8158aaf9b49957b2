"""Traceview: which kernel actually ran, where the time went, and why.

PYTEST_DONT_REWRITE: a program that imports traceview and then runs pytest is not to be warned of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from traceview.loading import load
    from traceview.timeline import Timeline

__version__ = "0.1.0"
__all__ = ["Timeline", "__version__", "load"]


def __getattr__(name: str) -> Any:
    """Import the public names on first use, so that ``traceview --version`` does not pay for Polars."""
    if name == "load":
        from traceview.loading import load

        return load
    if name == "Timeline":
        from traceview.timeline import Timeline

        return Timeline
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
