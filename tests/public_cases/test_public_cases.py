"""Slow paths that were reported in public, written as traces: the product names the stated cause and no other.

Each case is written twice, with its cause and without it, to a file that is loaded, linked and judged like any other.
What counts is the set of errors and warnings, and that set is exact. Remarks (severity info) are compared where they
are the answer; everywhere else a few events in an otherwise idle window make the host late (TV404), which is true.
"""

# ruff: noqa: SIM117 - one `with` a level, as the ops nest in the trace.
from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from authored_timeline import Event, host, kernel, launch, timeline
from sample_traces import kernel_names as k
from sample_traces import op_chains as ops
from sample_traces.authoring import A100, H100, Tensor, Thread, Trace
from sample_traces.op_chains import BF16, F32
from traceview import load
from traceview.errors import ExitCode
from traceview.expectations.model import Context
from traceview.explaining import Explained, explain_trace
from traceview.findings import Finding, Severity
from traceview.gate import CheckResult, check
from traceview.reasons import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

TF32 = "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x256_16x3_tn_align4>(Params)"
GROUPED = "void cudnn::cnn::wgrad2d_grouped_direct_kernel<__half, __half, float, float, true, false, 0, 0, 0>(Params)"
TO_NHWC = "void cudnn::ops::nchwToNhwcKernel<__half, __half, float, false, true, (cudnnKernelDataType_t)0>(Params)"
CUDNN_BACKWARD = "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_5_64x128x128_4x1x1_kernel0_0"
SDPA = "aten::scaled_dot_product_attention"


def counted(findings: Iterable[Finding]) -> set[str]:
    """Codes of the errors and warnings."""
    return {one.code for one in findings if one.severity is not Severity.INFO}


def remarks(findings: Iterable[Finding]) -> set[str]:
    return {one.code for one in findings if one.severity is Severity.INFO}


def linear_steps(t: Thread, inside: Callable[[int], None], count: int = 4) -> None:
    """Steps of plain bf16 work, with something done in each."""
    x = Tensor(1, 4096, 1024, dtype=BF16)
    for number in range(count):
        with t.step(number):
            ops.linear(t, x, 1024, us=900)
            inside(number)
            ops.linear(t, x, 1024, us=900)


# Attention: the reasons, from an SDPA call with its recorded inputs.


def reasons(trace: Trace, path: Path, torch: str) -> tuple[Explained, CheckResult]:
    loaded = load(trace.write(path / "trace.json"))
    (one,) = explain_trace(loaded, torch=torch).explained
    return one, check(loaded, context=Context(torch=torch))


def causes(one: Explained) -> set[str]:
    return {reason.rule for reason in one.of(Role.CAUSE)}


def grouped_in(dtype: str) -> Trace:
    trace = Trace(gpu=A100)
    q, kv = Tensor(1, 16, 2048, 64, dtype=dtype), Tensor(1, 4, 2048, 64, dtype=dtype)
    if dtype == F32:
        ops.sdpa_math_gqa(trace.thread(), q, kv, bmm_us=704, softmax_us=(800, 440, 118, 788))
    else:
        ops.sdpa_flash(trace.thread(), q, kv, us=171, gqa=True)
    return trace


def test_grouped_heads_in_fp32_end_in_math(tmp_path):
    """pytorch/pytorch pull request 181528: 23.1 ms instead of 0.32 ms, without a word."""
    one, result = reasons(grouped_in(F32), tmp_path, "2.9")
    assert (one.first.implementation, causes(one)) == ("math", {"F1", "F10"})
    assert result.exit_code is ExitCode.VIOLATED
    # The fp32 products and the strided copies are parts of math, so they are no findings of their own.
    assert counted(result.findings) == {"TV102"}


def test_grouped_heads_in_bf16_run_fused(tmp_path):
    one, result = reasons(grouped_in(BF16), tmp_path, "2.9")
    assert (one.first.implementation, causes(one)) == ("flash-2", set())
    assert (result.exit_code, counted(result.findings)) == (ExitCode.OK, set())


