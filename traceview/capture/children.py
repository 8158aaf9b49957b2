"""Run a program as a child and hand on what it ends with, whatever interrupts it."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from traceview.capture.bootstrap import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def run_child(command: Sequence[str], *, output_to_stderr: bool = False) -> int:
    """Run a command to its end; its exit code, 128 + n if signal n ended it.

    Ctrl-C reaches the child by itself, so the parent only waits until it has written its trace; SIGTERM is passed on.

    Args:
        command: The command line.
        output_to_stderr: The child's standard output goes to standard error.
    """
    out = sys.stderr.fileno() if output_to_stderr else None
    with subprocess.Popen(command, stdout=out) as child, _passed_on(child):  # noqa: S603 - the user's own command
        while True:
            try:
                code = child.wait()
                break
            except KeyboardInterrupt:
                continue
    return 128 - code if code < 0 else code


@contextlib.contextmanager
def _passed_on(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """SIGTERM of the parent ends the child first; elsewhere than in the main thread nothing can be passed on."""
    try:
        before = signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def read_outcome(path: str) -> Outcome | None:
    """What the child said; ``None`` if it never came so far as to say anything."""
    try:
        with open(path, encoding="utf-8") as file:
            return Outcome(**json.load(file))
    except (OSError, ValueError, TypeError):
        return None
