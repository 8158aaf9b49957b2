"""The JAX half of ``make_gpu.py``. Needs JAX; on a CPU the sizes are tiny and cuDNN attention is left out."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from gpu_prepared import Prepared

from traceview.capture import stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HOST: Final = "jax-host-gaps-and-copies"
SLEEP_S: Final = 0.03
COPIES: Final = 3

# name, implementation of jax.nn.dot_product_attention, dtype, head size
ATTENTION: Final = (
    ("jax-attention-xla-bf16", "xla", "bfloat16", 64),
    ("jax-attention-default-fp32", None, "float32", 64),
    ("jax-attention-cudnn-bf16", "cudnn", "bfloat16", 64),
    ("jax-attention-cudnn-bf16-d128", "cudnn", "bfloat16", 128),
)
# name, dtype, precision, whether tensor cores are asked for (None: not known here)
PRODUCTS: Final = (
    ("jax-gemm-fp32-highest", "float32", "highest", False),
    ("jax-gemm-fp32-default", "float32", "default", None),
    ("jax-gemm-bf16", "bfloat16", "default", True),
)


def prepared(device: str) -> Iterator[tuple[str, Callable[[], Prepared | None]]]:
    """Name and maker of each case; one that returns ``None`` is not possible here."""
    for attention in ATTENTION:
        yield attention[0], lambda case=attention: _attention(*case, device)
    for product in PRODUCTS:
        yield product[0], lambda case=product: _product(*case, device)
    yield HOST, lambda: _host(device)


def _attention(name: str, implementation: Any, dtype: str, head_dim: int, device: str) -> Prepared | None:
    if implementation == "cudnn" and device == "cpu":
        return None
    length = 64 if device == "cpu" else 1024
    q, k, v = (jnp.ones((2, length, 16, head_dim), dtype) * at for at in (1, 2, 3))

    @jax.jit
    def program(q: Any, k: Any, v: Any) -> Any:
        with stage("attention"):
            return jax.nn.dot_product_attention(q, k, v, implementation=implementation)

    asked = {"implementation": implementation, "dtype": dtype, "head_dim": head_dim, "length": length}
    says = {"choice": "cudnn" if implementation == "cudnn" else "unfused"}
    return Prepared(name, "attention", lambda: program(q, k, v), asked, says)


def _product(name: str, dtype: str, precision: str, tensor_core: bool | None, device: str) -> Prepared:  # noqa: FBT001
    size = 64 if device == "cpu" else 2048
    a = jnp.ones((size, size), dtype)

    @jax.jit
    def program(a: Any) -> Any:
        with stage("gemm"):
            return jnp.matmul(a, a, precision=precision)

    says = {"tensor_core": tensor_core if device == "cuda" else None}
    return Prepared(name, "gemm", lambda: program(a), {"dtype": dtype, "precision": precision, "size": size}, says)


def _host(device: str) -> Prepared:
    """A sleep, and the same weights put on the device in every step."""
    size = 128 if device == "cpu" else 2048
    weights = [np.full((size, size), at, np.float32) for at in range(COPIES)]
    product = jax.jit(lambda a, b, c: a @ b @ c)

    def call() -> Any:
        with stage("load"):
            time.sleep(SLEEP_S)
        with stage("upload"):
            on_device = [jax.device_put(weight) for weight in weights]
        with stage("forward"):
            return product(*on_device)

    says = {"sleep_ns": round(SLEEP_S * 1e9), "copies_per_step": COPIES, "bytes_per_copy": 4 * size * size}
    return Prepared(HOST, "host", call, {"size": size}, says, contextlib.nullcontext)
