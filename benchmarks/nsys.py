"""Measure reading an Nsight Systems export into a linked timeline, next to sqlite3 with pandas and to nsys-ai.

    python benchmarks/nsys.py                              3 million kernels
    python benchmarks/nsys.py --peers /path/to/venv/bin/python --append

Every measurement runs in a process of its own; the order alternates, so that a slow minute of the machine hits all. CPU
seconds are given beside wall seconds: on a shared machine they say more. pandas and nsys-ai are peers, not
dependencies: install both with pip into a virtual environment and pass its interpreter with ``--peers``.

What the peers do is less than what traceview does: they fetch rows. traceview also names them, sorts them, links every
kernel to its launch and to the op around it, and checks the row counts.
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

from make_nsys import write_large

RESULTS = Path(__file__).with_name("RESULTS.md")

OWN = """
import numpy, polars, traceview, traceview.linking, traceview.parsers.nsys.reader
begin()
result = traceview.load(path)
frame = result.events.estimated_size()
"""
PLAIN = (
    """
import traceview.parsers.nsys.adbc as adbc
adbc.AVAILABLE = False
"""
    + OWN
)

SAME = """
import sqlite3, pandas
begin()
c = sqlite3.connect(path)
result = [
    pandas.read_sql_query(query, c)
    for query in (
        'SELECT start, "end", deviceId, streamId, correlationId, globalPid, demangledName '
        'FROM CUPTI_ACTIVITY_KIND_KERNEL',
        'SELECT start, "end", eventClass, globalTid, correlationId, nameId FROM CUPTI_ACTIVITY_KIND_RUNTIME',
        'SELECT start, "end", eventType, globalTid, textId, domainId, text FROM NVTX_EVENTS',
        'SELECT start, "end", deviceId, streamId, correlationId, globalPid, bytes, copyKind, srcKind, dstKind '
        'FROM CUPTI_ACTIVITY_KIND_MEMCPY',
        'SELECT id, value FROM StringIds',
    )
]
frame = 0
"""
JOINED = """
import sqlite3, pandas
begin()
c = sqlite3.connect(path)
k, r, n, m, s = [
    pandas.read_sql_query(query, c)
    for query in (
        'SELECT start, "end", deviceId, streamId, correlationId, globalPid, demangledName '
        'FROM CUPTI_ACTIVITY_KIND_KERNEL',
        'SELECT start, "end", eventClass, globalTid, correlationId, nameId FROM CUPTI_ACTIVITY_KIND_RUNTIME',
        'SELECT start, "end", eventType, globalTid, textId, domainId, text FROM NVTX_EVENTS',
        'SELECT start, "end", deviceId, streamId, correlationId, globalPid, bytes, copyKind, srcKind, dstKind '
        'FROM CUPTI_ACTIVITY_KIND_MEMCPY',
        'SELECT id, value FROM StringIds',
    )
]
names = s.set_index("id")["value"]
k["name"] = k["demangledName"].map(names)
r["name"] = r["nameId"].map(names)
n["name"] = n["text"].fillna(n["textId"].map(names))
r["globalPid"] = r["globalTid"] // 2**24 * 2**24
k = k.merge(r, on=["globalPid", "correlationId"], how="left", suffixes=("", "_call"))
m = m.merge(r, on=["globalPid", "correlationId"], how="left", suffixes=("", "_call"))
frame = 0
"""
ALL = """
import sqlite3, pandas
begin()
c = sqlite3.connect(path)
kinds = [f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "RUNTIME", "MEMCPY")]
result = [pandas.read_sql_query(f"SELECT * FROM {table}", c) for table in (*kinds, "NVTX_EVENTS", "StringIds")]
frame = 0
"""
NSYS_AI = """
import os, shutil, tempfile
import nsys_ai.profile as profile
folder = tempfile.mkdtemp(dir=os.path.dirname(path))
copy = os.path.join(folder, "copy.sqlite")
os.link(path, copy)  # it writes a cache beside the file
os.environ["NSYS_AI_CACHE_MODE"] = "direct"
begin()
result = profile.Profile(copy, cache_mode="direct")
rows = result.kernels(None)
frame = 0
end()
shutil.rmtree(folder)
"""

OURS = {"traceview.load": OWN, "traceview.load, no extra": PLAIN}
PEERS = {
    "sqlite3 + pandas, SELECT *": ALL,
    "sqlite3 + pandas, the columns that are needed": SAME,
    "the same, names and launches joined in pandas": JOINED,
    "nsys-ai: all kernels, nothing linked": NSYS_AI,
}
"""The code of each way. The clock starts at begin(), when all that it imports is imported."""

WRAPPER = """
import json, sys, time
path = sys.argv[1]
started, cpu, taken = time.perf_counter(), time.process_time(), None
def begin():
    global started, cpu
    started, cpu = time.perf_counter(), time.process_time()
