"""Which calls form one story, in which order, and whether they need one."""

from __future__ import annotations

from authored_timeline import Event, kernel, launch, op, timeline
from traceview.explaining import Explained, asked, explain_trace

FLASH = "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4> >"
EFFICIENT = "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float>::Params)"
SDPA = "aten::scaled_dot_product_attention"


def call(at: float, number: int, ran: str, tokens: int = 128, dtype: str = "c10::Half") -> list[Event]:
    dims = [[1, 4, tokens, 64]] * 3
    return [
        op(SDPA, at, at + 9, dims=dims, dtypes=[dtype] * 3),
        launch(at + 1, number),
        kernel(ran, at + 100, at + 110, number),
    ]


def math(at: float) -> list[Event]:
    return [op(SDPA, at, at + 9), op("aten::_scaled_dot_product_attention_math", at + 1, at + 8)]


def explained(*events: Event, **options: str) -> tuple[Explained, ...]:
    return explain_trace(timeline(*events), **options).explained


def test_slow_calls_come_first() -> None:
    found = explained(*call(0, 1, FLASH), *math(20), *call(40, 2, "brand_new_kernel_2027"))
    assert [(one.first.implementation, one.expected) for one in found] == [
        ("math", False), ("unknown", False), ("flash-2", True)
    ]  # fmt: skip


def test_calls_with_other_shapes_and_the_same_reasons_are_one_story() -> None:
    (one,) = explained(*call(0, 1, FLASH, 128), *call(20, 2, FLASH, 256), torch="2.6")
    assert (len(one.rows), one.count, one.device_ns) == (2, 2, 20_000)


def test_fused_but_passed_over_needs_a_word() -> None:
    (one,) = explained(*call(0, 1, EFFICIENT, dtype="float"), torch="2.6")
    assert (one.first.verdict, one.expected, one.cost_ns) == ("ok", False, None)
    assert next(reason.rule for reason in one.reasons if reason.status == "refuses") == "F1"
    assert one.change[0].startswith("flash: Run attention in bfloat16")


def test_a_cost_is_only_said_of_what_is_slow() -> None:
    (one,) = explained(*math(0))
    assert (one.cost_ns, one.host_ns) == (None, 9_000)
    assert asked(one.first) == ""


def test_what_was_asked_in_words() -> None:
    (one,) = explained(*call(0, 1, FLASH))
    assert asked(one.first) == "query [1,4,128,64] float16, key [1,4,128,64] float16, value [1,4,128,64] float16"


def test_families_and_globs() -> None:
    events = [*call(0, 1, FLASH), op("aten::mm", 20, 24), launch(21, 2), kernel("ampere_sgemm_128x64_nn", 200, 210, 2)]
    assert [one.first.family for one in explained(*events)] == ["attention"]
    for wanted in ("gemm", "mm", "aten::m?"):
        assert [one.first.op for one in explained(*events, op=wanted)] == ["aten::mm"]
