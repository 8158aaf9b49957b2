"""Authored samples of generating pipelines: an image pipeline before and after the work on it, and an audio model.

They mark their stages with ``traceview.stage:NAME``, as a program does that wants to be asked about its stages.
"""

# ruff: noqa: SIM117 - one `with` a level, as the ops nest in the trace.
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sample_traces import kernel_names as k
from sample_traces import op_chains as ops
from sample_traces.authoring import H100, Tensor, Trace
from sample_traces.op_chains import BF16

if TYPE_CHECKING:
    from sample_traces.authoring import Thread

IMAGES: Final = 4
DENOISE_STEPS: Final = 4
LOADER_US: Final = 6004.2
PYTHON_AFTER_ITEM_US: Final = 900
ENCODER_WEIGHTS: Final = 8
WEIGHT_BYTES: Final = 16 << 20


def stage(t: Thread, name: str) -> Any:
    """An explicit mark of a stage."""
    return t.range(f"traceview.stage:{name}")


def convolution(t: Thread, x: Tensor, w: Tensor, *, kernel: str, us: float, dims: int = 2) -> None:
    """``torch.nn.functional.conv2d`` (or ``conv1d``) without bias, through cuDNN."""
    one, none = [1] * dims, [0] * dims
    with t.op(f"aten::conv{dims}d", x, w, None, one, one, one, 1, us=2.4):
        with t.op("aten::convolution", x, w, None, one, one, one, False, none, 1, us=2.8):
            rest = (one, one, one, False, none, 1, False, False, True, True)
            with t.op("aten::_convolution", x, w, None, *rest, us=3.3):
                with t.op("aten::cudnn_convolution", x, w, one, one, one, 1, False, False, True, us=18.2):
                    t.launch(kernel, us=us, api="cudaLaunchKernelExC", block=(384, 1, 1), regs=168)


def _load(t: Thread, us: float) -> None:
    with t.range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", us=us):
        pass


def _weights_again(t: Thread) -> None:
    """Offloaded weights of the encoder come back from pageable memory."""
    for _ in range(ENCODER_WEIGHTS):
        weight = Tensor(2048, 4096, dtype=BF16)
        with t.op("aten::to", weight, 15, False, False, None, us=1.4):
            with t.op("aten::_to_copy", weight, 15, None, None, None, False, None, us=2.2):
                with t.op("aten::copy_", weight, weight, False, us=3.6):
                    t.memcpy("HtoD", WEIGHT_BYTES, us=1331.2)
                    t.sync()


def _encode(t: Thread) -> None:
    x = Tensor(1, 256, 2048, dtype=BF16)
    for _ in range(2):
        ops.layer_norm(t, x, us=3.4)
        q = ops.heads(t, ops.linear(t, x, 2048, us=21.3), 32, 64)
        with t.dispatch("attention", "flash-2", "pytorch", stage="text_encoder"):
            ops.sdpa_flash(t, q, q, us=15.2)
        ops.linear(t, ops.linear(t, x, 8192, us=58.4), 2048, us=59.1)


def _denoise_step(t: Thread) -> None:
    x = Tensor(2, 4096, 1536, dtype=BF16)
    for _ in range(2):
        ops.layer_norm(t, x, us=24.1)
        q = ops.heads(t, ops.linear(t, x, 1536, us=82.7), 24, 64)
        with t.dispatch("attention", "flash-2", "pytorch", stage="denoise"):
            ops.sdpa_flash(t, q, q, us=412.6)
        h = ops.linear(t, x, 6144, us=251.8)
        ops.elementwise(t, "aten::gelu", h, "none", kernel=k.GELU_BF16, us=60.4)
        ops.linear(t, h, 1536, us=254.2)


def _stopping_test(t: Thread) -> None:
    """``if delta.item() < tolerance``, and what Python does then: the queue runs dry."""
    with t.op("aten::item", Tensor(), us=2.0), t.op("aten::_local_scalar_dense", Tensor(), us=3.1):
        t.memcpy("DtoH", 4, us=1.408)
        t.sync()
    with t.python("pipeline.py(211): log_progress"):
        t.idle(PYTHON_AFTER_ITEM_US)


