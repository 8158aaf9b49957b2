"""Take the pictures of the dashboard that stand in docs/images: each page for a CUDA and a TPU trace, and a dark one.

Starts `traceview dashboard`, opens bundled samples by their path, and looks at them with the Chromium of the system.

    python tools/screenshots.py
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, urlsplit

from dashboard_process import FLAGS, as_a_user, chromium, free_port, running

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT: Final = Path(__file__).resolve().parent.parent
IMAGES: Final = ROOT / "docs" / "images"
SAMPLES: Final = ROOT / "sample_traces"
MOST_BYTES: Final = 150_000

TRACES: Final = {
    "cuda": SAMPLES / "flash-requested-math-ran.cuda-authored.json.gz",
    "tpu": SAMPLES / "xprof" / "image-pipeline-before.xprof-authored.xplane.pb",
}
AFTER: Final = {
    "cuda": SAMPLES / "flash-requested-flash-ran.cuda-authored.json.gz",
    "tpu": SAMPLES / "xprof" / "image-pipeline-after.xprof-authored.xplane.pb",
}
"""The same programs after the fix: what they are compared with."""

PAGES: Final = ("overview", "dispatch", "gaps", "recompiles", "timeline", "what_if")
ONCE: Final = ("open", "rules")
"""Pages that look the same whatever the trace."""


def new_page(browser: Browser, scheme: str = "light", height: int = 860) -> Page:
    """A page as a laptop shows it."""
    context = browser.new_context(
        viewport={"width": 1280, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.set_default_timeout(60_000)
    return page


def still(page: Page) -> None:
    """Wait until the server is done and every placeholder has been replaced."""
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()
    page.wait_for_function("() => !document.querySelector('[data-testid=stSkeleton]')")
    page.wait_for_timeout(700)


def select(page: Page) -> None:
    """Drag over a part of the timeline, so that the table below it shows what lies there."""
    canvas = page.locator("canvas[aria-roledescription=timeline][data-draws]")
    box = canvas.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.45, box["y"] + 70)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.62, box["y"] + 130, steps=4)
    page.mouse.up()
    page.get_by_role("heading", name="Selected area").wait_for()
    still(page)


def opened(page: Page, address: str, trace: Path) -> str:
    """Open a trace by its path; its id."""
    page.goto(address)
    page.get_by_label("File, folder or pattern on this machine, of any size").fill(str(trace))
    page.get_by_role("button", name="Open", exact=True).click()
    page.locator("[class*=st-key-headline]").first.wait_for()
    return parse_qs(urlsplit(page.url).query)["trace"][0]


def keep(page: Page, name: str) -> None:
    """Write a picture, with as many colours as it takes and fits."""
    from PIL import Image

    IMAGES.mkdir(parents=True, exist_ok=True)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    target = IMAGES / f"{name}.png"
    for colours in (128, 64, 32, 16):
        picture.quantize(colours, dither=Image.Dither.NONE).save(target, optimize=True)
        if target.stat().st_size <= MOST_BYTES:
            break
    print(f"{target.relative_to(ROOT)}: {target.stat().st_size / 1000:.0f} kB")


def take(browser: Browser, address: str, wanted: set[str]) -> None:
    """Take every picture, or those whose name is wanted."""
    page = new_page(browser)
    ids = {kind: opened(page, address, trace) for kind, trace in TRACES.items()}
    after = {kind: opened(page, address, trace) for kind, trace in AFTER.items()}
    shots = [(name, f"/{name}", "light") for name in ONCE]
    shots += [
        (f"{name.replace('_', '-')}-{kind}", f"/{name}?trace={trace}", "light")
        for kind, trace in ids.items()
        for name in PAGES
    ]
    shots += [
        (f"compare-{kind}", f"/compare?trace={trace}&before={ids[kind]}&after={trace}", "light")
        for kind, trace in after.items()
    ]
    shots.append(("timeline-cuda-dark", f"/timeline?trace={ids['cuda']}", "dark"))
    unknown = wanted - {title for title, _, _ in shots}
    if unknown:
        raise SystemExit(f"no such picture: {', '.join(sorted(unknown))}")
    for title, place, scheme in shots:
        if wanted and title not in wanted:
            continue
        one = new_page(browser, scheme)
        one.goto(f"{address}{place}" if title != "open" else address)
        still(one)
        if title.startswith("timeline"):
            select(one)
        keep(one, title)
        one.context.close()


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="*", help="names of pictures, without .png")
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    browser_path = chromium()
    if browser_path is None:
        raise SystemExit("No Chromium on the PATH: install the Debian package chromium.")
    port = free_port()
    with running(as_a_user(port), port) as started, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=[*FLAGS, "--hide-scrollbars"])
        take(browser, started.address, set(options.only))
        browser.close()


if __name__ == "__main__":
    main()
