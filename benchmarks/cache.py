"""Measure what the cache saves: the first load of a trace, the same again from the cache, and a command on it.

    python benchmarks/cache.py                        200 MB made of an authored sample
    python benchmarks/cache.py t.json.gz --mb 200     made by repeating the events of t.json.gz
    python benchmarks/cache.py big.json --mb 0        this very file

Each measurement runs in a process of its own, with a cache of its own. Seconds of the loads do not count imports; those
of the command do.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from load import measure
from make_large import write_large

SAMPLE = Path(__file__).resolve().parents[1] / "sample_traces" / "flash-requested-math-ran.cuda-authored.json.gz"

LOAD = """
import numpy, polars, traceview
from pathlib import Path
import traceview.cache
begin()
result = traceview.load(path{more})
"""
KEPT = ", cache=traceview.cache.Cache(Path({folder!r}))"


def command(path: Path, folder: Path, *more: str) -> float:
    """Seconds of ``check-dispatch`` from start to end."""
    environment = {**os.environ, "TRACEVIEW_CACHE_DIR": str(folder), "TRACEVIEW_NO_CACHE": ""}
    started = time.perf_counter()
    program = [sys.executable, "-c", "from traceview.cli.main import main; main()", "check-dispatch", str(path), *more]
    subprocess.run(program, env=environment, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started


def measure_all(path: Path, repeats: int) -> list[tuple[str, list[float], float]]:
    """Label, seconds of every run, and the largest peak in MB, in the order of the table."""
    plain, first, again = [], [], []
    commands: dict[str, list[float]] = {"check-dispatch --no-cache": [], "check-dispatch, from the cache": []}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            kept = LOAD.format(more=KEPT.format(folder=folder))
            for code, results in ((LOAD.format(more=""), plain), (kept, first), (kept, again)):
                outcome = measure(code, sys.executable, path, 600)
                if isinstance(outcome, str):
                    raise SystemExit(outcome)
                results.append(outcome)
            commands["check-dispatch --no-cache"].append(command(path, Path(folder), "--no-cache"))
            commands["check-dispatch, from the cache"].append(command(path, Path(folder)))
            size = sum(entry.stat().st_size for entry in Path(folder).glob("*.parquet"))
    print(f"entry: {size / 1e6:.1f} MB")
    rows = [
        (label, [one[0] for one in results], max(one[1] for one in results) / 1e6)
        for label, results in (
            ("load without a cache", plain), ("load, then kept", first), ("load from the cache", again),
        )
    ]  # fmt: skip
    return rows + [(label, seconds, 0.0) for label, seconds in commands.items()]


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", nargs="?", type=Path, default=SAMPLE)
    parser.add_argument("--mb", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.source
        if options.mb:
            path = Path(folder) / "large.json"
            write_large(options.source, path, options.mb * 1_000_000)
        # A file that was written a moment ago is hashed again, as its times cannot be trusted yet.
        time.sleep(2.1)
        rows = measure_all(path, options.repeats)
        print(
            f"{options.source.name}: {path.stat().st_size / 1e6:.0f} MB; best and median of {options.repeats}; ", end=""
        )
    print("load average " + " ".join(f"{one:.1f}" for one in os.getloadavg()) + "\n")
    base = min(rows[0][1])
    print("| | best s | median s | faster than without | peak RSS MB |\n|---|---|---|---|---|")
    for label, seconds, peak in rows:
        times = f"{base / min(seconds):.1f}" if peak else ""
        print(f"| {label} | {min(seconds):.3f} | {statistics.median(seconds):.3f} | {times} | {peak or '':.0f} |"
              if peak else f"| {label} | {min(seconds):.3f} | {statistics.median(seconds):.3f} | | |")  # fmt: skip


if __name__ == "__main__":
    main()
