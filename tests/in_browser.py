"""How the tests look at a page: each step waits for the fact that it needs, however slow the machine.

A page is never read once after an action. What is done travels to the server and back, and until then the page of
before stands there, complete and at rest.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

PATIENCE_MS = 180_000
"""How long a step may take; only a test that fails waits for it."""

CANVAS = "canvas[aria-roledescription=timeline][data-draws]"
HEADLINE = "[class*=st-key-headline]"
EXCEPTION = "[data-testid=stException]"

LAST = {
    "Open": "Or take a sample",
    "Overview": "What was read, and what was not",
    "Dispatch": "Take the check away",
    "Gaps": "Where the host waits",
    "Recompiles & transfers": "Copies",
    "Timeline": "Timeline",
    "What-if": "Change a stage",
    "Compare": "",
    "Rules & glossary": "Glossary",
}
"""A heading that only the whole page has, by its name in the navigation."""

_DONE = """() => {
  const app = document.querySelector("[data-testid=stApp]");
  return app?.dataset.testScriptState === "notRunning" && app.dataset.testConnectionState === "CONNECTED"
    && !document.querySelector("[data-testid=stSkeleton]");
}"""


def expect(locator):
    """What Playwright waits for of a part of a page."""
    from playwright.sync_api import expect as made

    made.set_options(timeout=PATIENCE_MS)
    return made(locator)


def settled(page):
    """Wait until the server has nothing more to say. After an action, wait for something that it brings before."""
    if page.url != "about:blank":
        page.wait_for_function(_DONE)


def to(page, name):
    """Go to a page, once the one before is at rest, and wait until all of it is there."""
    settled(page)
    link = page.get_by_role("link", name=name, exact=True).first
    path = urlsplit(link.get_attribute("href")).path
    link.click()
    page.wait_for_url(lambda url: urlsplit(url).path == path)
    if LAST[name]:
        page.get_by_role("heading", name=LAST[name], exact=True).wait_for()
    settled(page)


def address(page):
    """The parameters of the address."""
    return {key: values[0] for key, values in parse_qs(urlsplit(page.url).query).items()}


def told(page, **wanted):
    """Wait until the address says so: a value, a pattern of it, or ``None`` for no such parameter."""
    patterns = {
        name: None if value is None else f"^(?:{value.pattern if isinstance(value, re.Pattern) else re.escape(str(value))})$"
        for name, value in wanted.items()
    }  # fmt: skip
    page.wait_for_function(
        """(wanted) => {
          const now = new URLSearchParams(location.search);
          return Object.entries(wanted).every(([name, pattern]) =>
            pattern === null ? !now.has(name) : now.has(name) && new RegExp(pattern).test(now.get(name)));
        }""",
        arg=patterns,
    )
    return address(page)


def drawn(page):
    """The timeline, once it has been drawn."""
    canvas = page.locator(CANVAS)
    canvas.wait_for()
    return canvas


def shown(canvas):
    """The stretch that the timeline shows, in ns."""
    low, high = canvas.get_attribute("data-view").split("-")
    return int(low), int(high)


def until(page, canvas, change, *before):
    """Wait until the timeline is as wanted; ``change`` is an expression in ``c``, its data set, and ``b``."""
    page.wait_for_function(f"([e, b]) => (c => {change})(e.dataset)", arg=[canvas.element_handle(), list(before)])


def span(page, canvas, test):
    """Wait until the length of what is shown passes a test, an expression in ``s``."""
    until(page, canvas, f"(s => {test})(c.view.split('-')[1] - c.view.split('-')[0])")


def again(act, came, page):
    """Do something until it has an effect: a browser without time to spare drops a movement of the mouse."""
    for _ in range(60):
        act()
        for _ in range(20):
            if came():
                return
            page.wait_for_timeout(100)
    raise AssertionError("nothing came of it")


def row_of(table, number):
    """Choose a row of a table, counted from 0: its rows are drawn on a canvas, the box is at their left edge."""
    table.locator("canvas").first.wait_for()
    table.click(position={"x": 15, "y": 35 + 35 * number + 17})
