"""Stages of real traces. The figures were computed apart, by script, from the same files (see the names of the tests)."""

from __future__ import annotations

import polars as pl
import pytest

from traceview import load
from traceview.expectations.reading import expectations_of
from traceview.gate import check
from traceview.stages import assign_stages

DEVICE_MS = {
    # A compiled denoiser: its four graph launches take 6.7 ms of the host and 171.1 ms of the device.
    "flux1-sage-mi300.json.gz": {"denoise": 171.128, "text_encoder": 24.825, "decoder": 5.143, "scheduler": 0.122},
    "resnet-ddp-v100-ns-timestamps.pt.trace.json.gz": {"backward": 316.48, "forward": 150.44, "optimizer": 5.53},
    "vllm-prefilldecode-piecewise-rocm.json.gz": {"mixed/forward": 155.65, "mixed/logits": 0.35},
    "vllm-decode-full-graph-rocm.json.gz": {"decode/forward": 10.39, "decode/logits": 0.28},
    "vllm-eager-b200.json.gz": {"prefill/logits": 0.06},
    "owlv2-large-h100.json.gz": {
        "Owlv2ForObjectDetection/Owlv2Model/Owlv2VisionTransformer": 545.59,
        "Owlv2ForObjectDetection/Owlv2Model/Owlv2TextTransformer": 5.12,
    },
    "dlrm-compile-a100-rank0.json.gz": {"optimizer": 32.04},
}


@pytest.mark.parametrize("name", DEVICE_MS)
def test_device_time_of_stages(corpus, name):
    staging = assign_stages(load(corpus / "pytorch" / name))
    staging.timeline.validate()
    work = staging.timeline.device_work
    found = dict(work.group_by(pl.col("stage").cast(pl.String)).agg(pl.col("dur_ns").sum() / 1e6).iter_rows())
    for stage, ms in DEVICE_MS[name].items():
        assert found[stage] == pytest.approx(ms, abs=0.02), stage


def test_work_of_an_earlier_step_is_in_no_stage(corpus):
    """872 device events have no launch in the file."""
    work = assign_stages(load(corpus / "pytorch" / "dlrm-compile-a100-rank0.json.gz")).timeline.device_work
    assert work.filter(pl.col("stage").is_null()).height == 872
    assert work.filter(pl.col("launch_id").is_null())["stage"].null_count() == 872


def test_a_host_range_says_when_work_was_asked_for(corpus):
    ranges = assign_stages(load(corpus / "pytorch" / "flux1-sage-mi300.json.gz")).ranges
    denoise = ranges.filter(pl.col("stage") == "denoise")
    assert denoise.height == 4
    assert (denoise["end_ns"] - denoise["start_ns"]).sum() == pytest.approx(6.68e6, abs=1e4)


@pytest.mark.parametrize(
    ("stage", "verdict"), [("denoise*", "pass"), ("text_encoder", "fail"), ("vae*", "inconclusive")]
)
def test_an_expectation_about_a_stage_is_judged(corpus, stage, verdict):
    """Only the denoiser has the kernels of aiter; the text encoder multiplies, normalises and multiplies."""
    timeline = load(corpus / "pytorch" / "flux1-sage-mi300.json.gz")
    document = {"expect": [{"op": "attention", "stage": stage, "implementation": "aiter"}]}
    [result] = check(timeline, expectations_of(document, path="here", line=1)).expectations
    assert result.verdict == verdict, result.observed
