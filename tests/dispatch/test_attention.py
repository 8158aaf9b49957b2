"""Which attention ran: by op, by kernel, by hand; and when the trace does not tell."""

from __future__ import annotations

import pytest

from authored_timeline import Event, host, kernel, launch, op, timeline
from traceview.dispatch import Dispatch, dispatch_table

FLASH = "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4> >"
EFFICIENT = "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float>::Params)"
GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas"
SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 9, false, false>(float*, float const*, int, int, int)"
SCALE = "void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<float, float, float>, std::array<char*, 2ul> >"
TOPK = "void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>(float const*)"
UNIFIED = "kernel_unified_attention_3d"
SEGMENTS = "reduce_segments"


def attention(*events: Event) -> list[Dispatch]:
    return list(dispatch_table(timeline(*events)).attention)


def run(at: float, corr: int, name: str, kernel_name: str, **more) -> list[Event]:
    """An op of 4 us that launches one kernel of 10 us."""
    return [op(name, at, at + 4, **more), launch(at + 1, corr), kernel(kernel_name, at + 100, at + 110, corr)]


def sdpa(at: float, corr: int, child: str, kernel_name: str) -> list[Event]:
    return [op("aten::scaled_dot_product_attention", at, at + 8), *run(at + 1, corr, child, kernel_name)]


def by_hand(
    at: float, scores=None, after=None, between=SCALE, ops=("aten::bmm", "aten::_softmax", "aten::bmm")
) -> list[Event]:
    scores = scores or [2, 8, 8]
    return [
        *run(at, 1000 + int(at), ops[0], GEMM, dims=[[2, 8, 4], [2, 4, 8]]),
        *run(at + 10, 1001 + int(at), "aten::mul", between, dims=[scores, []]),
        *run(at + 20, 1002 + int(at), ops[1], SOFTMAX, dims=[scores, [], []]),
        *run(at + 30, 1003 + int(at), ops[2], GEMM, dims=after or [scores, [2, 8, 4]]),
    ]


def test_flash_under_sdpa() -> None:
    (row,) = attention(
        *sdpa(0, 1, "aten::_scaled_dot_product_flash_attention", FLASH),
        *sdpa(20, 2, "aten::_scaled_dot_product_flash_attention", FLASH),
    )
    assert (row.op, row.implementation, row.provider, row.count) == (
        "aten::scaled_dot_product_attention",
        "flash-2",
        "pytorch",
        2,
    )
    assert (row.attribution, row.evidence, row.verdict) == ("attributed", "kernel", "ok")
    assert (row.device_ns, row.share) == (20_000, 1.0)


def test_memory_efficient_is_not_flash() -> None:
    (row,) = attention(*sdpa(0, 1, "aten::_scaled_dot_product_efficient_attention", EFFICIENT))
    assert (row.implementation, row.verdict) == ("mem-efficient", "ok")


def test_math_by_its_op() -> None:
    (row,) = attention(
        op("aten::scaled_dot_product_attention", 0, 60),
        op("aten::_scaled_dot_product_attention_math", 1, 59),
        *by_hand(2),
    )
    assert (row.implementation, row.verdict, row.evidence, row.count) == ("math", "slow", "op", 1)
    assert row.device_ns == 40_000, "everything under the op is its cost"


def test_math_by_its_kernels_when_the_op_is_not_recorded() -> None:
    (row,) = attention(op("aten::scaled_dot_product_attention", 0, 60), *by_hand(2))
    assert (row.implementation, row.evidence) == ("math", "kernel")


def test_an_unknown_kernel_under_sdpa_is_never_math() -> None:
    (row,) = attention(*sdpa(0, 1, "aten::_scaled_dot_product_flash_attention", "brand_new_kernel_2027"))
    assert (row.implementation, row.verdict, row.evidence) == ("unknown", "unknown", "none")


