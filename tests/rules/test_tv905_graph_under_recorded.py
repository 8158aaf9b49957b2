"""Replayed graphs without kernels."""

from __future__ import annotations

from authored_timeline import kernel, launch
from rules.rule_case import ADD, found


def test_positive_silent_replays() -> None:
    replays = [launch(10 * i, i, name="cudaGraphLaunch") for i in range(4)]
    (finding,) = found("TV905", *replays, kernel(ADD, 5, 9, 0))
    assert finding.title == "3 of 4 graph launches have no recorded kernel: their time looks idle"


def test_positive_opaque_blocks() -> None:
    (finding,) = found("TV905", launch(0, 1, name="cudaGraphLaunch"), kernel("graph", 5, 9, 1, kind="graph"))
    assert finding.title == "1 graph recorded as one opaque block: what ran inside is unknown"


def test_negative_each_replay_has_its_kernels() -> None:
    assert found("TV905", launch(0, 1, name="cudaGraphLaunch"), kernel(ADD, 5, 9, 1)) == []


def test_not_recorded_launches() -> None:
    assert found("TV905", kernel(ADD, 5, 9)) == []
