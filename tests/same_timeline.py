"""Comparing timelines to the last bit, and the traces to do it with."""

from __future__ import annotations

from pathlib import Path

import sample_traces

SAMPLES = Path(sample_traces.__file__).parent
FRAMES = ("events", "processes", "threads", "devices", "inputs")


def sample_inputs():
    """Every healthy sample: files of all formats, and the folder that holds two ranks."""
    suffixes = (".json", ".json.gz", ".sqlite", ".xplane.pb")
    files = [path for path in (*SAMPLES.iterdir(), *(SAMPLES / "xprof").iterdir()) if path.name.endswith(suffixes)]
    found = sorted(path for path in files if ".truth." not in path.name)
    assert len(found) >= 15
    return [*found, SAMPLES / "two-ranks"]


def assert_same_timeline(one, other, *, paths=True):
    """Frames with dtypes, details, report, and runs; ``paths``: those of the runs too."""
    for name in FRAMES:
        mine, theirs = getattr(one, name), getattr(other, name)
        assert mine.schema == theirs.schema, name
        assert mine.equals(theirs), name
    assert list(one.details) == list(other.details)
    for key in one.details:
        assert one.details[key].schema == other.details[key].schema, key
        assert one.details[key].equals(other.details[key]), key
    assert one.report == other.report

    def facts(run):
        return (
            run.path if paths else None, run.format, run.producer, run.producer_version, run.origin_unix_ns,
            run.rank, run.world_size, dict(run.metadata),
        )  # fmt: skip

    assert [facts(run) for run in one.runs] == [facts(run) for run in other.runs]
