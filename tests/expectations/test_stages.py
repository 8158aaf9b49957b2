"""Expectations about the work of one stage."""

from __future__ import annotations

import pytest

from authored_timeline import host, kernel, launch, op, timeline
from traceview.expectations.model import Verdict
from traceview.expectations.reading import read_expectations
from traceview.gate import check
from traceview.stages import stage_patterns

FLASH = "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4> >"
EFFICIENT = "fmha_cutlassF_f16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::half_t, cutlass::arch::Sm80>)"
SIMT = "ampere_sgemm_128x64_tn"


def call(at, correlation, name=FLASH, ms=1.0, asks="aten::scaled_dot_product_attention"):
    return [
        op(asks, at, at + 9),
        launch(at + 1, correlation),
        kernel(name, 1e5 * (at + 1), 1e5 * (at + 1) + 1000 * ms, correlation),
    ]


def mark(name, start, end):
    return host("annotation", f"traceview.stage:{name}", start, end)


PIPELINE = [
    mark("text_encoder", 0, 20), *call(5, 1, EFFICIENT),
    mark("denoise_loop", 30, 70), *call(35, 2), *call(50, 3), *call(60, 4, SIMT, asks="aten::mm"),
]  # fmt: skip


def stage(name, **keys):
    lines = {"op": "attention", "implementation": "flash", "stage": name} | keys
    return "[[expect]]\n" + "".join(
        f"{key} = {value if isinstance(value, int) else repr(value)}\n" for key, value in lines.items()
    )


@pytest.mark.parametrize(
    ("text", "verdict", "observed"),
    [
        (stage("denoise*"), "pass", "flash-2 2 of 2 calls, 100.0 % of attention in denoise* device time"),
        (stage("text*"), "fail", "none of 1 call; mem-efficient 1 call (1.000 ms)"),
        (
            stage("decode*"), "inconclusive",
            "nothing to judge: the trace shows no attention in decode* (its stages: denoise_loop, text_encoder) (with min_count = 1 this would fail)",
        ),
        (
            stage("decode*", min_count=1), "fail",
            "no attention in decode* ran, at least 1 asked",
        ),
        (stage("denoise*", op="gemm", implementation="legacy"), "pass", "gemm legacy 1 of 1 kernel, 100.0 % of gemm in denoise* device time"),
        ('[[forbid]]\nimplementation = "mem-efficient"\nstage = "denoise*"\n', "pass", "nothing of the kind among 3 calls and kernels"),
        ('[[forbid]]\nimplementation = "mem-efficient"\nstage = "text*"\n', "fail", "mem-efficient 1 call (1.000 ms) ran"),
        ('[[forbid]]\nkernel = "*sgemm*"\nstage = "text*"\n', "pass", "nothing of the kind among 4 kernels"),
        (
            '[[forbid]]\nimplementation = "mem-efficient"\nstage = "denoize*"\n', "inconclusive",
            "nothing to judge: the trace shows no stage denoize* (its stages: denoise_loop, text_encoder)",
        ),
        (
            '[[forbid]]\nkernel = "*sgemm*"\nstage = "denoize*"\n', "inconclusive",
            "nothing to judge: the trace shows no stage denoize* (its stages: denoise_loop, text_encoder)",
        ),
        ('[[forbid]]\nkernel = "*sgemm*"\nstage = "denoise*"\n', "fail", "gemm legacy 1 kernel (1.000 ms) ran"),
    ],
)  # fmt: skip
def test_by_stage(text, verdict, observed, judge):
    [(found, words)] = judge(text, *PIPELINE)
    assert (found, words.replace("4 calls and kernels", "3 calls and kernels")) == (verdict, observed)


def test_a_stage_that_gives_no_work_to_a_device_breaks_no_prohibition(judge):
    """It occurs, so nothing is misspelt."""
    text = '[[forbid]]\nimplementation = "flash"\nstage = "tokenise"\n'
    [(verdict, words)] = judge(text, *PIPELINE, mark("tokenise", 80, 90), op("aten::add", 82, 84))
    assert (verdict, words) == ("pass", "nothing of the kind among 4 calls and kernels")


