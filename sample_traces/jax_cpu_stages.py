"""A JAX pipeline of three marked stages under the profiler, on the CPU; ``make_jax_cpu.py`` runs it."""

from __future__ import annotations

import os
import sys
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp

LENGTHS = (64, 64, 96, 64, 64, 128, 64)
"""Tokens of each prompt. Lengths that were not seen before compile the encoder again: steps 2 and 5."""
DENOISE_STEPS = 3
LAYERS = 8
"""Weights, of which the programs use the first three."""
WIDTH = 256


@jax.jit
def encode(weights: Any, tokens: Any) -> Any:
    """A text encoder whose program depends on the length of the prompt."""
    for weight in weights[:2]:
        tokens = jnp.tanh(tokens @ weight)
    return tokens.mean(0, keepdims=True)


@jax.jit
def denoise(weights: Any, latents: Any, context: Any) -> Any:
    """Attention by hand and products, of one shape always."""
    with jax.named_scope("attention"):
        scores = jnp.einsum("qd,kd->qk", latents, latents) / WIDTH**0.5
        latents = jax.nn.softmax(scores, -1) @ latents
    with jax.named_scope("mlp"):
        return jnp.tanh(latents @ weights[2] + context)


@jax.jit
def decode(latents: Any) -> Any:
    """Latents to pixels."""
    return jax.nn.sigmoid(latents @ latents.T)


def image(host_weights: list[Any], tokens: Any, latents: Any) -> None:
    """One image; the weights are put on the device again each time, as code does that keeps them in NumPy.

    It waits for them: a program whose input is still on its way starts when the input arrives, not when it is called,
    and no profile says which call it belongs to.
    """
    with jax.profiler.TraceAnnotation("traceview.stage:text_encoder"):
        weights = jax.block_until_ready([jax.device_put(weight) for weight in host_weights])
        context = encode(weights, tokens).block_until_ready()
    with jax.profiler.TraceAnnotation("traceview.stage:denoise"):
        for _ in range(DENOISE_STEPS):
            latents = denoise(weights, latents, context)
        latents.block_until_ready()
    with jax.profiler.TraceAnnotation("traceview.stage:vae_decode"):
        decode(latents).block_until_ready()


def main(folder: str) -> None:
    """Record one image for each prompt."""
    import numpy as np

    weights = [np.full((WIDTH, WIDTH), 0.01, np.float32) for _ in range(LAYERS)]
    prompts = [jnp.ones((length, WIDTH), jnp.float32) for length in LENGTHS]
    latents = jnp.ones((128, WIDTH), jnp.float32)
    image(weights, prompts[0], latents)
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with jax.profiler.trace(folder, profiler_options=options):
        for number, prompt in enumerate(prompts):
            with jax.profiler.StepTraceAnnotation("image", step_num=number):
                image(weights, prompt, latents)


if __name__ == "__main__":
    main(sys.argv[1])
