"""A small JAX program under the profiler, on the CPU; ``make_jax_cpu.py`` runs it."""

from __future__ import annotations

import os
import sys
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp

STEPS = 4
NEW_SIZE_IN_STEP = 2
LEAVES = 3


def model(weights: dict[str, Any], x: Any) -> Any:
    """Attention by hand, then a product, each in a named scope."""
    with jax.named_scope("attention"):
        scores = jnp.einsum("qd,kd->qk", x @ weights["q"], x @ weights["k"])
        x = jax.nn.softmax(scores, -1) @ x
    with jax.named_scope("mlp"):
        return jnp.tanh(x @ weights["w"])


def main(folder: str) -> None:
    """Record four steps; the batch of the third has a new size, and the weights of each come from the host."""
    import numpy as np

    weights = {name: np.full((32, 32), 0.01, np.float32) for name in ("q", "k", "w")}
    sizes = [64, 64, 96, 64]
    batches = [jnp.ones((size, 32), jnp.float32) for size in sizes]
    step = jax.jit(model)
    step(weights, batches[0]).block_until_ready()
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with jax.profiler.trace(folder, profiler_options=options):
        for number, batch in enumerate(batches):
            with jax.profiler.StepTraceAnnotation("infer", step_num=number):
                step(weights, batch).block_until_ready()


if __name__ == "__main__":
    main(sys.argv[1])
