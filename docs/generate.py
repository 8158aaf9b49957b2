"""Write the pages and parts of pages that are generated from the code, or check that they are up to date.

A part lies between ``<!-- begin generated: NAME -->`` and ``<!-- end generated: NAME -->``. The output printed under
each ``$ command`` of a ``console`` block is generated too; where it holds ``...``, that stands for anything.

Usage: ``python docs/generate.py`` writes, ``python docs/generate.py --check`` only compares and exits 1 with the
first difference of each stale page.
"""

from __future__ import annotations

import difflib
import doctest
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import sdpa_tables
from markdown_table import table

from traceview import (
    allocations,
    collective_skew,
    gaps,
    host_waits,
    idle_split,
    launch_health,
    recompiles,
    schema,
    transfers,
)
from traceview.knowledge.idle_causes import CAUSE_DOCS, NOT_RECOVERABLE, Cause
from traceview.rules.base import HEADINGS
from traceview.rules.catalogue import RULES
from traceview.stage_table import STAGES
from traceview.steps import STEPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parent.parent


def dtype_text(dtype: pl.DataType | type[pl.DataType]) -> str:
    """The dtype as a reader would write it in Polars; the one enum refers to the list of kinds."""
    if dtype == gaps.CAUSE:
        return "`Enum` ([causes](#causes-of-idle-time))"
    if dtype == schema.Kind:
        return "`Enum` ([kinds](#kinds))"
    return f"`Enum`: {', '.join(dtype.categories)}" if isinstance(dtype, pl.Enum) else f"`{dtype}`"


def frame_section(frame: schema.FrameSchema) -> Iterator[str]:
    """One frame: what it is, then a row per column."""
    yield from (f"## {frame.name}", "", frame.doc, "")
    yield from table(
        ("column", "dtype", "unit", "null", "meaning"),
        ((f"`{c.name}`", dtype_text(c.dtype), c.unit, "yes" if c.nullable else "", c.doc) for c in frame.columns),
    )
    yield ""


def schema_page() -> Iterator[str]:
    """``docs/schema.md``: every public frame, column by column."""
    yield from (
        "# The timeline, column by column",
        "",
        "<!-- Generated from traceview/schema.py by `make docs`. Change it there. -->",
        "",
        f"This is version {schema.SCHEMA_VERSION} of the contract (`traceview.schema.SCHEMA_VERSION`).",
        "",
        "- A trace of any format becomes one `Timeline`: the frames below, plus `runs` (one `RunInfo` per file) and",
        "  `report` (what the import skipped, repaired or doubts, see [trust](trust.md)).",
        "- All times are whole nanoseconds (`Int64`), counted from the trace's own origin, the start of its first",
        "  event. Decimal microseconds in a file are parsed as text, never through a float, so that no time is rounded",
        "  before it has to be. `RunInfo.origin_unix_ns` is the origin in Unix time when the file knows it.",
        "- A column marked *null: yes* may hold null, and null always means *not recorded* or *does not apply*. It",
        "  never means zero.",
        "- A key (`process`, `thread`, `device`, `inputs`) is valid inside one `Timeline` only. Two files never share",
        "  a process or a device, so a join through a key cannot mix ranks.",
        "",
        "**Promise.** A column keeps its name, dtype, unit and meaning as long as the version stays the same. New",
        "columns and new frames may come without a new version, so select columns by name. A removed column or a",
        "changed meaning raises the version, and the changelog says so.",
        "",
    )
    for frame in schema.FRAMES:
        yield from frame_section(frame)
    yield from ("## Kinds", "", "`events.kind` is one closed list for all formats.", "")
    yield from table(
        ("kind", "busy", "meaning"),
        ((f"`{kind}`", "yes" if kind in schema.BUSY_KINDS else "", schema.KIND_DOCS[kind]) for kind in schema.KINDS),
    )
    yield from (
        "",
        "*Busy* kinds occupy a device. Device-busy time is the length of the **union** of the intervals of these rows",
        "on one device: overlap counts once. Waits, synchronisation, annotations and module spans never count as busy.",
    )