def wide_heads(size: int, kv_heads: int) -> Trace:
    trace = Trace(gpu=A100)
    t = trace.thread()
    q, kv = Tensor(1, 16, 1024, size, dtype=BF16), Tensor(1, kv_heads, 1024, size, dtype=BF16)
    if size <= 256:
        ops.sdpa_flash(t, q, kv, us=90, gqa=kv_heads != 16)
        return trace
    arguments = (None, 0.0, False, None)
    with t.op(SDPA, q, kv, kv, *arguments, True):
        with t.op("aten::_scaled_dot_product_attention_math", q, kv, kv, *arguments, None, True):
            scores = ops.matmul(t, q, q.swap(2, 3), kernel=k.GEMM_BF16_A100, us=200)
            with t.op("aten::_softmax", scores, -1, False):
                t.launch(k.softmax_block("c10::BFloat16", 8), us=150)
            ops.matmul(t, scores, q, kernel=k.GEMM_BF16_A100, us=200)
    return trace


def test_head_size_512_with_grouped_heads_ends_in_math(tmp_path):
    """huggingface/transformers pull request 46960: out of memory without a mask."""
    one, result = reasons(wide_heads(512, 4), tmp_path, "2.8")
    assert (one.first.implementation, causes(one)) == ("math", {"F3", "F10"})
    assert (result.exit_code, counted(result.findings)) == (ExitCode.VIOLATED, {"TV102"})


def test_head_size_256_with_grouped_heads_runs_fused(tmp_path):
    one, result = reasons(wide_heads(256, 4), tmp_path, "2.8")
    assert (one.first.implementation, causes(one)) == ("flash-2", set())
    assert (result.exit_code, counted(result.findings)) == (ExitCode.OK, set())


def efficient(dtype: str) -> Trace:
    trace = Trace(gpu=A100)
    t = trace.thread()
    q = Tensor(8, 12, 512, 64, dtype=dtype)
    if dtype != F32:
        ops.sdpa_flash(t, q, q, us=60)
        return trace
    with t.op(SDPA, q, q, q, None, 0.0, False, None, False):
        with t.op("aten::_scaled_dot_product_efficient_attention", q, q, q, None, False, 0.0, False, 0.125):
            with t.op("aten::_efficient_attention_forward", q, q, q, None):
                t.launch(k.MEM_EFFICIENT_F32, us=400)
    return trace


def test_fp32_is_named_and_the_mask_that_was_blamed_is_not(tmp_path):
    """huggingface/transformers issue 36217: "Albert does not use flash"; no mask was passed, the model ran in fp32."""
    one, result = reasons(efficient(F32), tmp_path, "2.6")
    assert (one.first.implementation, causes(one)) == ("mem-efficient", {"F1"})
    assert one.first.provider == "pytorch"
    assert "F2" not in {reason.rule for reason in one.reasons}
    assert (result.exit_code, counted(result.findings)) == (ExitCode.OK, {"TV201"})


def test_the_same_model_in_bf16_runs_flash(tmp_path):
    one, result = reasons(efficient(BF16), tmp_path, "2.6")
    assert (one.first.implementation, causes(one)) == ("flash-2", set())
    assert (result.exit_code, counted(result.findings)) == (ExitCode.OK, set())


# cuDNN attention: a plan for each shape.


def cudnn_call(t: Thread, tokens: int, *, plan_us: float = 0) -> None:
    q = Tensor(4, 16, tokens, 128, dtype=BF16)
    with t.op(SDPA, q, q, q, None, 0.0, False, None, False):
        with t.op("aten::_scaled_dot_product_cudnn_attention", q, q, q, None, False, 0.0, False, False, 0.0884):
            with t.op("aten::_cudnn_attention_forward", q, q, q, None, us=24.7 + plan_us):
                t.launch(k.CUDNN_SDPA, us=300, api="cuLaunchKernelEx")


