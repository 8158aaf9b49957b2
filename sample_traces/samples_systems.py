"""Authored samples about what hides or splits the op tree: graphs, compilers, several ranks, other vendors."""

# ruff: noqa: SIM117 - one `with` a level, as the ops nest in the trace.
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sample_traces import kernel_names as k
from sample_traces import op_chains as ops
from sample_traces.authoring import A100, H100, MI300X, Dispatch, Tensor, Trace
from sample_traces.op_chains import BF16

if TYPE_CHECKING:
    from sample_traces.authoring import Event, Thread

SECOND_NS = 1_000_000_000


def graph_replay() -> Trace:
    """A decode loop that replays one CUDA graph per token: kernels are visible, the ops that asked are not."""
    trace = Trace(gpu=H100, note="A graph replay owns every kernel of the model; there is no op above them.")
    main = trace.thread()
    layer = [
        (k.RMS_NORM, 2.9), (k.GEMM_BF16_H100, 7.8), (k.CACHE_WRITE, 2.1), (k.UNIFIED_2D, 18.6), (k.GEMM_BF16_H100, 6.2),
        ("triton_poi_fused_mul_silu_0", 3.4), (k.GEMM_BF16_H100, 11.5),
    ]  # fmt: skip
    tokens = Tensor(8, dtype="long int")
    logits = Tensor(8, 32000)
    for _ in range(3):
        with main.range("execute_context_0(0)_generation_8(8)"):
            with main.op("aten::copy_", tokens, tokens, True, us=3.4):
                main.memcpy("HtoD", 64, us=1.3, pinned=True)
            for kernel in main.graph_launch(layer * 3):
                if kernel.name == k.UNIFIED_2D:
                    trace.dispatches.append(Dispatch("attention", "triton", "vllm", "opaque", "decode", [kernel]))
            main.idle(40)
            with main.op("aten::argmax", logits, -1, False, us=9.0):
                main.launch(k.ARGMAX_F32, us=9.7)
            with main.op("aten::copy_", tokens, tokens, False, us=2.8):
                main.memcpy("DtoH", 64, us=1.4)
                main.sync()
        main.idle(310)
    return trace


def _triton(t: Thread, name: str, *inputs: Tensor, us: float) -> None:
    with t.op(name, *inputs, us=9.6) as event:
        event.args |= {"kernel_backend": "triton", "grid": "grid(4096,)", "stream": 0}
        t.launch(name, us=us, api="cuLaunchKernel", api_us=5.3, grid=(4096, 1, 1), regs=34)


def _compiled_forward(t: Thread, rows: int, *, guard: int, key: str, suffix: int) -> None:
    q = Tensor(64, rows, 64, dtype=BF16)
    scores = Tensor(64, rows, rows, dtype=BF16)
    flat, weight = Tensor(4 * rows, 1024, dtype=BF16), Tensor(1024, 4096, dtype=BF16)
    with t.op(f"Torch-Compiled Region: 0/{guard}", us=31.0):
        t.call("Pregraph bytecode", us=5.1)
        t.call("AOTDispatcher Runtime Wrapper Prologue", us=4.4)
        with t.range(f"## Call CompiledFxGraph {key} ##", us=12.7):
            with t.dispatch("attention", "unfused", None, stage="forward"):
                with t.op("aten::bmm", q, q.swap(1, 2), us=8.1):
                    t.launch(k.GEMM_BF16_A100, us=33.4 * rows / 512, regs=122)
                _triton(t, f"triton_per_fused__safe_softmax_mul_{suffix}", scores, scores, us=41.8 * rows / 512)
                with t.op("aten::bmm", scores, q, us=7.9):
                    t.launch(k.GEMM_BF16_A100, us=33.9 * rows / 512, regs=122)
            with t.op("aten::mm", flat, weight, us=8.4):
                t.launch(k.GEMM_BF16_A100, us=88.2 * rows / 512, regs=122)
            _triton(t, f"triton_poi_fused_gelu_{suffix + 1}", Tensor(4 * rows, 4096, dtype=BF16), us=25.7 * rows / 512)