ANSWERS = {
    "Idle time (`traceview.gaps`, `traceview.idle_split`)": (gaps.GAP_PIECES, gaps.GAPS, idle_split.IDLE_BY_CAUSE),
    "Launching (`traceview.launch_health`, `traceview.host_waits`)": (
        launch_health.LAUNCH_HEALTH,
        launch_health.QUEUE_DEPTH,
        launch_health.LAUNCH_BOUND_REGIONS,
        host_waits.HOST_WAITS,
    ),
    "Ranks (`traceview.collective_skew`)": (collective_skew.COLLECTIVE_WAITS, collective_skew.SKEW_BY_DEVICE),
    "Compilations (`traceview.recompiles`)": (recompiles.RECOMPILES,),
    "Transfers and memory (`traceview.transfers`, `traceview.allocations`)": (
        transfers.TRANSFERS,
        transfers.COPIES,
        allocations.ALLOCATIONS,
    ),
}
"""The frames that analyses of time return, by question."""


def answers_page() -> Iterator[str]:
    """``docs/answers.md``: the frames of the answers about time, column by column, and the causes of idle time."""
    yield from (
        "# Frames of the answers",
        "",
        "<!-- Generated from the frame descriptions in traceview/ by `make docs`. Change them there. -->",
        "",
        "Functions of the Python API take a timeline and return these frames; `--format json` holds the same columns.",
        "Times are whole nanoseconds from the trace's own origin. Null means *not recorded* or *does not apply*.",
        "",
    )
    for question, frames in ANSWERS.items():
        yield from (f"## {question}", "")
        for frame in frames:
            yield from (f"#{line}" if line.startswith("## ") else line for line in frame_section(frame))
    yield from ("## Causes of idle time", "", "`cause` is one closed list for all formats.", "")
    yield from table(
        ("cause", "to win", "meaning"),
        ((f"`{cause.value}`", "" if cause in NOT_RECOVERABLE else "yes", CAUSE_DOCS[cause]) for cause in Cause),
    )


def rules_page() -> Iterator[str]:
    """``docs/rules.md``: the rule list, then the docstring of each rule."""
    yield from (
        "# Rules",
        "",
        "<!-- Generated from the docstrings in traceview/rules/ by `make docs`. Change them there. -->",
        "",
        "A code is never reused. TV1xx dispatch, TV2xx precision, TV3xx compilation, TV4xx host gaps and syncs, TV5xx",
        "transfers and memory, TV9xx trace integrity.",
        "",
    )
    yield from table(
        ("code", "name", "worst severity", "finds"),
        ((f"[{r.code}](#{r.code.lower()}-{r.name})", r.name, r.severity, markdown(r.summary)) for r in RULES),
    )
    for rule in RULES:
        yield from ("", f"## {rule.code} {rule.name}", "")
        for line in rule.doc.splitlines():
            yield f"**{line}.**" if line in HEADINGS else markdown(line.strip())


def markdown(text: str) -> str:
    """Docstring markup as Markdown."""
    return text.replace("``", "`")


def demo() -> Iterator[str]:
    """What ``make demo`` shows: the command on its sample, as a terminal without colour prints it.

    Raises:
        RuntimeError: the command could not run, so there is nothing to show.
    """
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    trace = re.search(r"^DEMO_TRACE \?= (\S+)$", makefile, re.MULTILINE)
    if not trace:
        raise RuntimeError("the Makefile names no DEMO_TRACE")
    command = ["traceview", "check-dispatch", trace[1]]
    done = shell(" ".join(command), ROOT)
    if done.returncode not in (0, 1, 3):
        raise RuntimeError(f"{' '.join(command)} exited with {done.returncode}: {done.stdout}")
    yield from ("```console", "$ " + " ".join(command))
    yield from shortened(done.stdout.rstrip("\n").splitlines(), "Other device work")
    yield from ("$ echo $?", str(done.returncode), "```")