def cudnn_backward(t: Thread, *, copied: bool) -> None:
    grad = Tensor(4, 16, 1024, 128, dtype=BF16)
    with t.op("aten::_scaled_dot_product_cudnn_attention_backward", grad, grad, grad, grad):
        if copied:
            with t.op("aten::clone", grad.swap(1, 2), 0), t.op("aten::copy_", grad, grad.swap(1, 2), False):
                t.launch(k.COPY_BF16, us=120)
        with t.op("aten::_cudnn_attention_backward", grad, grad, grad, grad):
            t.launch(CUDNN_BACKWARD, us=700, api="cuLaunchKernelEx")


def first_cudnn_call(*, cause: bool) -> Trace:
    trace = Trace(gpu=H100)
    t = trace.thread()
    for number in range(12):
        cudnn_call(t, 1024, plan_us=400_000 if cause and not number else 0)
        cudnn_backward(t, copied=cause)
    t.sync()
    return trace


def test_the_first_cudnn_call_and_the_copy_of_the_gradient_are_remarks(tmp_path):
    """meta-pytorch/torchtune issue 1652: a long first call, and a copy because the strides of grad_output differ.

    Both are remarks by intent: without steps the first call may be the warm-up (TV304), and a strided copy may be
    needed (TV119). TV404 is right too: in the 400 ms the device has nothing to do.
    """
    result = check(load(first_cudnn_call(cause=True).write(tmp_path / "trace.json")))
    assert (result.exit_code, counted(result.findings)) == (ExitCode.OK, set())
    found = {one.code: one for one in result.findings}
    assert set(found) == {"TV119", "TV304", "TV404"}
    assert found["TV304"].title == "1 cuDNN attention call took far longer than usual: 400.000 ms on the host"
    assert found["TV119"].cost_ns == 12 * 120_000
    twin = check(load(first_cudnn_call(cause=False).write(tmp_path / "twin.json")))
    assert (twin.exit_code, counted(twin.findings)) == (ExitCode.OK, set())
    assert not {"TV119", "TV304"} & remarks(twin.findings)


# Everything else: with and without the cause.


def cudnn_plans(*, cause: bool) -> Trace:
    """modelscope/FunASR issue 3704: a step with an unseen length takes 1.05 s instead of 0.098 s."""
    trace = Trace(gpu=H100)
    t = trace.thread()
    lengths = (512, 512, 640, 512, 640, 768, 512)
    for number, tokens in enumerate(lengths):
        with t.step(number):
            unseen = tokens not in lengths[:number]
            cudnn_call(t, tokens, plan_us=950_000 if cause and unseen else 0)
            cudnn_call(t, tokens)
    return trace


def fp32_products(*, cause: bool) -> Trace:
    """pytorch issue 153195: TF32 is off by default, and eager mode does not say so."""
    trace = Trace(gpu=A100)
    name = k.GEMM_F32_SIMT_A100 if cause else TF32
    ops.linear(trace.thread(), Tensor(4096, 1024), 4096, us=1800 if cause else 260, kernel=name, api="cudaLaunchKernel")
    return trace


