"""Measure how fast and how large loading an XSpace is, next to XProf's own conversion and JAX's reader, in one run.

    python benchmarks/load_xprof.py t.xplane.pb               200 MB, made by repeating the events of t.xplane.pb
    python benchmarks/load_xprof.py t.xplane.pb --mb 400 --append
    python benchmarks/load_xprof.py                           repeats the authored TPU sample

Each event is written again and again with its start moved on, so that the file is as real as its source; the names, the
stats of names and the programs are written once. XProf is given the file in a folder of its own, because it keeps
results beside it. Peers that are not installed are skipped and named: pip install xprof jax.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

import load
from load import Measured

SAMPLE = Path(__file__).resolve().parents[1] / "sample_traces" / "xprof" / "jax-tpu-unfused.xprof-authored.xplane.pb"

PEERS = {
    "traceview.load": """
import numpy, polars, traceview
from traceview.parsers.xprof import reading, mapping
begin()
result = traceview.load(path)
""",
    "traceview, parser only": """
import pathlib
import numpy, polars
from traceview.parsers.xprof.reading import read
begin()
result = read(pathlib.Path(path), run=0, progress=None)
""",
    "traceview, parser without the compiled scanner": """
import pathlib
import numpy, polars
from traceview.parsers.xprof import columns
from traceview.parsers.xprof.reading import read
columns._wire = None
begin()
result = read(pathlib.Path(path), run=0, progress=None)
""",
    "xprof to Parquet": """
import os
from xprof.convert.events_db.python import pywrap_events_db_c_api as xprof_events
begin()
xprof_events.xspace_to_parquet(input_path=path, output_path=path + ".parquet")
seconds_of_conversion = time.perf_counter() - started
assert os.path.getsize(path + ".parquet") > 1000
os.remove(path + ".parquet")
""",
    "xprof to Parquet, read by polars": """
import os, polars
from xprof.convert.events_db.python import pywrap_events_db_c_api as xprof_events
begin()
xprof_events.xspace_to_parquet(input_path=path, output_path=path + ".parquet")
result = polars.read_parquet(path + ".parquet")
os.remove(path + ".parquet")
""",
    "jax ProfileData, names and times": """
from jax.profiler import ProfileData
begin()
data = ProfileData.from_file(path)
rows = [(e.name, e.start_ns, e.duration_ns) for p in data.planes for line in p.lines for e in line.events]
""",
    "jax ProfileData, with stats": """
from jax.profiler import ProfileData
begin()
data = ProfileData.from_file(path)
rows = [
    (e.name, e.start_ns, e.duration_ns, list(e.stats)) for p in data.planes for line in p.lines for e in line.events
]
""",
}
"""The code of each way of loading. The clock starts at begin(), when all that it imports is imported."""


def varint(value: int) -> bytes:
    """A number in the variable-length form of protocol buffers."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A number and the position behind it."""
    value = shift = 0
    while True:
        octet = data[at]
        at += 1
        value |= (octet & 0x7F) << shift
        if octet < 0x80:
            return value, at
        shift += 7


def fields(data: bytes, at: int, end: int) -> list[tuple[int, int, int, int]]:
    """``(tag, start of the field, start of the value, end)`` of each field."""
    found = []
    while at < end:
        start = at
        tag, at = read_varint(data, at)
        if tag & 7 == 2:
            size, at = read_varint(data, at)
            found.append((tag, start, at, at + size))
            at += size
        elif tag & 7 == 0:
            body = at
            _, at = read_varint(data, at)
            found.append((tag, start, body, at))
        else:
            size = 8 if tag & 7 == 1 else 4
            found.append((tag, start, at, at + size))
            at += size
    return found


