"""The PyTorch half of ``make_gpu.py``: what is recorded, and what PyTorch itself says about each call.

Needs PyTorch. On a CPU the sizes are tiny and the cases that need a GPU are left out.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import torch
from gpu_prepared import Prepared
from torch.nn.attention import SDPBackend, sdpa_kernel

from traceview.capture import stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HOST: Final = "host-gaps-and-copies"
SLEEP_S: Final = 0.03
ITEMS: Final = 20
COPIES: Final = 3
BACKENDS: Final = {0: "math", 1: "flash", 2: "efficient", 3: "cudnn"}
"""``SDPBackend`` by number, in the words of traceview's rulebook."""


@dataclass(frozen=True, slots=True)
class Attention:
    """One call of ``scaled_dot_product_attention``.

    Attributes:
        name: Of the case and its trace.
        dtype: Of query, key and value.
        heads: Query heads.
        key_heads: Key heads; fewer than ``heads`` asks for ``enable_gqa``.
        queries: Number of queries.
        keys: Number of keys.
        head_dim: Head size.
        mask: ``"bool"``, ``"float"`` or none.
        causal: The causal flag.
        training: Inputs ask for a gradient, and the backward pass runs.
        only: Backends left on; empty: as PyTorch has them.
        how: ``"eager"``, ``"compile"`` or ``"graph"``.
        gpu_only: Left out on a CPU.
    """

    name: str
    dtype: str = "bfloat16"
    heads: int = 16
    key_heads: int = 16
    queries: int = 1024
    keys: int = 1024
    head_dim: int = 64
    mask: str = ""
    causal: bool = False
    training: bool = False
    only: tuple[str, ...] = ()
    how: str = "eager"
    gpu_only: bool = False


ATTENTION: Final = (
    Attention("sdpa-bf16-d64"),
    Attention("sdpa-fp16-d128", dtype="float16", head_dim=128),
    Attention("sdpa-fp32-d64", dtype="float32"),
    Attention("sdpa-bf16-bool-mask", mask="bool"),
    Attention("sdpa-bf16-float-mask", mask="float"),
    Attention("sdpa-bf16-causal-square", causal=True),
    Attention("sdpa-bf16-causal-non-square", causal=True, queries=512),
    Attention("sdpa-bf16-gqa", key_heads=4),
    Attention("sdpa-fp32-gqa", dtype="float32", key_heads=4),
    Attention("sdpa-bf16-d72", head_dim=72),
    Attention("sdpa-bf16-d192", head_dim=192),
    Attention("sdpa-bf16-d256", head_dim=256),
    Attention("sdpa-bf16-training", training=True),
    Attention("sdpa-bf16-cudnn-only", only=("cudnn",), gpu_only=True),
    Attention("sdpa-bf16-cudnn-off", only=("flash", "efficient", "math")),
    Attention("sdpa-bf16-math-only", only=("math",)),
    Attention("sdpa-bf16-compiled", how="compile", gpu_only=True),
    Attention("sdpa-bf16-graph", how="graph", gpu_only=True),
)


@dataclass(frozen=True, slots=True)
class Product:
    """One matrix product; ``tensor_core`` is what the hardware is asked for (``None``: not known here)."""

    name: str
    dtype: str
    tf32: bool = False
    tensor_core: bool | None = None
    gpu_only: bool = False


PRODUCTS: Final = (
    Product("gemm-fp32", "float32", tensor_core=False),
    Product("gemm-tf32", "float32", tf32=True, tensor_core=True),
    Product("gemm-bf16", "bfloat16", tensor_core=True),
    Product("gemm-fp16", "float16", tensor_core=True, gpu_only=True),
    Product("gemm-fp8", "float8_e4m3fn", tensor_core=True, gpu_only=True),
)


def prepared(device: str) -> Iterator[tuple[str, Callable[[], Prepared | None]]]:
    """Name and maker of each case; one that returns ``None`` is not possible here."""
    for attention in ATTENTION:
        yield attention.name, lambda case=attention: _attention(case, device)
    for product in PRODUCTS:
        yield product.name, lambda case=product: _product(case, device)
    yield HOST, lambda: _host(device)


