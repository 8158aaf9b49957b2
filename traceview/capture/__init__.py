"""Record traces that the analyses can make the most of: stages, steady state, and the conditions of the recording.

    from traceview.capture import profile_torch, stage

    with stage("denoise"):
        latents = denoiser(latents)

    timeline = profile_torch(train_step, path="run.json.gz", contract={"model": "dit-b", "dtype": "bf16"})

PyTorch, JAX and NVTX are imported only when they are used. ``docs/capture.md`` tells the whole.
"""

from __future__ import annotations

from traceview.capture.jax_recording import JaxRecording, profile_jax
from traceview.capture.stages import stage
from traceview.capture.torch_recording import TorchRecording, profile_torch

__all__ = ["JaxRecording", "TorchRecording", "profile_jax", "profile_torch", "stage"]
