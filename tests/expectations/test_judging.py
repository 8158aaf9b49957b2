"""Each kind of expectation, judged: holds, does not hold, cannot be told, and what is said about it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from authored_timeline import kernel, launch, op, timeline
from traceview.expectations.reading import read_expectations
from traceview.gate import Verdict, check
from traceview.timeline import ImportReport

FLASH = "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4> >"
FLASH_BACKWARD = "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<pytorch_flash::Flash_bwd_kernel_traits<64, 128, 128, 8, 4, 4, 4, false, false> >"
EFFICIENT = "fmha_cutlassF_f16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::half_t, cutlass::arch::Sm80>)"
GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas"
SIMT = "ampere_sgemm_128x64_tn"
SPLIT_K = "void splitKreduce_kernel<32, 16, int, float, float, float, float, true, false, false>(int)"
SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 9, false, false>(float*, float const*, int, int, int)"
UNKNOWN = "brand_new_kernel_2027"


def attention(at, correlation, name=FLASH, ms=1.0, asks="aten::scaled_dot_product_attention"):
    return [
        op(asks, at, at + 9),
        launch(at + 1, correlation),
        kernel(name, 1e5 * at, 1e5 * at + 1000 * ms, correlation),
    ]


def math(at, correlation, ms=1.0):
    """SDPA's math path: its op, and a product under it."""
    inside = op("aten::_scaled_dot_product_attention_math", at + 0.5, at + 8)
    outer, launched, ran = attention(at, correlation, SIMT, ms)
    return [outer, inside, launched, ran]


def matrix(at, correlation, name=GEMM, ms=1.0, asks="aten::mm"):
    return attention(at, correlation, name, ms, asks)


def expect(**keys):
    def literal(value):
        if isinstance(value, bool):
            return str(value).lower()
        return str(value) if isinstance(value, float | int | list) else f'"{value}"'

    return "[[expect]]\n" + "".join(f"{key} = {literal(value)}\n" for key, value in keys.items())


BY_HAND_IN_ORDER = [kernel(GEMM, 1, 2), kernel(SOFTMAX, 2, 3), kernel(GEMM, 3, 4)]
CALLS = [*attention(0, 1), *attention(20, 2), *attention(40, 3)]

