"""Which Python functions and modules are stages of known programs, where nothing is labelled.

A frame is known by the end of its file name and its function, never by its line. Seen in recorded traces of diffusers,
vLLM and SGLang, or read in their sources. Checked 2026-11-30.
"""

from __future__ import annotations

import re
from typing import Final

FRAME: Final = r"^(?P<file>[^()]*?)\(\d+\): (?P<function>[\w<>.]+)$"
"""A Python function in a Kineto trace: ``path/file.py(12): function``."""

MODULE: Final = r"^nn\.Module: (?P<class>\w+?)(?:_\d+)?$"
"""A call of a module in a Kineto trace; the number counts the instances of one class."""

_FRAMES: Final = tuple(
    (re.compile(file), re.compile(function), stage)
    for file, function, stage in (
        (r"(?:^|/)pipeline_\w+\.py$", r"^encode_prompt$", "text_encoder"),
        (r"(?:^|/)pipeline_\w+\.py$", r"^encode_image$", "image_encoder"),
        (r"(?:^|/)autoencoder_\w+\.py$", r"^decode$", "decoder"),
        (r"(?:^|/)autoencoder_\w+\.py$", r"^encode$", "vae_encode"),
        (r"(?:^|/)scheduling_\w+\.py$", r"^step$", "scheduler"),
        (r"(?:^|/)gpu_model_runner\.py$", r"^_model_forward$", "forward"),
        (r"(?:^|/)gpu_model_runner\.py$", r"^_prepare_inputs$", "preprocess"),
        (r"(?:^|/)gpu_model_runner\.py$", r"^_sample$", "sample"),
        (r"(?:^|/)vllm/.*logits_processor\.py$", r"^forward$", "logits"),
        (r"(?:^|/)model_runner\.py$", r"^forward_extend$", "prefill"),
        (r"(?:^|/)model_runner\.py$", r"^forward_decode$", "decode"),
        (r"(?:^|/)model_runner\.py$", r"^sample$", "sample"),
        (r"(?:^|/)scheduler\.py$", r"^get_next_batch_to_run$", "schedule"),
        (r"(?:^|/)scheduler\.py$", r"^process_batch_result$", "postprocess"),
    )
)

_DENOISERS: Final = re.compile(r"(?:Transformer\w*\dDModel|^UNet\w*|^DiT\w*|^MMDiT\w*)$")
COMPILED_MODULE: Final = "OptimizedModule"
"""The class that ``torch.compile`` puts around a module."""

PIPELINE: Final = re.compile(r"(?:^|/)pipeline_\w+\.py$")
"""A file of a diffusion pipeline."""


def stage_of_frame(file: str, function: str) -> str | None:
    """The stage that a function of a known program is, or ``None``.

    Args:
        file: Path of its file, as recorded.
        function: Its name.
    """
    return next((stage for of_file, of, stage in _FRAMES if of.search(function) and of_file.search(file)), None)


def stage_of_module(name: str, *, in_pipeline: bool) -> str | None:
    """The stage that a module class is within a diffusion pipeline, or ``None``.

    Args:
        name: Class of the module.
        in_pipeline: It is called by a diffusion pipeline; a compiled module there is its denoiser.
    """
    if in_pipeline and (_DENOISERS.search(name) or name == COMPILED_MODULE):
        return "denoise"
    return None
