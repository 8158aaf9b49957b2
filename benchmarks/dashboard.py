"""Measure the dashboard with a large trace: from a link to the answer, to the timeline, and a redraw after each zoom.

Starts `traceview dashboard` as a user does, looks at it with the Chromium of the system, and reads the time of each
redraw from the page itself. The trace is a small one, repeated until it has so many events.

    python benchmarks/dashboard.py [trace.json.gz] --events 1000000
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from make_large import load_text, split_events, write_large

sys.path.append(str(Path(__file__).resolve().parent.parent / "tools"))

from dashboard_process import FLAGS, as_a_user, chromium, free_port, running

SAMPLE = Path(__file__).resolve().parent.parent / "sample_traces" / "flash-requested-math-ran.cuda-authored.json.gz"
CANVAS = "canvas[aria-roledescription=timeline][data-draws]"
ZOOMS = 60

# Presses a key so many times, each after the frame of the one before, and gives the time of each redraw and of the
# whole frame, in milliseconds.
MEASURE = """async ([canvas, keys]) => {
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const draws = [], frames = [];
  for (const key of keys) {
    const before = performance.now();
    canvas.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    await frame();
    frames.push(performance.now() - before);
    draws.push(Number(canvas.dataset.drawMs));
  }
  return { draws, frames };
}"""


def processor_time(pid: int) -> float:
    """Processor time of a process and those it started, seconds; where Linux does not tell, not a number."""
    total = 0.0
    try:
        for one in [str(pid), *Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]:
            fields = Path(f"/proc/{one}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return float("nan")
    return total


def measured(address: str, pid: int) -> dict[str, Any]:
    """Seconds to the answer and to the timeline, milliseconds of each redraw, and how many events are drawn."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(180_000)
        begin = time.perf_counter()
        page.goto(address)
        page.locator("[class*=st-key-headline]").first.wait_for()
        answer = time.perf_counter() - begin
        answer_cpu = processor_time(pid)
        page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()
        clicked, clicked_cpu = time.perf_counter(), processor_time(pid)
        page.get_by_role("link", name="Timeline", exact=True).first.click()
        canvas = page.locator(CANVAS)
        canvas.wait_for()
        timeline, timeline_cpu = time.perf_counter() - clicked, processor_time(pid) - clicked_cpu
        first_draw = float(canvas.get_attribute("data-draw-ms") or "nan")
        # In to a thousandth of the trace and out again, with some moves, three times.
        keys = (["w"] * 8 + ["d", "a"] + ["s"] * 10) * (ZOOMS // 20)
        found = page.evaluate(MEASURE, [canvas.element_handle(), keys])
        label = canvas.get_attribute("aria-label") or ""
        browser.close()
    return {
        "answer": answer,
        "answer_cpu": answer_cpu,
        "timeline": timeline,
        "timeline_cpu": timeline_cpu,
        "first_draw": first_draw,
        "label": label,
        **found,
    }


def main() -> None:
    """Make the trace, measure, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, nargs="?", default=SAMPLE, help="trace to repeat")
    parser.add_argument("--events", type=int, default=1_000_000, help="about so many events")
    parser.add_argument("--runs", type=int, default=2)
    options = parser.parse_args()
    text = load_text(options.source)
    bytes_an_event = len(text) / len(split_events(text)[1])
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "large.json"
        count = write_large(options.source, trace, int(bytes_an_event * options.events))
        print(
            f"## The dashboard, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {platform.system()} {platform.machine()}, "
            f"{os.cpu_count()} cores, Python {platform.python_version()}\n"
        )
        load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
        size = f"{trace.stat().st_size / 1e6:.0f} MB"
        print(f"{options.source.name} repeated: {size}, {count:,} events; load of the machine before: {load}\n")
        print(
            "CPU is the processor time of the server alone; with other work on the machine the seconds beside it are "
            "longer than they would be.\n\n"
            "| | link to answer s | CPU s | Timeline clicked to drawn s | CPU s | first redraw ms | redraw median ms "
            "| worst ms | frame median ms | worst ms |\n|---|---|---|---|---|---|---|---|---|---|"
        )
        for run in range(options.runs):
            port = free_port()
            with running(as_a_user(port, trace), port) as started:
                found = measured(*started)
            draws, frames = found["draws"], found["frames"]
            print(
                f"| run {run + 1} | {found['answer']:.1f} | {found['answer_cpu']:.1f} | {found['timeline']:.1f} | "
                f"{found['timeline_cpu']:.1f} | {found['first_draw']:.1f} | {statistics.median(draws):.1f} | "
                f"{max(draws):.1f} | {statistics.median(frames):.1f} | {max(frames):.1f} |",
                flush=True,
            )
        print(f"\n{found['label'].split('.')[0]}.")


if __name__ == "__main__":
    main()
