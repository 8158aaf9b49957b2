"""A format of three lines, so that loading can be tested apart from every real parser."""

from __future__ import annotations

from dataclasses import replace

import pytest

from authored_timeline import kernel, op, unlinked
from traceview import sniffing
from traceview.errors import UnreadableTraceError
from traceview.timeline import Count, ImportReport


class ToyFormat:
    """Text such as ``TOY rank=0 origin=5000 kernels=2``; ``broken=yes`` cannot be parsed, ``lost=3`` lost events."""

    name = "toy"
    title = "Toy"

    def sniff(self, probe):
        return 1.0 if probe.text.startswith(b"TOY") else 0.0

    def parse(self, path, *, run, progress):
        facts = dict(word.split("=") for word in path.read_text().split()[1:])
        if "broken" in facts:
            raise UnreadableTraceError("bad-toy", where=str(path), why="the toy is broken.")
        if progress:
            progress(1.0)
        rows = [op("aten::mm", 0, 1, dims=[[int(facts.get("size", 8))]])]
        rows += [
            kernel(f"k{n}", 10 * n, 10 * n + 5, n, details={"grid": n}) for n in range(int(facts.get("kernels", 2)))
        ]
        built = unlinked(*rows)
        number = {key: int(facts[key]) if key in facts else None for key in ("rank", "origin", "world")}
        counts = {"lost-event": Count(int(facts["lost"]), "row 7")} if "lost" in facts else {}
        about = replace(
            built.runs[0],
            path=path,
            format="toy",
            rank=number["rank"],
            origin_unix_ns=number["origin"],
            world_size=number["world"],
        )
        report = ImportReport(counts, truncated="cut" in facts)
        return replace(built, runs=(about,), report=report)


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setattr(sniffing, "installed_formats", lambda: (ToyFormat(),))


@pytest.fixture
def write(tmp_path):
    """``write("a/rank0.txt", "TOY rank=0")`` below the test's folder; returns the path."""

    def write_file(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file