def compiled() -> Trace:
    """A compiled model whose math attention was decomposed, and one recompile in the middle of the run."""
    note = "torch.compile split attention into two GEMMs and a Triton softmax; step 2 recompiles."
    trace = Trace(gpu=A100, note=note, extra={"torch_version": "2.9.1"})
    main = trace.thread()
    keys = {
        0: "f4qxm3ytzc7hbzsv5n3l2dpgkqk6w7r5u6ehx3jaodvtb2lcyqns",
        1: "fb2w5kzj3hs7ygnxqd4m6rvtelopca5iuw3xkq2tz7hbyd4nflsm",
    }
    for step, (rows, guard) in enumerate([(512, 0), (512, 0), (640, 1), (640, 1)]):
        with main.step(step), main.range("forward"):
            main.call("TorchDynamo Cache Lookup", us=18.6)
            if step in (0, 2):
                with main.range("entire_frame_compile (dynamo_timed)", us=900.0):
                    with main.range("_compile.compile_inner (dynamo_timed)", us=5200.0):
                        with main.range("backend_compile (dynamo_timed)", us=7100.0):
                            with main.range("GraphLowering.codegen (dynamo_timed)", us=64000.0 if step else 71000.0):
                                pass
            _compiled_forward(main, rows, guard=guard, key=keys[guard], suffix=2 * guard)
            main.sync()
    return trace


def _train_forward(t: Thread, x: Tensor, slow: float = 1.0) -> None:
    with t.range("forward"), t.op("DistributedDataParallel.forward", us=18.3):
        for us in (63.2, 118.7):
            ops.linear(t, x, 1024, us=us * slow)
            ops.elementwise(t, "aten::gelu", x, "none", kernel=k.GELU_BF16, us=9.9)


def _train_backward(t: Thread, x: Tensor, slow: float = 1.0) -> None:
    weight = Tensor(1024, 1024, dtype=BF16)
    for us in (119.4, 64.1):
        with t.op("autograd::engine::evaluate_function: AddmmBackward0", us=11.2), t.op("AddmmBackward0", us=6.3):
            for a, b in ((x, weight), (x.swap(0, 1), x)):
                with t.op("aten::mm", a, b, us=8.8):
                    t.launch(k.GEMM_BF16_H100, us=us * slow, api="cudaLaunchKernelExC", block=(384, 1, 1), regs=168)


def _all_reduce(t: Thread, rank: int, world: int = 2, *, not_before_ns: int = 0) -> Event:
    numel = 2 * 1024 * 1024
    facts = {
        "Collective name": "allreduce", "In msg nelems": numel, "Out msg nelems": numel, "Group size": world,
        "dtype": "BFloat16", "In split size": "[]", "Out split size": "[]", "Process Group Name": "0",
        "Process Group Description": "default_pg", "Process Group Ranks": str(list(range(world))), "Rank": rank,
    }  # fmt: skip
    with t.op("c10d::allreduce_", us=19.5), t.op("record_param_comms", us=14.6) as event:
        event.args |= facts
        with t.range("nccl:all_reduce", us=21.9):
            return t.launch(
                k.NCCL_ALL_REDUCE,
                us=0,
                stream=20,
                api="cudaLaunchKernelExC",
                grid=(24, 1, 1),
                block=(544, 1, 1),
                not_before_ns=not_before_ns,
                more=facts,
            )


def _optimizer(t: Thread, reduced: Event) -> None:
    with t.range("Optimizer.step#SGD.step"):
        numbers = [Tensor(1024, 1024, dtype=BF16)] * 2
        with t.op("aten::_foreach_add_", numbers, numbers, -0.01, us=16.4):
            t.launch(k.FOREACH_ADD, us=24.8, not_before_ns=reduced.end_ns + 1900)


