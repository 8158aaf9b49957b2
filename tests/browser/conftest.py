"""A browser that looks at a dashboard that was really started. It may talk to that dashboard and to nothing else."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dashboard_process import FLAGS, as_a_user, chromium, free_port, running
from in_browser import EXCEPTION, PATIENCE_MS, settled

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
ARTEFACTS = HERE / "artefacts"
SAMPLES = HERE.parents[1] / "sample_traces"
# No other machine has an address. To watch requests one by one would switch off the cache, and every page would load
# the app anew.
OWN_FLAGS = [*FLAGS, "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]

# Where an app of several pages is reloaded, Streamlit looks for its server below the page's own address first.
_PROBE = re.compile(r"/\w+/_stcore/(health|host-config)$")


def pytest_collection_modifyitems(items):
    missing = [name for name in ("playwright", "streamlit") if importlib.util.find_spec(name) is None]
    why = None
    if missing:
        why = f"{' and '.join(missing)} not installed: pip install -e '.[browser]'"
    elif chromium() is None:
        why = "no Chromium on the PATH: install the Debian package chromium"
    # `make test` sets this after it has installed everything: then a missing piece fails, and is no green run.
    if why and not os.environ.get("TRACEVIEW_BROWSER"):
        for item in items:
            if HERE in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture(scope="session")
def dashboard() -> Iterator[str]:
    """The address of a dashboard as a user starts it."""
    port = free_port()
    with running(as_a_user(port), port) as started:
        yield started.address


@pytest.fixture(scope="session")
def merging_dashboard() -> Iterator[str]:
    """The address of a dashboard that merges on the server what is more than a few hundred events."""
    from traceview.cli.dashboard import command

    port = free_port()
    app = str(HERE / "merging_app.py")
    arguments = [app if part.endswith("script.py") else part for part in command("127.0.0.1", port)]
    assert app in arguments
    assert arguments[0] == sys.executable
    with running(arguments, port) as started:
        yield started.address


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=chromium(), args=OWN_FLAGS)
        yield made
        made.close()


def picture(page, name: str) -> None:
    """Keep how the page looks."""
    ARTEFACTS.mkdir(exist_ok=True)
    settled(page)
    page.screenshot(path=ARTEFACTS / f"{re.sub(r'[^a-zA-Z0-9_.-]+', '-', name).strip('-')}.png")


class Watch:
    """What a page must not do: fail in the console, or ask anything of another host."""

    def __init__(self, page) -> None:
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.left: list[str] = []
        self.sockets: list[str] = []
        page.on("request", self._request)
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.errors.append(f"page error: {error}"))
        page.on("websocket", lambda socket: self.sockets.append(socket.url))

    def _request(self, request) -> None:
        self.requests.append(request.url)
        if not re.match(r"(https?://127\.0\.0\.1[:/]|blob:|data:)", request.url):
            self.left.append(request.url)

    def _console(self, message) -> None:
        if message.type == "error" and not _PROBE.search(message.location.get("url", "")):
            self.errors.append(f"{message.text} ({message.location.get('url', '')})")


def slowed(page) -> None:
    """Take processor time from a page, so many times, to find tests that pass on a fast machine only."""
    factor = os.environ.get("TRACEVIEW_BROWSER_SLOWDOWN")
    if factor:
        page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": float(factor)})


@pytest.fixture
def scheme() -> str:
    return "light"


@pytest.fixture
def keep(page, request):
    """Keep how the page looks in the middle of a test."""
    return lambda name: picture(page, f"{request.node.name}-{name}")


@pytest.fixture(scope="session")
def contexts(browser):
    """A browser profile for each colour scheme, kept from test to test for what it has loaded of the app."""
    made = {}

    def get(scheme):
        if scheme not in made:
            made[scheme] = browser.new_context(
                viewport={"width": 1280, "height": 800}, color_scheme=scheme, reduced_motion="reduce"
            )
        return made[scheme]

    yield get
    for context in made.values():
        context.close()


@pytest.fixture
def page(contexts, scheme, request):
    """A page of 1280 by 800; how it looked at the end of the test is kept."""
    made = contexts(scheme).new_page()
    watch = Watch(made)
    made.set_default_timeout(PATIENCE_MS)
    slowed(made)
    yield made
    picture(made, request.node.name)
    failures = made.locator(EXCEPTION).count()
    made.close()
    assert failures == 0, "the page shows an error of Streamlit"
    assert watch.errors == []
    assert watch.left == []
    assert all(url.startswith("ws://127.0.0.1:") for url in watch.sockets)
    assert watch.requests or made.url == "about:blank", "nothing was recorded, so nothing was checked"
