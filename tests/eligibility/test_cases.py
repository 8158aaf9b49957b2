"""Public cases, each with the exact set of rules that may be named as its cause."""

from __future__ import annotations

import pytest

from sdpa_calls import A100, B200, CPU, H100, MI300, RTX5090, T4, Q, call
from traceview.eligibility import Comparison, State, Status, explain

FEW_HEADS = [2, 4, 128, 64]

CASES = {
    # huggingface/transformers issue 36217: the mask was blamed, but none was passed; the model ran in float32.
    "albert in float32": (call(dtype="float"), A100, "2.6", "efficient", {"F1"}),
    "albert in float32 with a mask": (call(dtype="float", mask=[2, 1, 128, 128]), A100, "2.6", "efficient", {"F1", "F2"}),
    # pytorch pull request 181528: grouped heads in float32 end in math without a word.
    "grouped heads in float32": (call(Q, FEW_HEADS, dtype="float", gqa="True"), A100, "2.9", "math", {"F1", "F10"}),
    # cuDNN is tried first on an H100 from 2.9 on only with some cuDNN versions, so it is no certain part of the cause.
    "the same on an H100": (call(Q, FEW_HEADS, dtype="float", gqa="True"), H100, "2.9", "math", {"F1", "F10"}),
    # huggingface/transformers pull request 46960: head size 512 with grouped heads, no mask.
    "head size 512 and grouped heads": (call([1, 16, 128, 512], [1, 4, 128, 512], gqa="True"), A100, "2.8", "math", {"F3", "F10"}),
    # Comfy-Org/ComfyUI pull request 15135: a mask together with enable_gqa.
    "a mask with grouped heads": (call(Q, FEW_HEADS, gqa="True", mask=[2, 1, 128, 128], mask_dtype="c10::BFloat16"), A100, "2.8", "math", {"F2", "F10"}),
    "a boolean mask": (call(mask=[2, 1, 128, 128]), A100, "2.9", "efficient", {"F2"}),
    "a chunk of queries with is_causal": (call([2, 16, 8, 64], Q, causal="True"), A100, "2.8", "efficient", {"F7"}),
    "MLA: value narrower than query": (call([2, 16, 128, 192], [2, 16, 128, 192], [2, 16, 128, 128]), A100, "2.8", "efficient", {"F3"}),
    "bfloat16 on a T4": (call(), T4, "2.9", "math", {"F1", "F5", "E1"}),
    "float16 on a T4": (call(dtype="c10::Half"), T4, "2.9", "efficient", {"F5"}),
    "B200 with an old release": (call(), B200, "2.6", "math", {"F5", "E5"}),
    "RTX 5090 with an old release": (call(), RTX5090, "2.6", "math", {"F5", "E5"}),
    "head size 60 with a mask": (call([2, 16, 128, 60], mask=[128, 128]), A100, "2.8", "math", {"F2", "E2"}),
    "transposed key": (call(strides=[[131072, 8192, 64, 1], [131072, 8192, 1, 128], [131072, 8192, 64, 1], [], [], [], [], []]), A100, "2.8", "math", {"F12"}),
    "unbatched": (call([16, 128, 64]), A100, "2.8", "math", {"F8"}),
    "broadcast batch": (call(Q, [1, 16, 128, 64]), A100, "2.8", "math", {"F11"}),
    "dropout on the CPU": (call(dtype="float", dropout="0.10000000000000001"), CPU, "2.13", "math", {"P1-dropout"}),
    "narrow value on the CPU": (call(Q, Q, [2, 16, 128, 48], dtype="float"), CPU, "2.13", "math", {"P1-head-dim"}),
    "masked AMD call in float32": (call(dtype="float", mask=[128, 128]), MI300, "2.9", "efficient", {"F1", "F2"}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_exactly_these_causes_are_named(name):
    recorded, device, torch, observed, causes = CASES[name]
    explanation = explain(recorded, device, observed=observed, torch=torch)
    assert set(explanation.cause_ids) == causes
    assert explanation.comparison is Comparison.EXPLAINED
    assert explanation.not_excluded == ()


@pytest.mark.parametrize(
    "name", [name for name, case in CASES.items() if case[1] is CPU or "T4" in name or name.startswith("albert")]
)
def test_the_causes_do_not_depend_on_the_release(name):
    recorded, device, _, observed, causes = CASES[name]
    explanation = explain(recorded, device, observed=observed)
    assert (set(explanation.cause_ids), explanation.comparison) == (causes, Comparison.EXPLAINED)


def test_a_cause_that_only_some_releases_have_is_open_and_says_which():
    explanation = explain(call(Q, FEW_HEADS, dtype="float", gqa="True"), A100, observed="math")
    assert explanation.cause_ids == ("F1",)
    (grouped,) = explanation.open
    assert (grouped.rule.id, grouped.status) == ("F10", Status.DEPENDS)
    assert grouped.text == "enable_gqa=True with 16 query heads and 4 key heads; holds for torch 2.5.0 to 2.13"
    assert explanation.comparison is Comparison.POSSIBLE


def test_a_rule_that_a_release_no_longer_has_is_no_cause():
    explanation = explain(call(Q, FEW_HEADS, dtype="float", gqa="True"), A100, observed="efficient", torch="2.14")
    assert (explanation.cause_ids, explanation.comparison) == (("F1",), Comparison.EXPLAINED)


def test_nothing_recorded_explains_math_so_only_settings_are_left():
    explanation = explain(call(), A100, observed="math", torch="2.9")
    assert explanation.comparison is Comparison.UNEXPLAINED
    assert explanation.causes == ()
    assert explanation.passed_over == ("flash", "efficient")
    assert {one.rule.id: one.backends for one in explanation.not_excluded} == {
        "F14": ("flash", "efficient"),
        "F15": ("flash", "efficient"),
    }


def test_a_fact_that_is_missing_leaves_the_answer_open():
    explanation = explain(call(without=("strides",)), A100, observed="math", torch="2.9")
    assert explanation.comparison is Comparison.POSSIBLE
    assert {(answer.rule.id, answer.backend) for answer in explanation.open} == {("F12", "flash"), ("F12", "efficient")}
    assert explanation.open[0].text == "strides of query, key, value"


def test_what_ran_although_a_rule_refuses_it_is_reported_as_a_contradiction():
    explanation = explain(call(mask=[128, 128]), A100, observed="flash", torch="2.9")
    assert explanation.comparison is Comparison.CONTRADICTED
    assert explanation.causes == ()


def test_what_ran_decides_what_was_undecided_about_it():
    explanation = explain(call([1, 1, 1024, 512]), MI300, observed="flash")
    assert explanation.backend("flash").state is State.UNDECIDED
    assert explanation.comparison is Comparison.EXPECTED


@pytest.mark.parametrize(
    ("torch", "cudnn", "device", "expected"),
    [
        ("2.4", None, H100, ("flash",)),
        ("2.5.0", "9.1", H100, ("cudnn",)),
        ("2.5.1", "9.1", H100, ("flash",)),
        ("2.8", "9.10", H100, ("flash",)),
        ("2.9", "9.10.2", H100, ("cudnn",)),
        ("2.9", "91002", B200, ("cudnn",)),
        ("2.9", "9.10.2", A100, ("flash",)),
        ("2.10", "9.10.2", H100, ("flash",)),
        ("2.10", "9.15.0", H100, ("flash",)),
        ("2.10", "9.15.1", H100, ("cudnn",)),
        ("2.9.1+cu128", None, H100, ("cudnn", "flash")),
        (None, None, H100, ("cudnn", "flash")),
        (None, None, T4, ("math",)),
        (None, None, CPU, ("flash",)),
        ("2.9", None, MI300, ("flash",)),
    ],
)
def test_default_order(torch, cudnn, device, expected):
    arguments = 7 if torch == "2.4" else 8
    assert set(explain(call(arguments=arguments), device, torch=torch, cudnn=cudnn).expected) == set(expected)


def test_cudnn_behind_math_was_chosen_by_a_setting():
    explanation = explain(call(), H100, observed="cudnn", torch="2.8")
    assert (explanation.comparison, explanation.expected) == (Comparison.UNEXPLAINED, ("flash",))
    assert "F14" in {one.rule.id for one in explanation.not_excluded}


def test_consequences_are_about_what_ran():
    math = explain(call(mask=[2, 3]), T4, observed="math", torch="2.9")
    assert {answer.rule.id for answer in math.consequences} == {"M1", "M2"}
    assert {answer.rule.id for answer in explain(call(), B200, observed="cudnn", torch="2.11").consequences} == {"C8"}
    assert explain(call(), A100, observed="flash", torch="2.9").consequences == ()


@pytest.mark.parametrize(
    ("torch", "arguments", "releases", "note"),
    [
        ("2.9.1+cu128", 8, "torch 2.9", ()),
        ("2.5", 8, "torch 2.5.0 to 2.5.1", ()),
        ("2.5.1", 8, "torch 2.5.1", ()),
        (None, 8, "torch 2.5.0 to 2.15", ()),
        (None, 7, "torch 2.1 to 2.4", ()),
        (None, 6, "torch 2.0", ()),
        ("3.0", 8, "torch 2.15", ("torch 3.0 is newer than the rulebook, which ends with 2.15",)),
        ("1.13", 8, "torch 2.5.0 to 2.15", ("torch 1.13 has no scaled_dot_product_attention",)),
        ("2.4", 8, "torch 2.4 to 2.15", ("torch 2.4 was stated, but a call with 8 recorded arguments is from torch 2.5.0 to 2.15: judged for both",)),
    ],
)  # fmt: skip
def test_releases_that_are_left(torch, arguments, releases, note):
    explanation = explain(call(arguments=arguments), A100, torch=torch)
    assert (explanation.version_text, explanation.notes) == (releases, note)


def test_a_version_that_is_none_is_an_error():
    with pytest.raises(ValueError, match="torch version 'nightly' is no version number"):
        explain(call(), A100, torch="nightly")


def test_an_unknown_platform_leaves_platform_rules_open():
    explanation = explain(call(dtype="float", dropout="0.1"), observed="math", torch="2.13")
    assert explanation.platforms == ("cuda", "rocm", "cpu")
    assert explanation.causes == ()
    assert {(answer.rule.id, answer.status) for answer in explanation.open} >= {("P1-dropout", Status.DEPENDS)}
