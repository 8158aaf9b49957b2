"""Programs that are profiled on the CPU by the tests; run as ``python live_programs.py FOLDER``.

They plant what the tests look for: stages as named scopes, recompilations at known steps, weights copied in every step.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np

STEPS = 5
RECOMPILED = (2, 4)
"""Steps whose batch has a new size."""


def attention(q, k, v):
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[-1])
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, -1), v)


def block(weights, x):
    batch, length, width = x.shape
    with jax.named_scope("attn"):
        qkv = (x @ weights["qkv"]).reshape(batch, length, 3, 4, width // 4).transpose(2, 0, 3, 1, 4)
        out = attention(*qkv).transpose(0, 2, 1, 3).reshape(batch, length, width) @ weights["o"]
    with jax.named_scope("mlp"):
        return x + jax.nn.gelu((x + out) @ weights["w1"]) @ weights["w2"]


def model(weights, x):
    with jax.named_scope("text_encoder"):
        x = block(weights["te"], x)
    with jax.named_scope("denoiser"):
        x = block(weights["dn"], x)
    with jax.named_scope("decoder"):
        return block(weights["de"], x)


def make_weights():
    rng = np.random.default_rng(0)

    def make(*shape):
        return (rng.standard_normal(shape) * 0.02).astype(np.float32)

    return {
        k: {"qkv": make(64, 192), "o": make(64, 64), "w1": make(64, 128), "w2": make(128, 64)}
        for k in ("te", "dn", "de")
    }


def record(folder: Path, name: str, run, **options) -> list[float]:
    """Profile some steps; returns the wall time of each step, measured here, s."""
    settings = jax.profiler.ProfileOptions()
    settings.python_tracer_level = 0
    for key, value in options.items():
        setattr(settings, key, value)
    walls = []
    with jax.profiler.trace(str(folder / name), profiler_options=settings):
        for step in range(STEPS):
            begun = time.perf_counter()
            with jax.profiler.StepTraceAnnotation("infer", step_num=step):
                run(step)
            walls.append(time.perf_counter() - begun)
    return walls


def main(folder: Path) -> None:
    weights = make_weights()
    resident = jax.device_put(weights)
    x = jnp.ones((2, 16, 64), jnp.float32)
    planted = {}

    plain = jax.jit(model)
    plain(resident, x).block_until_ready()
    planted["stages"] = record(folder, "stages", lambda _: plain(resident, x).block_until_ready())

    sized = jax.jit(lambda w, y: model(w, y) * 1.5)
    batches = {
        step: jnp.ones((2, 16 + 8 * step if step in RECOMPILED else 16, 64), jnp.float32) for step in range(STEPS)
    }
    sized(resident, batches[0]).block_until_ready()
    planted["recompiles"] = record(
        folder, "recompiles", lambda step: sized(resident, batches[step]).block_until_ready()
    )

    plain(weights, x).block_until_ready()
    planted["copies"] = record(folder, "copies", lambda _: plain(weights, x).block_until_ready())

    planted["python"] = record(
        folder, "python", lambda _: plain(resident, x).block_until_ready(), python_tracer_level=1
    )

    layers = jax.jit(lambda y, w, z: jax.nn.softmax(y @ w) @ z)
    gated = (x, jnp.ones((64, 16)), jnp.ones((16, 64)))
    layers(*gated).block_until_ready()
    planted["layers"] = record(folder, "layers", lambda _: layers(*gated).block_until_ready())

    def eager(_):
        y = jnp.tanh(x) @ jnp.ones((64, 64))
        return float(y.sum())

    eager(0)
    planted["eager"] = record(folder, "eager", eager)

    # Runs that wait for an input: nothing is awaited between a copy and the calls that need it.
    large = np.ones((1024, 2048), np.float32)
    first, second = jax.jit(lambda w: w @ w.T), jax.jit(lambda w, y: (w.T @ y).sum())

    def in_flight(step):
        w = jax.device_put(large)
        last = second(w, first(w))
        return last.block_until_ready() if step == STEPS - 1 else last

    in_flight(STEPS - 1)
    planted["in-flight"] = record(folder, "in-flight", in_flight)

    with jax.profiler.trace(str(folder / "host-only")), jax.profiler.TraceAnnotation("only the host"):
        time.sleep(0.001)
    (folder / "planted.json").write_text(json.dumps(planted))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
