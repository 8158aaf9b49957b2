"""Measure how fast and how large loading a trace is, next to other tools, on the same file in the same run.

    python benchmarks/load.py                    200 MB
    python benchmarks/load.py --gb               200 MB and 1 GB
    python benchmarks/load.py --source t.json.gz --append

Every measurement runs in a process of its own; the order alternates, so that a slow minute of the machine hits all.
A peer that is not installed is skipped and named. HolisticTraceAnalysis needs pandas versions of its own: install it
with pip into a virtual environment and pass the interpreter of that with ``--hta-python``.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from make_large import write_large

RESULTS = Path(__file__).with_name("RESULTS.md")

PEERS = {
    "traceview.load": """
import numpy, polars, traceview
begin()
result = traceview.load(path)
""",
    "traceview reader only": """
import pathlib
import numpy, polars
from traceview.parsers.kineto.reader import read
begin()
result = read(pathlib.Path(path))
""",
    "orjson.loads": """
import orjson
data = open(path, "rb").read()
begin()
result = orjson.loads(data)
""",
    "orjson + polars": """
import orjson, polars
begin()
events = orjson.loads(open(path, "rb").read())["traceEvents"]
flat = [
    {**{k: v for k, v in e.items() if k != "args"}, **{f"args.{k}": v for k, v in e.get("args", {}).items()}}
    for e in events
]
names = {k: None for e in flat for k in e}
result = polars.DataFrame({n: polars.Series([e.get(n) for e in flat], strict=False) for n in names})
""",
    "HolisticTraceAnalysis": """
from hta.trace_analysis import TraceAnalysis
begin()
result = TraceAnalysis(trace_files={0: path}, trace_dir="")
""",
}
"""The code of each way of loading. The clock starts at begin(), when all that it imports is imported."""

WRAPPER = """
import json, sys, threading, time
path = sys.argv[1]
anonymous = 0
def watch():
    # Memory that the process itself asked for, without the pages of shared libraries, which the system can drop.
    global anonymous
    while True:
        try:
            status = open("/proc/self/status").read()
        except OSError:
            return
        anonymous = max(anonymous, int(status.split("RssAnon:")[1].split()[0]) * 1024)
        time.sleep(0.005)
threading.Thread(target=watch, daemon=True).start()
started = time.perf_counter()
base = 0
def begin():
    global base, started
    try:
        base = int(open("/proc/self/status").read().split("VmRSS:")[1].split()[0]) * 1024
    except OSError:
        pass
    started = time.perf_counter()
{code}
seconds = time.perf_counter() - started
try:
    # The maximum that getrusage gives starts with the memory of the process that started this one.
    status = open("/proc/self/status").read()
    peak = int(status.split("VmHWM:")[1].split()[0]) * 1024
except OSError:
    import resource
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print("RESULT " + json.dumps([seconds, peak, anonymous, base]))
"""


@dataclass
class Measured:
    """What was measured of one way of loading.

    Attributes:
        seconds: Of each run, imports not included.
        peaks: Most memory resident at a time, bytes.
        anonymous: The part of it that the process itself asked for, without pages of files.
        bases: What was resident when the imports were done.
        failure: Why there is nothing.
    """

    seconds: list[float] = field(default_factory=list)
    peaks: list[int] = field(default_factory=list)
    anonymous: list[int] = field(default_factory=list)
    bases: list[int] = field(default_factory=list)
    failure: str = ""


def measure(code: str, python: str, path: Path, timeout: int) -> tuple[float, int, int, int] | str:
    """Seconds, peak resident bytes, the anonymous part of them, those of the imports; or why there are none."""
    command = [python, "-c", WRAPPER.format(code=code), str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return f"took longer than {timeout} s"
    except OSError as error:
        return str(error)
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            seconds, peak, anonymous, base = json.loads(line.removeprefix("RESULT "))
            return float(seconds), int(peak), int(anonymous), int(base)
    lines = done.stderr.strip().splitlines() or ["ended without a result"]
    return lines[-1]


def run(path: Path, repeats: int, pythons: dict[str, str], timeout: int) -> dict[str, Measured]:
    """Measure every way of loading ``path`` several times, in turn."""
    results = {name: Measured() for name in PEERS}
    for _ in range(repeats):
        for name, code in PEERS.items():
            if results[name].failure:
                continue
            outcome = measure(code, pythons.get(name, sys.executable), path, timeout)
            if isinstance(outcome, str):
                results[name].failure = outcome
            else:
                results[name].seconds.append(outcome[0])
                results[name].peaks.append(outcome[1])
                results[name].anonymous.append(outcome[2])
                results[name].bases.append(outcome[3])
    return results


def table(path: Path, events: int, results: dict[str, Measured]) -> str:
    """The results as a Markdown table."""
    size = path.stat().st_size
    own = min(results["traceview.load"].seconds, default=None) or min(
        results["traceview reader only"].seconds, default=None
    )
    lines = [
        f"{size / 1e6:.0f} MB, {events} events; best and median of {max(len(r.seconds) for r in results.values())}",
        "",
        "| | best s | median s | over own best | peak MB (imports) | / file | above imports / file | own MB | / file |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, result in results.items():
        if result.failure or not result.seconds:
            lines.append(f"| {name} | skipped: {result.failure} | | | | | | | |")
            continue
        best, peak, anonymous = min(result.seconds), max(result.peaks), max(result.anonymous)
        above = max(peak - base for peak, base in zip(result.peaks, result.bases, strict=True))
        ratio = f"{best / own:.2f}" if own else ""
        lines.append(
            f"| {name} | {best:.2f} | {statistics.median(result.seconds):.2f} | {ratio} | {peak / 1e6:.0f} "
            f"({max(result.bases) / 1e6:.0f}) | {peak / size:.2f} | {above / size:.2f} "
            f"| {anonymous / 1e6:.0f} | {anonymous / size:.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, help="trace whose events are repeated")
    parser.add_argument("--mb", type=int, default=200)
    parser.add_argument("--gb", action="store_true", help="measure 1000 MB as well")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--timeout", type=int, default=600, help="seconds, for each measurement")
    parser.add_argument("--hta-python", default=sys.executable, help="interpreter that has HolisticTraceAnalysis")
    parser.add_argument("--append", action="store_true", help=f"append the tables to {RESULTS.name}")
    options = parser.parse_args()
    source = options.source or default_source()
    pythons = {"HolisticTraceAnalysis": options.hta_python}
    with tempfile.TemporaryDirectory() as folder:
        for megabytes in [options.mb, *([1000] if options.gb else [])]:
            path = Path(folder) / f"trace_{megabytes}.json"
            events = write_large(source, path, megabytes * 1_000_000)
            text = table(path, events, run(path, options.repeats, pythons, options.timeout))
            path.unlink()
            print(f"{source.name} repeated: {text}\n", flush=True)
            if options.append:
                append(source.name, text)


def default_source() -> Path:
    """A real trace, from the folder that the tests use, too."""
    corpus = Path(os.environ.get("TRACEVIEW_CORPUS") or Path(__file__).resolve().parents[2] / "shared" / "corpus")
    # The largest one, so that as little as possible repeats.
    source = max((corpus / "pytorch").glob("*.json.gz"), key=lambda path: path.stat().st_size, default=corpus)
    if not source.is_file():
        raise SystemExit("no trace to repeat: pass one with --source, or set TRACEVIEW_CORPUS")
    return source


def append(source: str, text: str) -> None:
    """Add a table to the results, with date and machine."""
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(f"\n## {dt.datetime.now(dt.UTC).date()}, {machine}\n\n{source} repeated: {text}\n")


if __name__ == "__main__":
    main()
