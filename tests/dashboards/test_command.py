"""``traceview dashboard``: how the app is started, and what is refused."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from dashboard_process import free_port
from traceview.cli import dashboard
from traceview.cli.main import main


def refused(capsys, *arguments):
    code = main(["dashboard", "--no-browser", *arguments])
    return code, capsys.readouterr().err


def test_an_address_that_others_reach_has_to_be_meant(capsys):
    code, err = refused(capsys, "--host", "0.0.0.0")  # noqa: S104 - it is refused
    assert code == 2
    assert err == (
        "traceview: error: --host 0.0.0.0: others can reach this address, and whoever reaches it can read every trace "
        "that is open. Leave it out, or add --allow-remote if that is meant.\n"
    )
    code, err = refused(capsys, "--host", "example.org")
    assert code == 2
    assert "this is no IP address" in err


@pytest.mark.parametrize(
    ("given", "remote", "used"),
    [
        ("localhost", False, "127.0.0.1"),
        ("127.0.0.2", False, "127.0.0.2"),
        ("[::1]", False, "::1"),
        ("0.0.0.0", True, "0.0.0.0"),  # noqa: S104 - the case is about it
    ],
)
def test_hosts(given, remote, used):
    assert dashboard._host(given, remote=remote) == used


def test_a_missing_trace_is_told_before_anything_starts(capsys, tmp_path):
    code, err = refused(capsys, str(tmp_path / "missing.json"))
    assert code == 2
    assert err == f"traceview: error: {tmp_path / 'missing.json'}: no such file or folder. Check the path.\n"


def test_without_the_extra_it_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setattr(dashboard, "find_spec", lambda name: None)
    code, err = refused(capsys)
    assert code == 2
    assert err == (
        "traceview: error: the dashboard needs streamlit and altair, not installed here. "
        "Run: pip install 'traceview[dashboard]'\n"
    )


def test_a_port_that_is_taken_is_told(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, err = refused(capsys, "--port", str(port))
    assert code == 2
    assert err.startswith(f"traceview: error: --port {port}: cannot listen at 127.0.0.1: ")


def test_two_that_start_at_once_choose_two_ports():
    """Neither listens yet, so both would find the same port free."""
    first, held = dashboard._free_port("127.0.0.1", None)
    second, also_held = dashboard._free_port("127.0.0.1", None)
    with held, also_held:
        assert dashboard.FIRST_PORT <= first < second
    # The last port that would be tried: nothing else on this machine gets so far.
    last = dashboard.FIRST_PORT + dashboard._PORTS_TRIED - 1
    with dashboard._claim(last):
        assert dashboard._claim(last) is None
    with dashboard._claim(last):
        pass
    wanted, nothing = dashboard._free_port("127.0.0.1", free_port())
    assert (nothing, wanted > 0) == (None, True)


@pytest.mark.parametrize("port", ["0", "65536", "x", "-1"])
def test_what_is_no_port(capsys, port):
    with pytest.raises(SystemExit):
        main(["dashboard", f"--port={port}"])
    assert "is no port: a whole number from 1 to 65535" in capsys.readouterr().err


def test_the_settings_are_ones_that_streamlit_knows():
    config = pytest.importorskip("streamlit.config")
    for name in dashboard.SETTINGS:
        config.get_option(name)
    assert dashboard.SETTINGS["browser.gatherUsageStats"] == "false"
    assert dashboard.SETTINGS["client.toolbarMode"] == "minimal"
    assert dashboard.SETTINGS["client.showErrorDetails"] == "none"


@pytest.mark.parametrize(
    ("host", "names"), [("127.0.0.2", ["localhost", "127.0.0.1", "::1", "127.0.0.2"]), ("10.0.0.1", [])]
)
def test_a_page_of_another_site_cannot_pass_for_this_machine(host, names):
    given = [flag for flag in dashboard.command(host, 8501) if flag.startswith("--server.allowedHosts=")]
    assert given == [f"--server.allowedHosts={name}" for name in names]


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_and_ends_in_order(repository, tmp_path, number):
    sample = repository / "sample_traces" / "no-device-work.cuda-authored.json"
    child = subprocess.Popen(
        [
            str(Path(sys.executable).with_name("traceview")),
            "dashboard",
            "--no-browser",
            "--port",
            str(free_port()),
            str(sample),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path), "http_proxy": "http://127.0.0.1:9"},
    )
    with child:
        line = child.stdout.readline()
        assert line.startswith("traceview dashboard: http://127.0.0.1:"), child.stderr.read()
        address = line.split()[2]
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(address, timeout=300) as answer:
            assert b"<html" in answer.read()
        assert len(list(tmp_path.glob("traceview-uploads-*"))) == 1
        child.send_signal(number)
        assert child.wait(300) == 0
        assert child.stderr.read() == ""
    assert list(tmp_path.glob("traceview-uploads-*")) == []
    with pytest.raises(OSError, match="refused"):
        opener.open(address, timeout=300)
