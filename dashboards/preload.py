"""Import everything that reads and analyses traces, once, before a second thread could import any of it.

A server imports from several threads: one runs the page of each session, one reads a trace. Where two threads wait for
each other's modules, Python ends the deadlock by handing out a module that is half made, and an import fails that is
right. So nothing of traceview is left to import when threads begin.
"""

from __future__ import annotations

import pkgutil
import threading
from importlib import import_module
from typing import TYPE_CHECKING, Final

from traceview.errors import TraceviewError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

_ROOTS: Final = ("traceview", "traceview.parsers")
"""Packages to import whole. The parsers lie elsewhere in a checkout, so they are named."""

_LEFT_OUT: Final = frozenset(
    f"traceview.{name}" for name in ("capture", "cli", "dashboards", "parsers", "pytest_plugin")
)
"""What no page and no analysis imports; parsers come as a root of their own."""

_LOCK: Final = threading.RLock()
_done = threading.Event()


def preload() -> None:
    """Import every module that an analysis may want; the first caller does it, any other waits for that."""
    if _done.is_set():
        return
    with _LOCK:
        if _done.is_set():
            return
        for root in _ROOTS:
            for name in _below(import_module(root)):
                import_module(name)
        _plug_ins()
        _done.set()


def imported(name: str) -> ModuleType:
    """A module of the app, imported by one thread at a time."""
    with _LOCK:
        return import_module(name)


def _below(package: ModuleType) -> Iterator[str]:
    """Names of all modules in a package, packages before what is in them."""
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if found.name in _LEFT_OUT or found.name.endswith(".__main__"):
            continue
        yield found.name
        if found.ispkg:
            yield from _below(import_module(found.name))


def _plug_ins() -> None:
    """Parsers of other packages: one that cannot be imported is told where a trace is opened, not here."""
    from traceview import sniffing

    try:
        sniffing.installed_formats()
    except TraceviewError:
        return
