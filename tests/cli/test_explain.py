"""``traceview explain``: the story of each call, and what can go wrong."""

from __future__ import annotations

import pytest

MATH = "flash-requested-math-ran.cuda-authored.json.gz"
FLASH = "flash-requested-flash-ran.cuda-authored.json.gz"


def spoken(text):
    """Without line breaks."""
    return " ".join(text.split())


def test_a_slow_call_is_told_from_what_was_asked_to_what_to_change(samples, run):
    done = run("explain", samples / MATH)
    assert (done.code, done.err) == (0, "")
    story = spoken(done.out)
    parts = (
        "6 of 9 attention calls took a slow path: 21.84 ms of device time, 73.1 % of the busy time.",
        "math (pytorch): 6 calls of aten::scaled_dot_product_attention",
        "asked query [1,16,4096,64] float32, key [1,4,4096,64] float32",
        "enable_gqa",
        "got math (pytorch); an op that only this path calls is recorded",
        "refused flash by F1: query, key and value are float32.",
        "memory-efficient by F10: enable_gqa=True with 16 query heads and 4 key heads.",
        "cuDNN, if it is tried before, by C1:",
        "so math is what is left",
        "(judged for torch 2.13)",
        "costs at most 21.84 ms can be saved, 73.1 % of the busy time",
        "change flash: Run attention in bfloat16 or float16",
        "source F1, source read: ",
        "Ran as expected",
    )
    places = [story.find(part) for part in parts]
    assert -1 not in places, parts[places.index(-1)]
    assert places == sorted(places)


def test_with_the_cudnn_version_it_is_certain_what_was_tried(samples, run):
    done = run("explain", samples / MATH, "--cudnn", "9.16", "--format", "json")
    refused = {one["rule"]: one["certain"] for one in done.json["explanations"][0]["refused"]}
    assert refused == {"C1": True, "F1": True, "F10": True}


def test_calls_that_ran_as_expected_take_a_line(samples, run):
    lines = run("explain", samples / FLASH).out.splitlines()
    assert lines[0] == "All 9 attention calls ran fused."
    at = lines.index("Ran as expected")
    assert [line.split() for line in lines[at + 2 : at + 4]] == [
        ["aten::scaled_dot_product_attention"],
        [
            "9",
            "1.063",
            "12.0",
            "%",
            "flash-2",
            "(pytorch)",
            "[1,16,4096,64]",
            "[1,4,4096,64]",
            "bf16",
            "and",
            "1",
            "more",
        ],
    ]
    assert not any("refused" in line for line in lines)


def test_attention_by_hand_was_never_asked_of_pytorch(samples, run):
    story = spoken(run("explain", samples / "unfused-by-hand.cuda-authored.json").out)
    assert "so scaled_dot_product_attention was not called, so there was no backend to choose" in story
    assert "change Use scaled_dot_product_attention" in story


def test_a_setting_that_no_trace_records_is_not_excluded(samples, run):
    story = spoken(run("explain", samples / "torch-cpu-attention.json").out)
    assert "allowed flash is allowed" in story
    assert "not excluded flash by F14" in story
    assert "costs 143.4 ms on the host" in story


@pytest.mark.parametrize("wanted", ["gemm", "addmm", "aten::add*"])
def test_other_ops_are_shown_without_rules(samples, run, wanted):
    done = run("explain", samples / FLASH, "--op", wanted)
    assert done.code == 0
    assert f"of {wanted}: " in done.out.splitlines()[0]
    assert "What ran" in done.out
    assert "gemm/nvjet" in done.out


def test_an_op_that_is_not_there(samples, run):
    done = run("explain", samples / FLASH, "--op", "nope")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "traceview: error: --op nope: no dispatch in this trace is of that family or op. "
        "Families here: attention, conv, elementwise, gemm, memcpy, norm.\n"
    )


def test_a_trace_without_anything_to_explain(samples, run):
    trace = samples / "bad" / "only-metadata.json"
    done = run("explain", trace)
    assert (done.code, done.out.splitlines()[0]) == (
        3,
        "The trace has no device work and no op that asks for attention: there is nothing to explain.",
    )
    assert run("explain", trace, "--format", "json").json["explanations"] is None


def test_a_version_must_be_one(samples, run):
    done = run("explain", samples / FLASH, "--torch", "latest")
    assert done.code == 2
    assert "'latest' is not a version such as 2.9 or 2.9.1" in done.err


def test_the_limit_says_what_it_leaves_out(samples, run):
    done = run("explain", samples / "torch-cpu-attention.json", "--limit", "1")
    assert "1 more group of calls: --limit 2 explains all." in done.out