def test_the_cpu_flash_op_needs_no_kernel() -> None:
    (row,) = attention(
        op("aten::scaled_dot_product_attention", 0, 50),
        op("aten::_scaled_dot_product_flash_attention_for_cpu", 1, 49),
    )
    assert (row.implementation, row.verdict, row.host_ns, row.share) == ("cpu-flash", "ok", 50_000, None)


def test_the_mps_path_is_not_math_in_spite_of_its_name() -> None:
    (row,) = attention(
        op("aten::scaled_dot_product_attention", 0, 50), op("aten::_scaled_dot_product_attention_math_for_mps", 1, 49)
    )
    assert (row.implementation, row.verdict) == ("vendor", "ok")


def test_by_hand_with_shapes_is_proven() -> None:
    (row,) = attention(*by_hand(0))
    assert (row.op, row.implementation, row.evidence) == ("aten::bmm → aten::_softmax → aten::bmm", "unfused", "shapes")
    assert (row.count, row.device_ns) == (1, 40_000)


@pytest.mark.parametrize(
    ("why", "events"),
    [
        ("the second product does not read the probabilities", by_hand(0, after=[[2, 4, 4], [2, 4, 8]])),
        (
            "a router picks the top experts between softmax and product",
            by_hand(0)[:9] + run(25, 77, "aten::topk", TOPK) + by_hand(0, after=[[4, 8], [8, 16]])[9:],
        ),
        ("no second product", by_hand(0)[:9]),
        ("the softmax comes first", by_hand(0)[6:]),
    ],
)
def test_what_is_no_attention(why: str, events: list[Event]) -> None:
    assert attention(*events) == [], why


def test_without_shapes_batched_products_still_prove_it() -> None:
    plain = [Event(**{**{f: getattr(e, f) for f in e.__dataclass_fields__}, "dims": None}) for e in by_hand(0)]
    (row,) = attention(*plain)
    assert row.evidence == "chain"


def test_only_the_order_of_kernels_is_a_hint() -> None:
    (row,) = attention(
        launch(0, 5, name="cudaGraphLaunch"),
        kernel(GEMM, 10, 20, 5),
        kernel(SOFTMAX, 20, 30, 5),
        kernel(GEMM, 30, 40, 5),
    )
    assert (row.implementation, row.evidence, row.attribution) == ("unfused", "order", "opaque")


def test_products_on_another_stream_prove_nothing() -> None:
    assert (
        attention(kernel(GEMM, 0, 10, stream=1), kernel(SOFTMAX, 10, 20, stream=2), kernel(GEMM, 20, 30, stream=1))
        == []
    )


def test_a_bias_looked_up_in_between_passes_by_shapes_only() -> None:
    lookup = run(
        15, 77, "aten::embedding", "void at::native::(anonymous namespace)::vectorized_gather_kernel<16, long>(char*)"
    )
    (row,) = attention(*by_hand(0), *lookup)
    assert row.evidence == "shapes"
    plain = [
        Event(**{**{f: getattr(e, f) for f in e.__dataclass_fields__}, "dims": None}) for e in [*by_hand(0), *lookup]
    ]
    assert attention(*plain) == []


def test_two_calls_in_a_row_share_no_kernel() -> None:
    (row,) = attention(*by_hand(0), *by_hand(60))
    assert (row.count, row.device_ns) == (2, 80_000)


def test_by_hand_on_the_cpu() -> None:
    (row,) = attention(
        op("aten::matmul", 0, 9), op("aten::bmm", 1, 8, dims=[[2, 8, 4], [2, 4, 8]]),
        op("aten::div", 10, 11),
        op("aten::softmax", 12, 19), op("aten::_softmax", 13, 18, dims=[[2, 8, 8], [], []]),
        op("aten::matmul", 20, 29), op("aten::bmm", 21, 28, dims=[[2, 8, 8], [2, 8, 4]]),
    )  # fmt: skip
    assert (row.implementation, row.evidence, row.device_ns, row.count) == ("unfused", "shapes", 0, 1)