def train_ranks(*, own_clocks: bool) -> list[Trace]:
    """Two data-parallel ranks; rank 1 loads its data slowly, so the all-reduce of rank 0 waits for it.

    Args:
        own_clocks: Each file has its own ``baseTimeNanoseconds``; otherwise both share one, as in a merged file.
    """
    base = 1_767_225_600 * SECOND_NS
    ranks = []
    for rank in (0, 1):
        ahead = 3 * SECOND_NS * rank if own_clocks else 0
        ranks.append(Trace(
            gpu=H100, devices=2, device=rank, pid=31000 + 7 * rank, base_ns=base + ahead,
            start_ns=7_000_000_000_250_500 + 41_300 * rank - ahead, rank=rank, world_size=2,
            note="Two ranks of one training run; the second is late, the first waits inside its all-reduce.",
        ))  # fmt: skip
    x = Tensor(4096, 1024, dtype=BF16)
    mains = [trace.thread() for trace in ranks]
    autograd = [trace.thread(trace.pid + 300, name="pt_autograd_0") for trace in ranks]
    for step in range(2):
        steps: list[Any] = [main.step(step) for main in mains]
        for context in steps:
            context.__enter__()
        reduced = []
        for rank, (main, worker) in enumerate(zip(mains, autograd, strict=True)):
            with main.range(
                "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", us=61.2 if rank == 0 else 1461.2
            ):
                pass
            main.memcpy("HtoD", 4096 * 1024 * 2, us=331.4, pinned=True)
            _train_forward(main, x)
            worker.now = main.now + 9_000
            _train_backward(worker, x)
            reduced.append(_all_reduce(worker, rank))
            with main.range("backward"):
                main.now = max(main.now, worker.now)
        _meet(ranks, reduced, transfer_ns=412_600)
        for main, event, context in zip(mains, reduced, steps, strict=True):
            _optimizer(main, event)
            main.sync()
            context.__exit__(None, None, None)
    return ranks


STRAGGLER: Final = 2
STRAGGLER_SLOWER: Final = 1.4
STRAGGLER_WORLD: Final = 4
STRAGGLER_STEPS: Final = 4


def straggler() -> list[Trace]:
    """Four data-parallel ranks, the GPU of one of which runs slower: the others wait for it in every all-reduce."""
    ranks = [
        Trace(
            gpu=H100, devices=STRAGGLER_WORLD, device=rank, pid=52_000 + 11 * rank, rank=rank,
            world_size=STRAGGLER_WORLD, start_ns=7_000_000_000_250_500 + 13_700 * rank,
            note=f"Four ranks of one training run; the GPU of rank {STRAGGLER} is slower, the others wait for it in "
            "every all-reduce.",
        )
        for rank in range(STRAGGLER_WORLD)
    ]  # fmt: skip
    x = Tensor(4096, 1024, dtype=BF16)
    mains = [trace.thread() for trace in ranks]
    autograd = [trace.thread(trace.pid + 300, name="pt_autograd_0") for trace in ranks]
    for step in range(STRAGGLER_STEPS):
        steps: list[Any] = [main.step(step) for main in mains]
        for context in steps:
            context.__enter__()
        reduced = []
        for rank, (main, worker) in enumerate(zip(mains, autograd, strict=True)):
            slow = STRAGGLER_SLOWER if rank == STRAGGLER else 1.0
            for _ in range(3):
                _train_forward(main, x, slow)
            worker.now = main.now + 9_000
            for _ in range(3):
                _train_backward(worker, x, slow)
            # One bucket: its stream waits for the event behind the last gradient.
            gradients_ns = ranks[rank].stream_free[rank, 7] + 1_900
            reduced.append(_all_reduce(worker, rank, STRAGGLER_WORLD, not_before_ns=gradients_ns))
            with main.range("backward"):
                main.now = max(main.now, worker.now)
        _meet(ranks, reduced, transfer_ns=212_600)
        for main, event, context in zip(mains, reduced, steps, strict=True):
            _optimizer(main, event)
            main.sync()
            context.__exit__(None, None, None)
    return ranks


