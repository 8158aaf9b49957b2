"""What the rules say about real traces: the facts in the assertions were checked by hand in the files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import traceview
from traceview.dispatch import dispatch_table
from traceview.findings import Severity
from traceview.rules.base import Facts
from traceview.rules.catalogue import RULES

if TYPE_CHECKING:
    from pathlib import Path

    from traceview.findings import Finding

pytestmark = pytest.mark.slow


def findings(corpus: Path, file: str) -> dict[str, Finding]:
    """Code to the first finding of that code."""
    timeline = traceview.load(corpus / "pytorch" / file)
    facts = Facts(timeline, dispatch_table(timeline))
    found: dict[str, Finding] = {}
    for rule in RULES:
        for finding in rule.check(facts):
            found.setdefault(rule.code, finding)
    return found


def test_turing_tiles_on_a_hopper_are_a_finding_of_their_own(corpus: Path) -> None:
    found = findings(corpus, "owlv2-large-h100.json.gz")
    assert set(found) == {"TV101", "TV110", "TV404"}
    tiles = found["TV110"]
    assert tiles.title.startswith("360 matrix products ran kernels of the Volta or Turing generation on a newer GPU")
    assert (tiles.severity, tiles.cost_ns) == (Severity.WARNING, 229_680_235)
    assert tiles.evidence[:2] == (
        "360 of them say that operands are aligned to one or two elements only",
        "360 of them are part of unfused attention: a fused call does without them",
    )
    assert found["TV101"].cost_ns == 492_505_587


def test_unfused_norm_and_rotary_but_no_attention_finding(corpus: Path) -> None:
    found = findings(corpus, "qwen15-chat-h100.json.gz")
    assert found["TV118"].title.startswith("49 RMS norms ran as 6 kernels each")
    assert not any(code.startswith("TV10") for code in found)


def test_an_odd_vocabulary_is_an_unaligned_product(corpus: Path) -> None:
    found = findings(corpus, "bert-small-h100.json.gz")
    assert "[30522]" in found["TV111"].evidence[0]


def test_data_loading_in_the_main_process_is_named(corpus: Path) -> None:
    found = findings(corpus, "resnet50-v100-workers0.pt.trace.json.gz")
    assert any("enumerate(DataLoader)" in line for line in found["TV404"].evidence)
    assert "TV404" not in findings(corpus, "resnet50-v100-workers4.pt.trace.json.gz")


def test_a_range_profiler_is_named(corpus: Path) -> None:
    assert "CUPTI range profiler" in findings(corpus, "cupti-range-profiler-a100.json.gz")["TV904"].title


@pytest.mark.parametrize(
    "file", ["sdpa-long-seq-mi300.json.gz", "torch-compile-triton-mi300.json.gz", "vllm-decode-full-graph-rocm.json.gz"]
)
def test_nothing_to_say(corpus: Path, file: str) -> None:
    assert findings(corpus, file) == {}


def test_only_attention_can_fail_a_check(corpus: Path) -> None:
    for file in ("nccl-args-a100.json.gz", "alexnet-a100-critical-path.json.gz", "vllm-eager-b200.json.gz"):
        assert all(finding.severity is not Severity.ERROR for finding in findings(corpus, file).values())
