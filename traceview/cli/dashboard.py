"""``traceview dashboard``: the app in the browser, on this machine alone."""

from __future__ import annotations

import argparse
import contextlib
import errno
import ipaddress
import json
import os
import signal
import sys
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, TextIO

from traceview.cli.command import Answer, add_debug_option
from traceview.errors import ExitCode, TraceviewError, UsageError

if TYPE_CHECKING:
    import socket
    import subprocess
    from collections.abc import Iterator
    from types import FrameType

NAME = "dashboard"
SUMMARY = "Show a trace in the browser: the answer first, then the evidence"
DESCRIPTION = (
    "Starts an app on this machine and opens it in the browser: verdict, where a step goes, what ran, gaps, "
    "recompiles, copies, rules. Needs the extra traceview[dashboard]. Nothing leaves the machine. Ctrl-C ends it."
)

FIRST_PORT: Final = 8501
_PORTS_TRIED: Final = 50
_CLAIMS: Final = 20_000
"""So much higher is the port that says that one is taken."""
_START_S: Final = 180.0
"""A machine that many share may take minutes to import what is usually there in seconds."""
_STOP_S: Final = 5.0
_LOOPBACK: Final = "127.0.0.1"
_OWN_NAMES: Final = ("localhost", _LOOPBACK, "::1")
_PACKAGES: Final = ("streamlit", "altair")