CASES = {
    "fused holds": (
        expect(op="attention", implementation="fused"), CALLS,
        "pass", "flash-2 3 of 3 calls, 100.0 % of attention device time",
    ),
    "an exact id holds": (
        expect(op="attention", implementation="flash-2"), CALLS,
        "pass", "flash-2 3 of 3 calls, 100.0 % of attention device time",
    ),
    "another id does not": (
        expect(op="attention", implementation="cudnn"), CALLS,
        "fail", "none of 3 calls; flash-2 3 calls (3.000 ms)",
    ),
    "any of a list": (
        expect(op="attention", implementation=["mem-efficient", "flash"]), [*CALLS, *attention(60, 4, EFFICIENT)],
        "pass", "flash-2 3, mem-efficient 1 of 4 calls, 100.0 % of attention device time",
    ),
    "one slow call is enough": (
        expect(op="attention", implementation="fused"), [*CALLS, *math(60, 4, 0.5)],
        "fail", "flash-2 3 of 4 calls, 85.7 % of attention device time; math 1 call (0.500 ms)",
    ),
    "but not for a share": (
        expect(op="attention", implementation="fused", min_share=0.85), [*CALLS, *math(60, 4, 0.5)],
        "pass", "flash-2 3 of 4 calls, 85.7 % of attention device time; math 1 call (0.500 ms)",
    ),
    "too little of a share": (
        expect(op="attention", implementation="fused", min_share=0.9), [*CALLS, *math(60, 4, 0.5)],
        "fail", "flash-2 3 of 4 calls, 85.7 % of attention device time; math 1 call (0.500 ms); so it holds for 85.7 %, and 90.0 % is asked",
    ),
    "an unidentified call could turn it": (
        expect(op="attention", implementation="fused"), [*CALLS, *attention(60, 4, UNKNOWN)],
        "inconclusive", "flash-2 3 of 4 calls, 75.0 % of attention device time; unknown 1 call (1.000 ms) cannot be told (25.0 % of attention device time): no signature knows the kernel; so it holds for 75.0 % to 100.0 %, and 100.0 % is asked",
    ),
    "an unidentified call that cannot turn it to fail": (
        expect(op="attention", implementation="fused", min_share=0.7), [*CALLS, *attention(60, 4, UNKNOWN)],
        "pass", "flash-2 3 of 4 calls, 75.0 % of attention device time; unknown 1 call (1.000 ms) cannot be told (25.0 % of attention device time): no signature knows the kernel",
    ),
    "an unidentified call that cannot turn it to pass": (
        expect(op="attention", implementation="cudnn", min_share=0.5), [*CALLS, *attention(60, 4, UNKNOWN)],
        "fail", "none of 4 calls; flash-2 3 calls (3.000 ms); unknown 1 call (1.000 ms) cannot be told (25.0 % of attention device time): no signature knows the kernel; so it holds for 0.0 % to 25.0 %, and 50.0 % is asked",
    ),
    "what only the order of kernels suggests proves nothing": (
        expect(op="attention", implementation="fused"), [*CALLS, *BY_HAND_IN_ORDER],
        "inconclusive", "flash-2 3 of 4 calls, 99.9 % of attention device time; unfused 1 call (0.003 ms) cannot be told (0.1 % of attention device time): attention by hand is only inferred from the order of kernels; so it holds for 99.9 % to 100.0 %, and 100.0 % is asked; 1 call told by the kernel alone: its op is not recorded (kernel-only)",
    ),
    "an unidentified kernel of no op could be attention": (
        expect(op="attention", implementation="flash"), [*CALLS, kernel(UNKNOWN, 9e6, 9.001e6)],
        "inconclusive", "flash-2 3 of 3 calls, 100.0 % of attention device time; unidentified brand_new_kernel_2027 1 kernel (1.000 ms) could belong to it; so it holds for 75.0 % to 100.0 %, and 100.0 % is asked; 1 kernel (1.000 ms) cannot be told to belong to it",
    ),
    "unless it is small": (
        expect(op="attention", implementation="flash"), [*CALLS, kernel(UNKNOWN, 9e6, 9.0001e6)],
        "pass", "flash-2 3 of 3 calls, 100.0 % of attention device time; 1 kernel (0.100 ms) cannot be told to belong to it",
    ),
    "or an op of PyTorch asked for it": (
        expect(op="attention", implementation="flash"), [*CALLS, *matrix(60, 4, UNKNOWN, asks="aten::cumsum")],
        "pass", "flash-2 3 of 3 calls, 100.0 % of attention device time",
    ),
    "a kernel without op counts by its name": (
        expect(op="attention", implementation="flash"), [*CALLS, kernel(FLASH, 9e6, 9.001e6)],
        "pass", "flash-2 4 of 4 calls, 100.0 % of attention device time; 1 call told by the kernel alone: its op is not recorded (kernel-only)",
    ),
    "nothing there is nothing to judge": (
        expect(op="attention", implementation="flash"), matrix(0, 1),
        "inconclusive", "nothing to judge: the trace shows no attention (with min_count = 1 this would fail)",
    ),
    "unless it must occur": (
        expect(op="attention", implementation="flash", min_count=2), matrix(0, 1),
        "fail", "no attention ran, at least 2 asked",
    ),
    "absence is not proven by unidentified work": (
        expect(op="attention", min_count=1), [*matrix(0, 1), kernel(UNKNOWN, 9e6, 9.001e6)],
        "inconclusive", "nothing to judge: the trace shows no attention, but unidentified brand_new_kernel_2027 1 kernel (1.000 ms) could be: no signature knows the kernel, the op is not recorded",
    ),
    "nor by a trace without device work": (
        expect(op="attention", min_count=1), [op("aten::add", 0, 1)],
        "inconclusive", "nothing to judge: the trace shows no attention; no device kernel is recorded and no op asks for attention",
    ),
    "too few calls": (
        expect(op="attention", min_count=4), CALLS, "fail", "only 3 calls found, at least 4 asked",
    ),
    "enough calls": (
        expect(op="attention", min_count=3), CALLS, "pass", "3 calls found, at least 3 asked",
    ),
    "as many calls only if the inferred one is one": (
        expect(op="attention", min_count=4), [*CALLS, *BY_HAND_IN_ORDER],
        "inconclusive", "3 calls proven and up to 4 possible, at least 4 asked; 1 call told by the kernel alone: its op is not recorded (kernel-only)",
    ),
    "by direction": (
        expect(op="attention", direction="backward", implementation="flash"), [*CALLS, *attention(60, 4, FLASH_BACKWARD, asks="aten::_scaled_dot_product_flash_attention_backward")],
        "pass", "flash-2 1 of 1 call, 100.0 % of attention backward device time",
    ),
    "the direction of other work is not known": (
        expect(op="gemm", direction="backward", tensor_core=True), matrix(0, 1),
        "inconclusive", "none of 1 kernel; gemm xmma 1 kernel (1.000 ms) cannot be told (100.0 % of gemm backward device time): only attention tells forward from backward; so it holds for 0.0 % to 100.0 %, and 100.0 % is asked",
    ),
    "by provider": (
        expect(op="attention", provider="flash-attn"), CALLS,
        "fail", "none of 3 calls; flash-2 by pytorch 3 calls (3.000 ms)",
    ),
    "by stage, and there are none": (
        expect(op="attention", stage="denoise*", implementation="flash"), CALLS,
        "inconclusive", "no work of the trace is assigned to a stage, because no annotation, no function or module of a recorded Python stack and no XLA scope names a stage: there is nothing to compare with denoise*",
    ),
    "tensor cores": (
        expect(op="gemm", tensor_core=True), [*matrix(0, 1), *matrix(20, 2, SIMT, 3)],
        "fail", "gemm xmma 1 of 2 kernels, 25.0 % of gemm device time; gemm legacy not on tensor cores 1 kernel (3.000 ms)",
    ),
    "kernels that help another are left out": (
        expect(op="gemm", tensor_core=True), [*matrix(0, 1), *matrix(20, 2, SPLIT_K)],
        "pass", "gemm xmma 1 of 1 kernel, 100.0 % of gemm device time",
    ),
    "matrix products inside attention are matrix products": (
        expect(op="gemm", tensor_core=True), [*matrix(0, 1), *math(20, 2)],
        "fail", "gemm xmma 1 of 2 kernels, 50.0 % of gemm device time; gemm legacy not on tensor cores 1 kernel (1.000 ms)",
    ),
    "precision": (
        expect(op="gemm", precision=["bf16", "fp16"]), [*matrix(0, 1), *matrix(20, 2, SIMT)],
        "fail", "gemm xmma 1 of 2 kernels, 50.0 % of gemm device time; gemm legacy in fp32 1 kernel (1.000 ms)",
    ),
    "an op by its name": (
        expect(op="aten::mm", tensor_core=True), [*matrix(0, 1), *matrix(20, 2, SIMT, asks="aten::bmm")],
        "pass", "gemm xmma 1 of 1 kernel, 100.0 % of aten::mm device time",
    ),
    "ops by a glob": (
        expect(op="aten::*mm", implementation="xmma"), [*matrix(0, 1), *matrix(20, 2, SIMT, asks="aten::bmm")],
        "fail", "gemm xmma 1 of 2 kernels, 50.0 % of aten::*mm device time; gemm legacy 1 kernel (1.000 ms)",
    ),
    "an op whose kernels others launch": (
        expect(op="aten::linear", tensor_core=True), [op("aten::linear", 0, 10), *matrix(0.5, 1)],
        "inconclusive", "nothing to judge: the trace shows no aten::linear; the op is recorded 1 times, but its kernels are launched by ops inside it: name aten::mm",
    ),
    "a word for attention means nothing else": (
        expect(op="aten::mm", implementation="flash"), matrix(0, 1),
        "fail", "none of 1 kernel; gemm xmma 1 kernel (1.000 ms)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_expect(name, judge):
    text, events, verdict, observed = CASES[name]
    assert judge(text, *events) == [(verdict, observed)]


FORBIDDEN = {
    "math did not run": ('implementation = "math"', CALLS, "pass", "nothing of the kind among 3 calls and kernels"),
    "math ran": ('implementation = "math"', [*CALLS, *math(60, 4)], "fail", "math 1 call (1.000 ms) ran"),
    "it could have run": (
        'implementation = "math"', attention(0, 1, UNKNOWN),
        "inconclusive", "nothing of the kind is proven, but unknown 1 call (1.000 ms) could be: no signature knows the kernel",
    ),
    "it is only inferred": (
        'implementation = "unfused"', [*CALLS, *BY_HAND_IN_ORDER],
        "inconclusive", "nothing of the kind is proven, but unfused 1 call (0.003 ms) could be: attention by hand is only inferred from the order of kernels",
    ),
    "a kernel by its name": ('kernel = "*sgemm*"', [*matrix(0, 1), *math(20, 2)], "fail", "gemm legacy 1 kernel (1.000 ms) ran"),
    "a kernel by its name without return type": (
        'kernel = "pytorch_flash::*"', CALLS, "fail", "flash-2 3 kernels (3.000 ms) ran"),
    "no such kernel": ('kernel = "sm75*"', CALLS, "pass", "nothing of the kind among 3 kernels"),
    "all at once": ('op = "gemm"\ntensor_core = false', [*matrix(0, 1), *matrix(20, 2, SIMT)], "fail", "gemm legacy 1 kernel (1.000 ms) ran"),
    "an op": ('op = "aten::bmm"', matrix(0, 1), "pass", "nothing of the kind among 1 calls and kernels"),
    "a rule that finds something": ('rule = "TV102"', math(0, 1), "fail", "1 SDPA call fell back to math: 1.000 ms of device time, 100.0 % of busy time"),
    "a rule that finds nothing": ('rule = "TV102"', CALLS, "pass", "TV102 found nothing"),
    "a rule that infers something": (
        'rule = "TV101"', [*CALLS, *BY_HAND_IN_ORDER],
        "inconclusive", "inferred, not proven: 1 attention call seem to have run unfused: 0.003 ms of device time, 0.1 % of busy time",
    ),
    "nothing is recorded": (
        'kernel = "x"', [op("aten::add", 0, 1)],
        "inconclusive", "no device kernel is recorded and no op asks for attention",
    ),
    "no kernel is recorded": (
        'kernel = "x"', [op("aten::scaled_dot_product_attention", 0, 1)],
        "inconclusive", "no device kernel is recorded, so no name can be compared",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORBIDDEN)
def test_forbid(name, judge):
    text, events, verdict, observed = FORBIDDEN[name]
    assert judge(f"[[forbid]]\n{text}\n", *events) == [(verdict, observed)]


@pytest.mark.parametrize(
    ("limit", "verdict", "observed"),
    [
        ("idle_share = 0.5", "pass", "the device was idle for 50.0 % of its span (1.000 ms of 2.000 ms)"),
        ("idle_share = 0.49", "fail", "the device was idle for 50.0 % of its span (1.000 ms of 2.000 ms)"),
        ("exposed_copy_share = 0.0", "pass", "the device was held up by copies for 0.0 % of its span (0.000 ms of 2.000 ms)"),
        ("unidentified_share = 0.4", "fail", "50.0 % of device time is in kernels that no signature knows (such as brand_new_kernel_2027)"),
    ],
)  # fmt: skip
def test_limit(limit, verdict, observed, judge):
    events = [kernel(GEMM, 0, 500), kernel(UNKNOWN, 1500, 2000)]
    assert judge(f"[limits]\n{limit}\n", *events) == [(verdict, observed)]


def test_the_worst_device_counts(judge):
    events = [kernel(GEMM, 0, 100), kernel(GEMM, 0, 10, device=1), kernel(GEMM, 90, 100, device=1)]
    assert judge("[limits]\nidle_share = 0.5\n", *events) == [
        ("fail", "device 1, the worst of 2, was idle for 80.0 % of its span (0.080 ms of 0.100 ms)")
    ]


def test_without_device_time_host_time_counts(judge):
    calls = [
        op("aten::scaled_dot_product_attention", 0, 10),
        op("aten::_scaled_dot_product_flash_attention_for_cpu", 1, 9),
    ]
    slow = [op("aten::scaled_dot_product_attention", 20, 50), op("aten::_scaled_dot_product_attention_math", 21, 49)]
    assert judge(expect(op="attention", implementation="flash"), *calls, *slow) == [
        ("fail", "cpu-flash 1 of 2 calls, 25.0 % of attention host time; math 1 call (0.030 ms of host time)")
    ]


def test_where_some_device_time_is_missing_calls_count(judge):
    """A slow call whose kernels were lost has no device time; it must not vanish from the share."""
    slow = [op("aten::scaled_dot_product_attention", 60, 69), op("aten::_scaled_dot_product_attention_math", 61, 68)]
    text = expect(op="attention", implementation="fused", min_share=0.9)
    assert judge(text, *CALLS, *slow) == [
        ("fail", "flash-2 3 of 4 calls, 75.0 % of attention calls; math 1 call (0.009 ms of host time); so it holds for 75.0 %, and 90.0 % is asked")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "events", "whole", "cut"),
    [
        (expect(op="attention", implementation="fused"), CALLS, Verdict.PASS, Verdict.INCONCLUSIVE),
        (expect(op="attention", implementation="cudnn"), CALLS, Verdict.FAIL, Verdict.FAIL),
        (expect(op="attention", implementation="cudnn", min_share=0.5), CALLS, Verdict.FAIL, Verdict.INCONCLUSIVE),
        (expect(op="attention", min_count=4), CALLS, Verdict.FAIL, Verdict.INCONCLUSIVE),
        (expect(op="attention", min_count=3), CALLS, Verdict.PASS, Verdict.PASS),
        (expect(op="conv", min_count=1), CALLS, Verdict.FAIL, Verdict.INCONCLUSIVE),
        ('[[forbid]]\nimplementation = "math"\n', CALLS, Verdict.PASS, Verdict.INCONCLUSIVE),
        ('[[forbid]]\nimplementation = "math"\n', math(0, 1), Verdict.FAIL, Verdict.FAIL),
    ],
)
def test_a_file_that_is_cut_off_proves_no_absence(text, events, whole, cut, write):
    expectations = read_expectations(write('policy = "none"\n' + text))
    complete = timeline(*events)
    assert check(complete, expectations).verdict is whole
    assert check(replace(complete, report=ImportReport(truncated=True)), expectations).verdict is cut


BLOCK = [launch(3e6, 90, name="cudaGraphLaunch"), kernel("CUDA Graph", 3e6 + 2, 3e6 + 1002, 90, kind="graph")]
"""A millisecond in a replay that is recorded as one opaque block, beside three of attention."""


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (expect(op="attention", implementation="fused"), "inconclusive"),
        (expect(op="attention", implementation="fused", min_share=0.7), "pass"),
        (expect(op="attention", implementation="fused", min_share=0.8), "inconclusive"),
        (expect(op="attention", implementation="cudnn"), "fail"),
        (expect(op="attention", min_count=3), "pass"),
        (expect(op="gemm", min_count=1), "inconclusive"),
        ('[[forbid]]\nimplementation = "math"\n', "inconclusive"),
        ('[[forbid]]\nrule = "TV202"\n', "inconclusive"),
        ('[[forbid]]\nimplementation = "flash"\n', "fail"),
    ],
)
def test_an_opaque_graph_could_be_anything(judge, text, verdict):
    assert [one for one, _ in judge(text, *CALLS, *BLOCK)] == [verdict]