def test_kernels_of_a_replayed_graph_are_opaque_and_helpers_are_no_calls() -> None:
    (row,) = attention(
        launch(0, 5, name="hipGraphLaunch"),
        kernel(UNIFIED, 10, 20, 5), kernel(SEGMENTS, 20, 22, 5),
        kernel(UNIFIED, 30, 40, 5), kernel(SEGMENTS, 40, 42, 5),
    )  # fmt: skip
    assert (row.implementation, row.attribution, row.count) == ("triton", "opaque", 2)
    assert {(k.name, k.count) for k in row.kernels} == {(UNIFIED, 2), (SEGMENTS, 2)}
    assert row.device_ns == 24_000


def test_a_kernel_without_launch_is_kernel_only() -> None:
    (row,) = attention(op("aten::mm", 0, 1), kernel(FLASH, 5, 9, 123))
    assert (row.op, row.attribution, row.implementation, row.count) == (None, "kernel-only", "flash-2", 1)


def test_backward_is_its_own_row() -> None:
    rows = attention(
        *sdpa(0, 1, "aten::_scaled_dot_product_flash_attention", FLASH),
        op("autograd::engine::evaluate_function: ScaledDotProductFlashAttentionBackward0", 200, 220, thread=1),
        op("aten::_scaled_dot_product_flash_attention_backward", 201, 219, thread=1),
        launch(202, 2, thread=1),
        kernel(
            "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<pytorch_flash::Flash_bwd_kernel_traits<64> >",
            300,
            330,
            2,
        ),
    )
    assert {(r.direction, r.implementation) for r in rows} == {("forward", "flash-2"), ("backward", "flash-2")}


def test_overlapping_kernels_count_once() -> None:
    (row,) = attention(kernel(FLASH, 0, 10, stream=1), kernel(FLASH, 5, 15, stream=2), host("op", "x", 0, 1))
    assert row.device_ns == 15_000


MERGE = "void vllm::merge_attn_states_kernel<__nv_bfloat16, 128>(int)"
PLAN = "void flash::prepare_varlen_num_blocks_kernel<1, true>(int)"
FA3 = "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2> > > >"


def test_a_kernel_that_merges_serves_whichever_attention_ran() -> None:
    """Shared merging code says nothing of its own: without the Triton kernel it merges what flash-3 computed."""
    (row,) = attention(kernel(FA3, 0, 10), kernel(MERGE, 12, 14))
    assert (row.implementation, row.count, row.device_ns) == ("flash-3", 1, 12_000)


def test_work_that_is_planned_by_an_op_of_its_own_is_no_call() -> None:
    (row,) = attention(
        *run(0, 1, "_vllm_fa3_C::get_scheduler_metadata", PLAN),
        *run(20, 2, "vllm::unified_attention_with_output", FA3),
        *run(40, 3, "vllm::unified_attention_with_output", FA3),
    )
    assert (row.op, row.implementation, row.count) == ("vllm::unified_attention_with_output", "flash-3", 2)
    assert row.device_ns == 30_000


def test_a_projection_of_the_values_after_the_softmax_is_no_part_of_the_call() -> None:
    projection = [op("aten::linear", 25, 29.5), *run(25, 77, "aten::mm", GEMM, dims=[[16, 4], [4, 4]])]
    (row,) = attention(*by_hand(0), *projection)
    assert (row.implementation, row.evidence, row.device_ns) == ("unfused", "shapes", 40_000)


def test_products_of_linear_layers_make_and_read_no_scores() -> None:
    layer = [op("aten::linear", -1, 5), op("aten::linear", 29, 35)]
    assert attention(*layer, *by_hand(0, ops=("aten::mm", "aten::_softmax", "aten::mm"))) == []
    assert attention(*by_hand(0, ops=("aten::addmm", "aten::_softmax", "aten::addmm"))) == []