SETTINGS: Final = {
    "server.headless": "true",
    "server.fileWatcherType": "none",
    "server.runOnSave": "false",
    "server.enableStaticServing": "false",
    "server.maxUploadSize": "1024",
    "server.disconnectedSessionTTL": "120",
    "browser.gatherUsageStats": "false",
    "client.toolbarMode": "minimal",
    "client.showErrorDetails": "none",
    "client.showErrorLinks": "false",
    "client.showSidebarNavigation": "false",
    "logger.hideWelcomeMessage": "true",
    "logger.level": "error",
    "runner.magicEnabled": "false",
    "theme.light.primaryColor": "#0072B2",
    "theme.dark.primaryColor": "#56B4E9",
}
"""What the app's server is told. Settings of the user's own files are outweighed by these."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    parser.add_argument(
        "traces",
        metavar="TRACE",
        nargs="*",
        help="a trace file, a folder or a pattern to open; several are the ranks of one run",
    )
    parser.add_argument("--port", metavar="N", type=_port, help=f"port (default: the first free one from {FIRST_PORT})")
    parser.add_argument(
        "--host",
        metavar="ADDRESS",
        default=_LOOPBACK,
        help=f"address to listen at (default: {_LOOPBACK}, this machine alone); another needs --allow-remote",
    )
    parser.add_argument(
        "--allow-remote",
        action="store_true",
        help="listen at an address that others can reach: whoever reaches it can read every trace that is open",
    )
    parser.add_argument("--no-cache", action="store_true", help="read each trace itself, and keep nothing of it")
    parser.add_argument("--no-browser", action="store_true", help="do not open the browser, only print the address")
    add_debug_option(parser)


def run(options: argparse.Namespace) -> Answer:
    """Start the app and wait until it ends.

    Raises:
        UsageError: the extra is not installed, or host, port or a trace cannot be had.
    """
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise UsageError(
            "no-dashboard",
            why=f"the dashboard needs {' and '.join(missing)}, not installed here.",
            next_step="Run: pip install 'traceview[dashboard]'",
        )
    host = _host(options.host, remote=options.allow_remote)
    _refuse_missing(options.traces)
    port, claim = _free_port(host, options.port)
    return Answer(ExitCode.OK, lambda out: _serve(options, host, port, claim, out))


def _serve(options: argparse.Namespace, host: str, port: int, claim: socket.socket | None, out: TextIO) -> None:
    import subprocess
    import webbrowser

    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{port}"
    with claim or contextlib.nullcontext(), _uploads() as folder:
        environment = {
            **os.environ,
            "TRACEVIEW_DASHBOARD_TRACES": json.dumps([os.path.abspath(one) for one in options.traces]),
            "TRACEVIEW_DASHBOARD_UPLOADS": folder,
            **({"TRACEVIEW_NO_CACHE": "1"} if options.no_cache else {}),
        }
        # The child is ended by this process, not by the terminal, so that it ends in order and says nothing.
        child = subprocess.Popen(  # noqa: S603 - our own interpreter with arguments of our own
            command(host, port), env=environment, start_new_session=os.name == "posix"
        )
        try:
            _end_as_by_ctrl_c()
            _await(child, address)
            if child.poll() is None:
                print(f"traceview dashboard: {address}  (Ctrl-C ends it)", file=out, flush=True)
                if not options.no_browser:
                    webbrowser.open(address)
            child.wait()
        except KeyboardInterrupt:
            print(file=out)
        finally:
            by_itself = child.poll() is not None
            _end(child)
        # One that is ended from here, and has to be killed for it, is no failure.
        if by_itself and child.returncode not in {0, -signal.SIGTERM, -signal.SIGINT}:
            raise TraceviewError(
                "dashboard-ended", why=f"the dashboard ended by itself (exit code {child.returncode}).", next_step=""
            )


def _end_as_by_ctrl_c() -> None:
    """Let what ends this process also end the child: a closed terminal, and a polite kill."""
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _interrupt)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def command(host: str, port: int) -> list[str]:
    """The command line of the server."""
    spec = find_spec("traceview.dashboards.entry")
    assert spec is not None
    assert spec.submodule_search_locations
    app = os.path.join(next(iter(spec.submodule_search_locations)), "script.py")
    settings = {**SETTINGS, "server.address": host, "server.port": str(port)}
    flags = [f"--{name}={value}" for name, value in settings.items()]
    if ipaddress.ip_address(host).is_loopback:
        # A page of another site whose name was made to mean this machine must not reach the app.
        flags += [f"--server.allowedHosts={name}" for name in dict.fromkeys((*_OWN_NAMES, host))]
    return [sys.executable, "-m", "traceview.dashboards.server", "run", app, *flags]


def _port(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 1 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: a whole number from 1 to 65535")
    return number


def _host(text: str, *, remote: bool) -> str:
    host = _LOOPBACK if text == "localhost" else text.strip("[]")
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise UsageError(
            "bad-host", where=f"--host {text}", why="this is no IP address.", next_step=f"Leave it out for {_LOOPBACK}."
        ) from None
    if not address.is_loopback and not remote:
        raise UsageError(
            "remote-host",
            where=f"--host {text}",
            why="others can reach this address, and whoever reaches it can read every trace that is open.",
            next_step="Leave it out, or add --allow-remote if that is meant.",
        )
    return host


def _refuse_missing(traces: list[str]) -> None:
    from glob import has_magic

    for trace in traces:
        if not os.path.lexists(trace) and not has_magic(trace):
            raise UsageError("not-found", where=trace, why="no such file or folder.", next_step="Check the path.")


def _free_port(host: str, wanted: int | None) -> tuple[int, socket.socket | None]:
    """The port to listen at, and what holds it until the server does.

    Raises:
        UsageError: it is taken, or all that were tried are.
    """
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    failure = OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
    for port in [wanted] if wanted else range(FIRST_PORT, FIRST_PORT + _PORTS_TRIED):
        claim = None if wanted else _claim(port)
        if claim is None and not wanted:
            continue
        with socket.socket(family) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind((host, port))
            except OSError as error:
                failure = error
                if claim is not None:
                    claim.close()
                continue
            return port, claim
    raise UsageError(
        "port-taken",
        where=f"--port {wanted}" if wanted else f"ports {FIRST_PORT} to {FIRST_PORT + _PORTS_TRIED - 1}",
        why=f"cannot listen at {host}: {failure.strerror}.",
        next_step="Choose another with --port.",
    )


def _claim(port: int) -> socket.socket | None:
    """Hold a port against another start of this program; ``None`` if one holds it.

    The server imports for seconds before it listens. Until then a second start would find the port free, and take the
    answer of the first server for its own. So whoever chose a port binds another one as well, at which nobody listens.
    """
    import socket

    claim = socket.socket(socket.AF_INET)
    try:
        claim.bind((_LOOPBACK, port + _CLAIMS))
    except OSError:
        claim.close()
        return None
    return claim


@contextlib.contextmanager
def _uploads() -> Iterator[str]:
    """A folder for uploads that goes when the app ends, however it ends."""
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="traceview-uploads-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _await(child: subprocess.Popen[bytes], address: str) -> None:
    """Wait until the server answers."""
    import urllib.request

    deadline = time.monotonic() + _START_S
    # A proxy of the environment must not be asked for an address of this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while time.monotonic() < deadline and child.poll() is None:
        try:
            with opener.open(f"{address}/_stcore/health", timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    if child.poll() is None:
        raise TraceviewError("dashboard-silent", why=f"the dashboard did not answer within {_START_S:.0f} s.")


def _end(child: subprocess.Popen[bytes]) -> None:
    import subprocess

    if child.poll() is None:
        child.terminate()
        try:
            child.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
