"""Progress while a trace is read: one line on a terminal, nothing anywhere else."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Self, TextIO

if TYPE_CHECKING:
    from types import TracebackType

QUIET_SECONDS: Final = 0.5
"""A trace that is read sooner shows no progress at all."""


class Progress:
    """Callable with the share done, 0 to 1.

    Args:
        stream: Where to, normally ``sys.stderr``.
        show: Whether the user wants it; without a terminal it is never shown.
    """

    def __init__(self, stream: TextIO, *, show: bool) -> None:
        self._stream = stream
        self._show = show and stream.isatty()
        self._started = time.monotonic()
        self._shown = ""

    def __call__(self, share: float) -> None:
        """Show the share, if it is time to."""
        if not self._show or time.monotonic() - self._started < QUIET_SECONDS:
            return
        text = f"reading {min(max(share, 0.0), 1.0):4.0%}"
        if text != self._shown:
            self._stream.write(f"\r{text}")
            self._stream.flush()
            self._shown = text

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._shown:
            self._stream.write("\r" + " " * len(self._shown) + "\r")
            self._stream.flush()