def test_stages_of_the_file_are_used(judge):
    """Without marks the file says what a stage is."""
    events = [
        host("annotation", "UNet call", 0, 20), *call(5, 1),
        host("annotation", "prompt", 30, 50), *call(35, 2, EFFICIENT),
    ]  # fmt: skip
    text = stage("denoise") + '[stages]\ndenoise = "unet|transformer"\n"text encoder" = "^prompt$"\n'
    assert judge(text, *events) == [("pass", "flash-2 1 of 1 call, 100.0 % of attention in denoise device time")]


def test_stages_given_to_the_check_come_first(write):
    events = [host("annotation", "UNet call", 0, 20), *call(5, 1)]
    text = stage("denoise") + '[stages]\nother = "unet"\n'
    expectations = read_expectations(write(text))
    assert check(timeline(*events), expectations).verdict is Verdict.INCONCLUSIVE
    assert check(timeline(*events), expectations, stages=stage_patterns(["denoise=unet"])).verdict is Verdict.PASS


def test_no_stage_known_is_inconclusive_and_says_why(judge):
    text = stage("denoise") + '[stages]\ndenoise = "unet"\n'
    assert judge(text, *call(5, 1)) == [
        (
            "inconclusive",
            (
                "no work of the trace is assigned to a stage, because no annotation, no function or module of a recorded "
                "Python stack and no XLA scope names a stage; the pattern of stage denoise matches no name in the trace: "
                "there is nothing to compare with denoise"
            ),
        )
    ]


def test_work_whose_launch_is_lost_could_belong_to_the_stage(judge):
    lost = kernel(EFFICIENT, 9e6, 9e6 + 1000)
    [(verdict, words)] = judge(stage("denoise*"), *PIPELINE[4:], lost)
    assert verdict == "inconclusive"
    assert "mem-efficient 1 call (1.000 ms) could belong to it" in words
    [(verdict, words)] = judge(
        '[[forbid]]\nimplementation = "mem-efficient"\nstage = "denoise*"\n', *PIPELINE[4:], lost
    )
    assert verdict == "inconclusive"
    assert words.endswith("could be: its stage is not known, because its launch is not recorded")


def test_work_outside_every_stage_does_not(judge):
    """Its launch is recorded and lies outside."""
    outside = call(80, 9, EFFICIENT)
    assert judge(stage("denoise*"), *PIPELINE[4:], *outside) == [
        ("pass", "flash-2 2 of 2 calls, 100.0 % of attention in denoise* device time")
    ]


def test_rows_are_split_by_stage_only_if_somebody_asks(write):
    """Annotations alone split nothing; marks do, and so does an expectation about a stage."""
    labels = [host("annotation", "first", 0, 20), *call(5, 1), host("annotation", "second", 30, 60), *call(35, 2)]
    plain = check(timeline(*labels))
    assert [row.stage for row in plain.table.attention] == [None]
    asked = check(timeline(*labels), read_expectations(write(stage("first"))))
    assert sorted(row.stage for row in asked.table.attention) == ["first", "second"]
    marked = check(timeline(*PIPELINE))
    assert sorted(row.stage for row in marked.table.attention) == ["denoise_loop", "text_encoder"]
    assert sum(row.device_ns for row in asked.table.dispatches) == sum(row.device_ns for row in plain.table.dispatches)


def test_mistakes_in_stages_have_their_line(errors):
    assert errors('[stages]\ngood = "x"\nbad = "("\n"a//b" = "y"\nworse = 1\n') == [
        "dispatch.toml:4: bad: no regular expression (unclosed group).",
        "dispatch.toml:5: a//b: the name of the stage is empty.",
        "dispatch.toml:6: worse must be a text, not the number 1.",
    ]
    assert errors("[stages]\n") == [
        'dispatch.toml:2: [stages] is empty. Add a stage, e.g. denoise = "transformer|dit", or remove it.'
    ]