def _meet(ranks: list[Trace], kernels: list[Event], *, transfer_ns: int) -> None:
    """An all-reduce ends everywhere at the same instant, a transfer after its last rank has arrived."""
    last = max(trace.base_ns + kernel.start_ns for trace, kernel in zip(ranks, kernels, strict=True))
    for trace, kernel in zip(ranks, kernels, strict=True):
        kernel.end_ns = last + transfer_ns - trace.base_ns
        trace.stream_free[kernel.pid, kernel.tid] = kernel.end_ns + 640


def gaps_and_copies() -> Trace:
    """A training loop whose device waits for data, and for Python after a read of the loss; weights copied anew."""
    trace = Trace(gpu=A100, note="In every step the device waits for the data loader, and for Python after .item().")
    main = trace.thread()
    x, w = Tensor(2048, 1024), Tensor(4096, 4096)
    for step in range(4):
        with main.step(step):
            with main.range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", us=4003.7):
                pass
            with main.range("forward"):
                if step == 0:
                    main.api("cudaMalloc", us=412.3)
                for tensor, nbytes, us in ((x, 8 << 20, 1331.2), (w, 64 << 20, 10_652.8)):
                    with main.op("aten::to", tensor, us=1.4), main.op("aten::copy_", tensor, tensor, False, us=3.6):
                        main.memcpy("HtoD", nbytes, us=us)
                        main.sync()
                for us in (301.5, 644.2, 298.8):
                    ops.linear(main, x, 1024, us=us, kernel=k.GEMM_F32_SIMT_A100, api="cudaLaunchKernel")
            with main.range("metrics"):
                with main.op("aten::item", Tensor(), us=2.0), main.op("aten::_local_scalar_dense", Tensor(), us=3.1):
                    main.memcpy("DtoH", 4, us=1.408)
                    main.sync()
                main.idle(1200)
            with main.range("Optimizer.step#SGD.step"):
                with main.op("aten::_foreach_add_", [w, w], [w, w], -0.01, us=16.4):
                    main.launch(k.FOREACH_ADD, us=211.6)
    return trace


def no_device_work() -> Trace:
    """A program on a machine with a GPU that never used it."""
    trace = Trace(gpu=H100, note="A GPU is there, and every op ran on the CPU.")
    main = trace.thread()
    x, w = Tensor(64, 512), Tensor(512, 512)
    q = Tensor(2, 8, 64, 64)
    for step in range(2):
        with main.step(step), main.range("forward"):
            with main.op("aten::linear", x, w, None, us=4.0):
                main.call("aten::matmul", x, w, us=310.5)
            with main.dispatch("attention", "cpu-flash", "pytorch", stage="forward"):
                with main.op("aten::scaled_dot_product_attention", q, q, q, None, 0.0, False, None, False, us=5.0):
                    main.call(
                        "aten::_scaled_dot_product_flash_attention_for_cpu", q, q, q, 0.0, False, None, None, us=540.2
                    )
    return trace


def rocm() -> Trace:
    """Attention and GEMM on an AMD GPU: HIP calls, AOTriton, Tensile."""
    trace = Trace(gpu=MI300X, note="The same model code on ROCm: AOTriton attention and Tensile GEMMs.")
    main = trace.thread()
    x = Tensor(2, 4096, 2048, dtype=BF16)
    gemm = {"kernel": k.GEMM_BF16_MI300, "api": "hipExtModuleLaunchKernel"}
    for step in range(2):
        with main.step(step), main.range("denoise"):
            main.memcpy("HtoD", 2 * 4096 * 2048 * 2, us=702.5)
            for _ in range(2):
                q = ops.heads(main, ops.linear(main, x, 2048, us=161.8, **gemm), 16, 128)
                with main.dispatch("attention", "aotriton", "pytorch", stage="denoise"):
                    ops.sdpa_flash(main, q, q, us=921.6, kernel=k.AOTRITON, rocm=True)
                ops.linear(main, x, 2048, us=162.3, **gemm)
            main.sync()
    return trace