def _attention(case: Attention, device: str) -> Prepared | None:
    if case.gpu_only and device == "cpu":
        return None
    small = 16 if device == "cpu" else 1
    dtype = getattr(torch, case.dtype)

    def tensor(heads: int, length: int) -> torch.Tensor:
        made = torch.randn(1 if device == "cpu" else 2, heads, length // small, case.head_dim, device=device)
        return made.to(dtype).requires_grad_(case.training)

    q, k, v = tensor(case.heads, case.queries), tensor(case.key_heads, case.keys), tensor(case.key_heads, case.keys)
    mask = None
    if case.mask == "bool":
        mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=device).tril()
    elif case.mask == "float":
        mask = torch.zeros(q.shape[-2], k.shape[-2], dtype=dtype, device=device)
    gqa = case.key_heads != case.heads
    names = {"flash": SDPBackend.FLASH_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION,
             "cudnn": SDPBackend.CUDNN_ATTENTION, "math": SDPBackend.MATH}  # fmt: skip

    def setting() -> contextlib.AbstractContextManager[object]:
        return sdpa_kernel([names[one] for one in case.only]) if case.only else contextlib.nullcontext()

    def ask() -> torch.Tensor:
        return torch.nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=case.causal, enable_gqa=gqa
        )

    function: Callable[[], Any] = ask
    with setting():
        says = _what_torch_says(q, k, v, mask, causal=case.causal, gqa=gqa, device=device)
        if case.how == "compile":
            function = torch.compile(ask)
        elif case.how == "graph":
            function = _graph(ask)

    def call() -> None:
        with stage("attention"):
            result = function()
        if case.training:
            with stage("backward"):
                result.sum().backward()

    return Prepared(case.name, "attention", call, asdict(case), says, setting)


def _graph(ask: Callable[[], object]) -> Callable[[], None]:
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            ask()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        ask()
    return graph.replay


def _what_torch_says(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None,
    *,
    causal: bool,
    gqa: bool,
    device: str,
) -> dict[str, Any]:
    """The backend that PyTorch chooses for a call, and which ones it says it could use."""
    with contextlib.suppress(RuntimeError):  # Where no backend is left the call itself fails too.
        choice = torch._fused_sdp_choice(q, k, v, mask, 0.0, causal, enable_gqa=gqa)  # noqa: SLF001 - no public way
        says: dict[str, Any] = {"choice": BACKENDS.get(int(choice), str(choice))}
        if device == "cuda":
            params = torch.backends.cuda.SDPAParams(q, k, v, mask, 0.0, causal, gqa)
            says["can_use"] = {
                "flash": torch.backends.cuda.can_use_flash_attention(params, debug=False),
                "efficient": torch.backends.cuda.can_use_efficient_attention(params, debug=False),
                "cudnn": torch.backends.cuda.can_use_cudnn_attention(params, debug=False),
            }
        return says
    return {"choice": None}


def _product(case: Product, device: str) -> Prepared | None:
    if case.gpu_only and device == "cpu":
        return None
    size = 64 if device == "cpu" else 2048
    a, b = (torch.randn(size, size, device=device) for _ in range(2))
    if case.dtype.startswith("float8"):
        if torch.cuda.get_device_capability() < (8, 9):
            return None
        low_a, low_b, one = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn).t(), torch.ones((), device=device)

        def call() -> None:
            with stage("gemm"):
                torch._scaled_mm(low_a, low_b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)  # noqa: SLF001 - the only way

    else:
        a, b = a.to(getattr(torch, case.dtype)), b.to(getattr(torch, case.dtype))

        def call() -> None:
            with stage("gemm"):
                torch.mm(a, b)

    says = {"tensor_core": case.tensor_core if device == "cuda" else None}
    return Prepared(case.name, "gemm", call, asdict(case) | {"size": size}, says, lambda: _tf32(case.tf32))


@contextlib.contextmanager
def _tf32(on: bool) -> Iterator[None]:  # noqa: FBT001 - a switch
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if on else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _host(device: str) -> Prepared:
    """A sleep, a loop of reads, and the same weights copied in every step."""
    size = 128 if device == "cpu" else 2048
    weights = [torch.randn(size, size) for _ in range(COPIES)]
    x = torch.randn(size, size, device=device)

    def call() -> None:
        with stage("load"):
            time.sleep(SLEEP_S)
        with stage("upload"):
            uploaded = [weight.to(device, copy=True) for weight in weights]
        with stage("forward"):
            y = x
            for weight in uploaded:
                y = y @ weight
        with stage("log"):
            for at in range(ITEMS):
                y[0, at].item()

    says = {
        "sleep_ns": round(SLEEP_S * 1e9), "items_per_step": ITEMS, "copies_per_step": COPIES,
        "bytes_per_copy": 4 * size * size,
    }  # fmt: skip
    return Prepared(HOST, "host", call, {"size": size}, says)