def write_large(source: Path, target: Path, size: int) -> int:
    """Write ``source`` with its events repeated until it has about ``size`` bytes.

    Returns:
        Number of events written.
    """
    data = source.read_bytes()
    planes = [(start, end) for tag, _, start, end in fields(data, 0, len(data)) if tag == 1 << 3 | 2]
    events_bytes = sum(
        line_end - line_start
        for start, end in planes
        for tag, _, line_start, line_end in fields(data, start, end)
        if tag == 3 << 3 | 2
    )
    times = max(1, -(-(size - len(data) + events_bytes) // max(events_bytes, 1)))
    span = max((_last_ps(data, start, end) for start, end in planes), default=0) + 1
    events = 0
    with target.open("wb") as out:
        for tag, field_start, start, end in fields(data, 0, len(data)):
            if tag != 1 << 3 | 2:
                out.write(data[field_start:end])
                continue
            body = bytearray()
            for inner, inner_start, at, stop in fields(data, start, end):
                if inner != 3 << 3 | 2:
                    body += data[inner_start:stop]
                    continue
                line, count = _repeated(data, at, stop, times, span)
                events += count
                body += varint(inner) + varint(len(line)) + line
            out.write(varint(tag) + varint(len(body)))
            out.write(body)
    return events


def _last_ps(data: bytes, start: int, end: int) -> int:
    last = 0
    for tag, _, at, stop in fields(data, start, end):
        if tag != 3 << 3 | 2:
            continue
        for inner, _, begin, finish in fields(data, at, stop):
            if inner == 4 << 3 | 2:
                numbers = {t: read_varint(data, v)[0] for t, _, v, _ in fields(data, begin, finish) if t & 7 == 0}
                last = max(last, numbers.get(2 << 3, 0) + numbers.get(3 << 3, 0))
    return last


def _repeated(data: bytes, start: int, end: int, times: int, span: int) -> tuple[bytearray, int]:
    """A line with its events ``times`` over."""
    line = bytearray()
    events: list[tuple[bytes, int, bytes]] = []
    for tag, field_start, at, stop in fields(data, start, end):
        if tag != 4 << 3 | 2:
            line += data[field_start:stop]
            continue
        before, offset, after = bytearray(), 0, bytearray()
        for inner, inner_start, value, finish in fields(data, at, stop):
            if inner == 2 << 3:
                offset = read_varint(data, value)[0]
            else:
                (before if inner == 1 << 3 else after).extend(data[inner_start:finish])
        events.append((bytes(before), offset, bytes(after)))
    for turn in range(times):
        shift = turn * span
        for before, offset, after in events:
            body = before + b"\x10" + varint(offset + shift) + after
            line += b"\x22" + varint(len(body)) + body
    return line, len(events) * times


def run(path: Path, repeats: int, timeout: int, without: list[str]) -> dict[str, Measured]:
    """Measure every way of loading ``path`` several times, in turn."""
    results = {name: Measured(failure="not asked for" if name in without else "") for name in PEERS}
    for _ in range(repeats):
        for name, code in PEERS.items():
            if results[name].failure:
                continue
            outcome = load.measure(code, sys.executable, path, timeout)
            if isinstance(outcome, str):
                results[name].failure = outcome
                continue
            for values, value in zip(
                (results[name].seconds, results[name].peaks, results[name].anonymous), outcome, strict=True
            ):
                values.append(value)  # type: ignore[arg-type]  # seconds, bytes, bytes
    return results


def table(path: Path, events: int, results: dict[str, Measured]) -> str:
    """The results as a Markdown table."""
    size = path.stat().st_size
    own = results["traceview.load"]
    lines = [
        f"{size / 1e6:.0f} MB, {events} events; best and median of {max(len(r.seconds) for r in results.values())}",
        "",
        "| | best s | median s | over traceview's best | peak RSS MB | over traceview's | anonymous MB |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, result in results.items():
        if result.failure or not result.seconds:
            lines.append(f"| {name} | skipped: {result.failure[:120]} | | | | | |")
            continue
        best, peak = min(result.seconds), max(result.peaks)
        lines.append(
            f"| {name} | {best:.2f} | {statistics.median(result.seconds):.2f} | {best / min(own.seconds):.2f} "
            f"| {peak / 1e6:.0f} | {peak / max(own.peaks):.2f} | {max(result.anonymous) / 1e6:.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, nargs="*", default=[SAMPLE], help="profiles whose events are repeated")
    parser.add_argument("--mb", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--timeout", type=int, default=600, help="seconds, for each measurement")
    parser.add_argument("--without", action="append", default=[], choices=list(PEERS), help="leave one out")
    parser.add_argument("--append", action="store_true", help=f"append the tables to {load.RESULTS.name}")
    options = parser.parse_args()
    for source in options.source:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "host.xplane.pb"
            events = write_large(source, path, options.mb * 1_000_000)
            text = table(path, events, run(path, options.repeats, options.timeout, options.without))
        print(f"{source.name} repeated: {text}\n", flush=True)
        if options.append:
            load.append(source.name, text)


if __name__ == "__main__":
    main()