def _decode(t: Thread, *, fixed: bool) -> None:
    dtype = BF16 if fixed else "float"
    kernel, factor = (k.CONV_BF16, 1.0) if fixed else (k.CONV_F32_SIMT, 9.0)
    for us in (412.4, 806.3, 398.8):
        x, w = Tensor(1, 128, 512, 512, dtype=dtype), Tensor(128, 128, 3, 3, dtype=dtype)
        convolution(t, x, w, kernel=kernel, us=us * factor)
    image = Tensor(1, 3, 1024, 1024, dtype=dtype)
    with t.op("aten::copy_", image, image, fixed, us=3.0):
        t.memcpy("DtoH", 3 * 1024 * 1024 * (2 if fixed else 4), us=131.2 if fixed else 1048.6, pinned=fixed)


def diffusion(*, fixed: bool) -> Trace:
    """A text-to-image pipeline, four images; ``fixed`` is the version after the work on it."""
    note = (
        "The image pipeline after the work on it: data ahead of time, resident weights, no read in the loop, bf16 "
        "convolutions." if fixed else
        "An image pipeline that waits for its data, copies its encoder's weights for every image, reads a number in "
        "every denoising step, and decodes in float32 without tensor cores."
    )  # fmt: skip
    trace = Trace(gpu=H100, note=note, extra={"torch_version": "2.13.0"})
    main = trace.thread()
    for image in range(IMAGES):
        with main.step(image):
            with stage(main, "data"):
                _load(main, 41.7 if fixed else LOADER_US)
            with stage(main, "text_encoder"):
                if not fixed:
                    _weights_again(main)
                _encode(main)
            with stage(main, "denoise"):
                for _ in range(DENOISE_STEPS):
                    _denoise_step(main)
                    if not fixed:
                        _stopping_test(main)
            with stage(main, "vae_decode"):
                _decode(main, fixed=fixed)
            main.sync("cudaDeviceSynchronize")
    return trace


AUDIO_BLOCKS: Final = 24
SAMPLER_STEPS: Final = 2
CLIPS: Final = 3
POSTPROCESS_US: Final = 12_000


def audio() -> Trace:
    """An audio model whose decoder costs more than its transformer, and whose heads no kernel was made for."""
    trace = Trace(
        gpu=H100, extra={"torch_version": "2.13.0"},
        note="An audio model: float32 convolutions in the decoder cost more than the whole transformer, and its heads "
        "of 72 run in a kernel for 96.",
    )  # fmt: skip
    main = trace.thread()
    x = Tensor(1, 3072, 1152, dtype=BF16)
    kernel = k.flash2("pytorch_flash", 96, "bfloat16_t")
    for clip in range(CLIPS):
        with main.step(clip):
            with stage(main, "sampler"):
                for _ in range(SAMPLER_STEPS * AUDIO_BLOCKS):
                    q = ops.heads(main, ops.linear(main, x, 1152, us=27.9), 16, 72)
                    with main.dispatch("attention", "flash-2", "pytorch", stage="sampler"):
                        ops.sdpa_flash(main, q, q, us=148.6, kernel=kernel)
                    ops.linear(main, ops.linear(main, x, 4608, us=98.2), 1152, us=99.0)
            with stage(main, "decoder"):
                for channels, length, us in ((512, 24_576, 6204.8), (256, 98_304, 7012.3), (128, 393_216, 7419.6)):
                    samples = Tensor(1, channels, length)
                    convolution(main, samples, Tensor(channels, channels, 7), kernel=k.CONV_F32_SIMT, us=us, dims=1)
            with stage(main, "postprocess"):
                wave = Tensor(1, 2, 393_216)
                with main.op("aten::copy_", wave, wave, False, us=3.0):
                    main.memcpy("DtoH", 2 * 393_216 * 4, us=211.4)
                with main.python("audio.py(88): write_wav"):
                    main.idle(POSTPROCESS_US)
    return trace
