"""Counts of an import are said in words."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from traceview import load
from traceview.count_words import count_words, losses
from traceview.parsers.kineto.tally import KINDS
from traceview.timeline import Count

if TYPE_CHECKING:
    from pathlib import Path


def test_every_kind_of_the_parsers_has_words(repository: Path) -> None:
    kinds = set(KINDS)
    for path in (*repository.glob("parsers/**/*.py"), *repository.glob("traceview/*.py")):
        text = path.read_text(encoding="utf-8")
        kinds |= set(re.findall(r'"((?:lost|repaired)-[a-z0-9-]+)"', text))
        if path.is_relative_to(repository / "parsers"):
            kinds |= set(re.findall(r'(?:counts|tally)\["([a-z-]+)"\]', text))
        kinds |= {kind.replace("_", "-") for kind in re.findall(r"with_counts\((\w+)=", text)}
    assert len(kinds) > 40
    assert {kind for kind in kinds if count_words(kind) == kind} == set()


def test_a_kind_of_another_package_stays_as_it_is() -> None:
    assert count_words("lost-line") == "lost-line"


def test_only_what_is_lost_is_a_loss() -> None:
    counts = {"lost-event": Count(3), "correlation-reused": Count(2), "lost-text": Count(1200)}
    assert losses(counts) == "events damaged beyond repair: 3; stretches of text that belong to no event: 1,200"


def test_an_event_far_off_was_read(tmp_path: Path) -> None:
    """It is left out because of its time, not because it could not be read."""
    times = (10, 20, 30, 9_000_000_000_000_000)
    events = [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": at, "dur": 1} for at in times]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    (note,) = load(path).report.notes
    assert note.text == (
        "1 piece of the file could not be used "
        "(events whose time lies far from the rest of the recording, left out: 1)."
    )