def convolution(*kernels: tuple[str, float], groups: int = 1) -> Trace:
    trace = Trace(gpu=H100)
    t = trace.thread()
    x, w = Tensor(32, 256, 56, 56, dtype="c10::Half"), Tensor(256, 256 // groups, 3, 3, dtype="c10::Half")
    with t.op("aten::convolution_backward", x, x, w, [0], [1, 1], [1, 1], [1, 1], False, [0, 0], groups):
        for name, us in kernels:
            t.launch(name, us=us)
    return trace


def grouped_convolution(*, cause: bool) -> Trace:
    """pytorch issue 50036: 97 ms in a kernel without tensor cores."""
    return convolution((GROUPED if cause else k.CONV_BF16, 97_000 if cause else 2_000), groups=32)


def channels_first(*, cause: bool) -> Trace:
    """pytorch issue 34977: channels first around kernels that want channels last."""
    convert = [(TO_NHWC, 90)] if cause else []
    return convolution(*convert, (k.CONV_BF16, 300))


def compile_frame(t: Thread, us: float) -> None:
    with t.range("entire_frame_compile (dynamo_timed)"):
        with t.range("_compile.compile_inner (dynamo_timed)"):
            with t.range("backend_compile (dynamo_timed)", us=us):
                pass


def recompiles(*, cause: bool) -> Trace:
    """A guard that fails with each call, as in jax-ml/jax issue 31319: each step compiles."""
    trace = Trace(gpu=H100)
    t = trace.thread()
    linear_steps(t, lambda number: compile_frame(t, 80_000) if cause or number == 0 else None)
    return trace


def cache_limit(*, cause: bool) -> Trace:
    """pytorch issue 128954: the frame hits its limit, then inner frames compile one by one.

    The twin has the same counter in its region names, which alone proves nothing.
    """
    trace = Trace(gpu=H100)
    t = trace.thread()

    def region(number: int) -> None:
        for frame in range(1, 9):
            if cause or number == 0:
                compile_frame(t, 20_000)
            t.call(f"Torch-Compiled Region: {frame}/{number}")

    linear_steps(t, region)
    return trace


def read_value(t: Thread, value: Tensor) -> None:
    with t.op("aten::item", value), t.op("aten::_local_scalar_dense", value):
        t.memcpy("DtoH", 4, us=1.2, pinned=True)
        t.sync()


def loss_item(*, cause: bool) -> Trace:
    """meta-pytorch/torchtune pull request 522: loss.item() in each step waits 40 ms for the device."""
    trace = Trace(gpu=H100)
    t = trace.thread()
    x = Tensor(1, 4096, 1024, dtype=BF16)
    for number in range(4):
        with t.step(number):
            for _ in range(20):
                ops.linear(t, x, 1024, us=2_000)
            if cause:
                read_value(t, Tensor())
                t.idle(3_000)  # What the host does before it launches again, now with nothing queued.
    return trace


def optimizer_items(*, cause: bool) -> Trace:
    """konstmish/prodigy issue 38: one item() per parameter. The twin updates all parameters at once."""
    trace = Trace(gpu=H100)
    t = trace.thread()
    p = Tensor(512, 512)

    def update(_: int) -> None:
        with t.range("Optimizer.step#Prodigy.step"):
            if not cause:
                with t.op("aten::_foreach_add_", [p, p], [p, p], 1):
                    t.launch(k.FOREACH_ADD, us=900)
                return
            for _ in range(200):
                with t.op("aten::sub_", p, p, 1):
                    t.launch(k.ADD_F32, us=3)
                read_value(t, Tensor())

    linear_steps(t, update)
    return trace


def allocator(*, cause: bool) -> Trace:
    """pytorch issue 65078: near the memory limit the pool goes back to the driver in each step."""
    trace = Trace(gpu=H100)
    t = trace.thread()

    def allocate(number: int) -> None:
        if cause or number == 0:
            t.api("cudaFree", us=700)
            t.api("cudaMalloc", us=900)

    linear_steps(t, allocate)
    return trace


CASES = {
    cudnn_plans: {"TV304"},
    fp32_products: {"TV202"},
    grouped_convolution: {"TV116"},
    channels_first: {"TV115"},
    recompiles: {"TV301"},
    cache_limit: {"TV301"},
    loss_item: {"TV401"},
    # The wait after each parameter, and that there are so many parameters to wait for.
    optimizer_items: {"TV120", "TV401"},
    allocator: {"TV503"},
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_exactly_the_cause_is_named(case, tmp_path):
    result = check(load(case(cause=True).write(tmp_path / "trace.json")))
    assert counted(result.findings) == CASES[case]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_without_the_cause_nothing_is_named(case, tmp_path):
    result = check(load(case(cause=False).write(tmp_path / "trace.json")))
    assert (result.exit_code, counted(result.findings)) == (ExitCode.OK, set())
    assert not CASES[case] & remarks(result.findings)


# XLA: no Kineto file holds its host and device planes, so these are timelines as they are after loading.


def xla_steps(*compiled_in: int) -> list[Event]:
    """Four steps of one program; those that are named compile it first."""
    events = []
    for number in range(4):
        at = 1_000 * number
        events += [
            host("annotation", f"ProfilerStep#{number}", at, at + 990),
            *([host("compile", "XlaCompile: jit_step", at + 10, at + 300)] if number in compiled_in else []),
            launch(at + 310, number, name="cuLaunchKernel"),
            kernel(k.GEMM_BF16_H100, at + 320, at + 980, number),
        ]
    return events


@pytest.mark.parametrize(
    ("compiled_in", "count"),
    [
        # jax-ml/jax issue 31319: pure_callback misses the cache in each call, and no log says so.
        ((0, 1, 2, 3), 3),
        # jax-ml/jax issue 3163: the weak type flips after the first pass, so the same module compiles once more.
        ((0, 1), 1),
    ],
)
def test_an_xla_program_that_compiles_again_is_named(compiled_in, count):
    result = check(timeline(*xla_steps(*compiled_in)))
    assert counted(result.findings) == {"TV301"}
    (finding,) = [one for one in result.findings if one.code == "TV301"]
    assert finding.title.startswith(f"{count} compilation")
    assert finding.cost_ns == count * 290_000
    assert f"{count} × XlaCompile: jit_step: {count * 0.29:.3f} ms" in finding.evidence


def test_an_xla_program_that_compiles_once_is_not():
    result = check(timeline(*xla_steps(0)))
    assert (result.exit_code, counted(result.findings)) == (ExitCode.OK, set())


def test_an_opaque_command_buffer_cannot_be_told():
    """openxla/xprof issue 3070: command buffers leave the profile of ops empty."""
    opaque = kernel("command_buffer", 10, 900, 1, kind="graph")
    result = check(
        timeline(launch(0, 1, name="cuGraphLaunch"), opaque, launch(2, 2), kernel(k.GEMM_BF16_H100, 910, 1_000, 2))
    )
    assert result.exit_code is ExitCode.INCONCLUSIVE
    assert "90.8 % of device time is in kernels that are not identified (such as command_buffer)" in result.summary
    assert {one.code for one in result.findings} == {"TV905"}


def test_a_command_buffer_whose_kernels_are_recorded_is_judged():
    kernels = [kernel(k.GEMM_BF16_H100, 10, 500, 1), kernel(k.GEMM_BF16_H100, 500, 900, 1)]
    result = check(timeline(launch(0, 1, name="cuGraphLaunch"), *kernels))
    assert (result.exit_code, result.findings) == (ExitCode.OK, ())


def replayed(kernels: int) -> Trace:
    """One graph of a decode loop, replayed four times; what ran inside is recorded, or nothing of it."""
    trace = Trace(gpu=H100)
    t = trace.thread()
    for _ in range(4):
        ops.linear(t, Tensor(8, 1024, dtype=BF16), 1024, us=20)
        t.graph_launch([(k.GEMM_BF16_H100, 80.0)] * kernels)
    t.sync()
    return trace


def test_graph_replays_without_kernels_cannot_be_told(tmp_path):
    result = check(load(replayed(0).write(tmp_path / "trace.json")))
    assert counted(result.findings) == {"TV905"}
    assert result.exit_code is ExitCode.INCONCLUSIVE
    assert "4 of 4 graph launches have no recorded kernel" in result.summary
    twin = check(load(replayed(3).write(tmp_path / "twin.json")))
    assert (twin.exit_code, counted(twin.findings)) == (ExitCode.OK, set())