def shell(command: str, folder: Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run one line of a console block: no terminal, no colour, both streams as one; ``$?`` is ``status`` before."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    plain = {"PATH": path, "NO_COLOR": "1", "COLUMNS": "120", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    line = ["bash", "-c", f"exec 2>&1; (exit {status})\n{command}"]
    return subprocess.run(
        line, cwd=folder, env=plain, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


_FILE = re.compile(r"^```\w+ file=(?P<file>\S+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
"""A block that a page gives as a file, which its commands then find in their folder."""


def rerun(text: str) -> str:
    """A page whose console blocks show what the commands print now. Output that still holds stays as written."""
    status = 0
    checker, tolerant = doctest.OutputChecker(), doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

    def block(match: re.Match[str]) -> str:
        nonlocal status
        lead, *parts = re.split(r"^\$ ", match[2], flags=re.MULTILINE)
        for part in parts:
            command, _, before = part.partition("\n")
            done = shell(command, folder, status)
            status = done.returncode
            lead += f"$ {command}\n" + (before if checker.check_output(before, done.stdout, tolerant) else done.stdout)
        return match[1] + lead + match[3]

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "sample_traces").symlink_to(ROOT / "sample_traces")
        for written in _FILE.finditer(text):
            (folder / written["file"]).write_text(written["body"], encoding="utf-8")
        return re.sub(r"^(```console\n)(.*?)(^```$)", block, text, flags=re.MULTILINE | re.DOTALL)


def shortened(lines: list[str], section: str) -> list[str]:
    """Output with one section, from its heading to the next blank line, replaced by ``...``."""
    if section not in lines:
        return lines
    start = lines.index(section)
    end = lines.index("", start) if "" in lines[start:] else len(lines)
    return [*lines[:start], "...", *lines[end:]]


def columns(frame: schema.FrameSchema) -> Iterator[str]:
    """The columns of one frame, without a heading."""
    yield from list(frame_section(frame))[4:-1]


PARTS: dict[str, Callable[[], Iterator[str]]] = {
    "stages-frame": lambda: columns(STAGES),
    "steps-frame": lambda: columns(STEPS),
    "demo": demo,
    "sdpa-orders": sdpa_tables.orders,
    "sdpa-rules": sdpa_tables.rules,
    "sdpa-sources": sdpa_tables.sources,
}
"""Name of a generated part to the function that yields its lines."""


def filled(text: str) -> str:
    """A page with its generated parts filled in.

    Raises:
        KeyError: a part has no generator.
    """

    def part(match: re.Match[str]) -> str:
        return "\n".join((match[1], *PARTS[match[2]](), match[3]))

    return re.sub(r"(<!-- begin generated: (\S+) -->)\n.*?(<!-- end generated: \2 -->)", part, text, flags=re.DOTALL)


def pages() -> dict[Path, str]:
    """Path to content of every page that is generated, whole or in part."""
    written = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = {path: rerun(filled(path.read_text(encoding="utf-8"))) for path in written if path.exists()}
    whole = {"schema.md": schema_page(), "answers.md": answers_page(), "rules.md": rules_page()}
    return found | {ROOT / "docs" / name: "\n".join(lines) + "\n" for name, lines in whole.items()}


def stale(path: Path, want: str) -> list[str]:
    """The difference between the page and what it should hold; empty when it is up to date."""
    have = path.read_text(encoding="utf-8") if path.exists() else ""
    name = path.relative_to(ROOT).as_posix()
    return list(
        difflib.unified_diff(have.splitlines(), want.splitlines(), name, f"{name} (generated)", lineterm="", n=0)
    )


def main(arguments: list[str]) -> int:
    """Write all pages, or with ``--check`` report those that differ."""
    if arguments not in ([], ["--check"]):
        print("usage: python docs/generate.py [--check]", file=sys.stderr)
        return 2
    problems = 0
    for path, want in pages().items():
        difference = stale(path, want)
        if difference and arguments:
            problems += 1
            print("\n".join(difference[:20]))
            print(f"{path.relative_to(ROOT)} is out of date: run `make docs` and commit the result.", file=sys.stderr)
        elif difference:
            path.write_text(want, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