def end():
    global taken
    taken = taken or (time.perf_counter() - started, time.process_time() - cpu)
{code}
end()
status = open("/proc/self/status").read()
peak = int(status.split("VmHWM:")[1].split()[0]) * 1024
print("RESULT " + json.dumps([*taken, peak, frame]))
"""


@dataclass
class Measured:
    """What was measured of one way: wall and CPU seconds, peak resident bytes, bytes of the event frame."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    peak: int = 0
    frame: int = 0
    failure: str = ""


def measure(code: str, python: str, path: Path, timeout: int, into: Measured) -> None:
    """Run one way once."""
    command = [python, "-c", WRAPPER.format(code=code), str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        into.failure = f"took longer than {timeout} s"
        return
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            wall, cpu, peak, frame = json.loads(line.removeprefix("RESULT "))
            into.wall.append(wall)
            into.cpu.append(cpu)
            into.peak, into.frame = max(into.peak, peak), frame
            return
    into.failure = (done.stderr.strip().splitlines() or ["ended without a result"])[-1]


def table(path: Path, rows: dict[str, int], results: dict[str, Measured]) -> str:
    """The results as a Markdown table."""
    own = results["traceview.load"]
    listed = ", ".join(f"{count:,} {name.removeprefix('CUPTI_ACTIVITY_KIND_')}" for name, count in rows.items())
    repeats = max(len(result.wall) for result in results.values())
    lines = [
        f"{path.stat().st_size / 1e6:.0f} MB: {listed}; best and median of {repeats}.",
        "",
        "| | best s | median s | best CPU s | best over own best | CPU over own | peak RSS MB | of the frame |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, result in results.items():
        if result.failure or not result.wall:
            lines.append(f"| {name} | skipped: {result.failure} | | | | | | |")
            continue
        wall, cpu = min(result.wall), min(result.cpu)
        frame = f"{result.peak / result.frame:.2f}" if result.frame else ""
        lines.append(
            f"| {name} | {wall:.2f} | {statistics.median(result.wall):.2f} | {cpu:.2f} | {wall / min(own.wall):.2f} "
            f"| {cpu / min(own.cpu):.2f} | {result.peak / 1e6:.0f} | {frame} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=int, default=3_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--timeout", type=int, default=900, help="seconds, for each measurement")
    parser.add_argument("--peers", default=sys.executable, help="interpreter that has pandas and nsys-ai")
    parser.add_argument("--append", action="store_true", help=f"append the table to {RESULTS.name}")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.sqlite"
        rows = write_large(path, options.kernels)
        results = {name: Measured() for name in (*OURS, *PEERS)}
        for _ in range(options.repeats):
            for name, code in {**OURS, **PEERS}.items():
                if not results[name].failure:
                    python = sys.executable if name in OURS else options.peers
                    measure(code, python, path, options.timeout, results[name])
        text = table(path, rows, results)
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    print(text)
    if options.append:
        machine = (
            f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
        )
        with RESULTS.open("a", encoding="utf-8") as file:
            heading = f"## Nsight Systems export, {dt.datetime.now(dt.UTC).date()}, {machine}"
            file.write(f"\n{heading}\n\nLoad average while measuring: {load}. {text}\n")


if __name__ == "__main__":
    main()
