"""Progress while a trace is read: one line on a terminal, and in a log a line now and then if it takes long."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Self, TextIO

if TYPE_CHECKING:
    from types import TracebackType

QUIET_SECONDS: Final = 0.5
"""A trace that is read sooner shows no progress at all."""

LOG_SECONDS: Final = 30.0
"""Without a terminal the first line comes after so long, each next one after twice the time: a program that says
nothing for minutes, as while ``nsys`` exports a report, looks as if it hung."""


class Progress:
    """Callable with the share done, 0 to 1.

    Args:
        stream: Where to, normally ``sys.stderr``.
        show: Whether the user wants it.
    """

    def __init__(self, stream: TextIO, *, show: bool) -> None:
        self._stream = stream
        self._show = show
        self._on_terminal = stream.isatty()
        self._started = time.monotonic()
        self._next_line = LOG_SECONDS
        self._shown = ""

    def __call__(self, share: float) -> None:
        """Show the share, if it is time to."""
        taken = time.monotonic() - self._started
        if not self._show or taken < QUIET_SECONDS:
            return
        if not self._on_terminal:
            self._log(share, taken)
            return
        text = f"reading {min(max(share, 0.0), 1.0):4.0%}"
        if text != self._shown:
            self._stream.write(f"\r{text}")
            self._stream.flush()
            self._shown = text

    def _log(self, share: float, taken: float) -> None:
        if taken >= self._next_line:
            self._stream.write(f"traceview: still reading after {taken:,.0f} s ({min(max(share, 0.0), 1.0):.0%})\n")
            self._stream.flush()
            while self._next_line <= taken:
                self._next_line *= 2

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._shown:
            self._stream.write("\r" + " " * len(self._shown) + "\r")
            self._stream.flush()
