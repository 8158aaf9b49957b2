"""A dashboard of one's own and a browser to look at it: for the tests, the benchmark and the pictures alike."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sysconfig
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""How the browser is started: as root, without a graphics card, and without requests of its own."""

_START_S: Final = 300.0
"""Ample: a machine that many share is no failure."""
_STOP_S: Final = 60.0


class Started(NamedTuple):
    """A dashboard that answers: its address, and the process that was started."""

    address: str
    pid: int


def chromium() -> str | None:
    """The browser of the system; Playwright's own would have to be downloaded."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def free_port() -> int:
    """A port of this machine that nobody listens at."""
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


def as_a_user(port: int, *traces: Path | str) -> list[str]:
    """The command line that starts the dashboard with some traces, without a browser."""
    program = Path(sysconfig.get_path("scripts")) / "traceview"
    return [str(program), "dashboard", *map(str, traces), "--no-browser", "--port", str(port)]


@contextlib.contextmanager
def running(command: Sequence[str], port: int, environment: Mapping[str, str] | None = None) -> Iterator[Started]:
    """Start a dashboard, wait until it answers, and end it.

    Args:
        command: Its command line.
        port: The port that it is told to listen at.
        environment: Variables to set for it.

    Raises:
        RuntimeError: it ended, or did not answer; with what it said.
    """
    address = f"http://127.0.0.1:{port}"
    # A file and no pipe: nobody reads while it runs, and a full pipe would stop it.
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command, env={**os.environ, **(environment or {})}, stdout=said, stderr=subprocess.STDOUT
        )
        try:
            if not _answers(process, address):
                said.seek(0)
                raise RuntimeError(f"the dashboard did not start: {said.read().decode(errors='replace')}")
            yield Started(address, process.pid)
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _answers(process: subprocess.Popen[bytes], address: str) -> bool:
    """Wait until the server answers; ``False`` if it ended or stayed silent."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + _START_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with opener.open(f"{address}/_stcore/health", timeout=10):
                return True
        except OSError:
            time.sleep(0.05)
    return False
