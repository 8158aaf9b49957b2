"""The ``flash_attn=True`` story as Nsight Systems records it: the same program before and after the fix.

One process, NVTX ranges for steps and stages, operators with sizes as ``torch.autograd.profiler.emit_nvtx`` marks them.
"""

# ruff: noqa: SIM117 - one `with` a level, as the ranges nest.
from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from sample_traces import kernel_names as names
from sample_traces.nsys_authoring import H100, Export

if TYPE_CHECKING:
    from pathlib import Path

    from sample_traces.nsys_authoring import Process

MATH: Final = "flash-requested-math-ran.nsys-authored"
FLASH: Final = "flash-requested-flash-ran.nsys-authored"
STEPS: Final = 4
LAYERS: Final = 2

QUERY: Final = [1, 16, 4096, 64]
GROUPED: Final = [1, 4, 4096, 64]
SCORES: Final = [1, 16, 4096, 4096]
TEXT: Final = [1, 16, 256, 64]
REST: Final[list[list[int]]] = [[]] * 5
"""Arguments that are no tensors have empty sizes."""

CAST_US: Final = (12.4, 4.2)
SCALE_US: Final = 21.5
REPEAT_US: Final = 17.25
GEMM_US: Final = 704.25
SOFTMAX_US: Final = 803.75
FLASH_US: Final = 171.5
TEXT_US: Final = 11.75
MATH_US: Final = 2 * SCALE_US + 2 * REPEAT_US + 2 * GEMM_US + SOFTMAX_US


def _linear(p: Process, rows: int, inner: int, out: int, us: float) -> None:
    with p.op("aten::linear", [[1, rows, inner], [out, inner], [out]]):
        with p.op("aten::addmm", [[out], [rows, inner], [inner, out], [], []]):
            p.launch(names.GEMM_BF16_H100, us=us)


def _flash(p: Process, query: list[int], keys: list[int], us: float) -> None:
    sizes = [query, keys, keys, *REST]
    with p.op("aten::scaled_dot_product_attention", sizes):
        with p.op("aten::_scaled_dot_product_flash_attention", sizes[:7]):
            with p.op("aten::_flash_attention_forward", sizes[:7]):
                p.launch(names.flash2("pytorch_flash", 64, "bfloat16_t"), us=us)


def _math(p: Process) -> None:
    sizes = [QUERY, GROUPED, GROUPED, *REST]
    flat = [[16, 4096, 64], [16, 64, 4096], [16, 4096, 4096]]
    with p.op("aten::scaled_dot_product_attention", sizes):
        with p.op("aten::_scaled_dot_product_attention_math", [*sizes, []]):
            with p.op("aten::mul", [QUERY, []]):
                p.launch(names.MUL_F32, us=SCALE_US)
            for _ in range(2):
                with p.op("aten::repeat_interleave", [GROUPED, [], [], []]):
                    with p.op("aten::copy_", [QUERY, QUERY, []]):
                        p.launch(names.COPY_F32, us=REPEAT_US)
            with p.op("aten::mul", [QUERY, []]):
                p.launch(names.MUL_F32, us=SCALE_US)
            with p.op("aten::bmm", flat[:2]):
                p.launch(names.GEMM_F32_SIMT_QK, us=GEMM_US)
            with p.op("aten::_softmax", [SCORES, [], []]):
                p.launch(names.softmax_block("float", 4), us=SOFTMAX_US)
            with p.op("aten::bmm", [flat[2], flat[0]]):
                p.launch(names.GEMM_F32_SIMT_PV, us=GEMM_US)


def _denoise_layer(p: Process, *, upcast: bool) -> None:
    _linear(p, 4096, 1024, 1536, 42.5)
    if upcast:  # Cast for the rotary embedding, and never back.
        for size, us in zip((QUERY, GROUPED), CAST_US, strict=True):
            with p.op("aten::_to_copy", [size, *REST]):
                p.launch(names.TO_F32, us=us)
        _math(p)
        with p.op("aten::_to_copy", [QUERY, *REST]):
            p.launch(names.TO_BF16, us=CAST_US[0])
    else:
        _flash(p, QUERY, GROUPED, FLASH_US)
    _linear(p, 4096, 1024, 1024, 27.5)
    _linear(p, 4096, 1024, 4096, 96.5)
    with p.op("aten::gelu", [[1, 4096, 4096], []]):
        p.launch(names.GELU_BF16, us=25.25)
    _linear(p, 4096, 4096, 1024, 98.25)


def export(*, upcast: bool) -> Export:
    """One of the two recordings."""
    written = Export("2026")
    p = written.process(52_000, H100)
    for step in range(STEPS):
        with p.range(f"step_{step}"):
            with p.range("text_encoder"):
                _linear(p, 256, 1024, 1024, 6.5)
                _flash(p, TEXT, TEXT, TEXT_US)
                _linear(p, 256, 1024, 4096, 14.25)
            with p.range("denoise"):
                for _ in range(LAYERS):
                    _denoise_layer(p, upcast=upcast)
            with p.range("vae_decode"):
                for us in (402.5, 811.5, 395.75):
                    with p.op("aten::cudnn_convolution", [[1, 64, 512, 512], [64, 64, 3, 3], *REST]):
                        p.launch(names.CONV_BF16, us=us)
                with p.op("aten::copy_", [[1, 3, 512, 512], [1, 3, 512, 512], []]):
                    p.copy(132.75, kind=2, source=2, target=0, size=2 * 3 * 512 * 512)
                    p.synchronize()
    return written


SHOWS: Final = {
    MATH: "flash_attn=True was set, and PyTorch ran its math path in float32: cuBLAS, softmax, cuBLAS.",
    FLASH: "The same program with bfloat16 queries: FlashAttention-2 runs.",
}
LOOK: Final = {
    MATH: "The story of the PyTorch sample of the same name, as Nsight Systems sees it: stages are NVTX ranges, and "
    "below `aten::_scaled_dot_product_attention_math` run two float32 products without tensor cores around a softmax "
    "over 4096 x 4096. The ranges carry sizes and no dtypes, and of arguments that are no tensors nothing: that the "
    "heads are grouped by `enable_gqa` is not recorded, so that part of the answer is *cannot tell* with what is open, "
    "where the PyTorch trace proves it. The names of the kernels prove float32, which refuses flash.",
    FLASH: "After the fix: one `flash_fwd_kernel` where seven kernels were. `text_encoder` and `vae_decode` did not "
    "change.",
}


def truth(name: str, written: Export) -> dict[str, Any]:
    """The right answers, counted from what was written and not by traceview."""
    kernels = written.tables["CUPTI_ACTIVITY_KIND_KERNEL"]
    copies = written.tables["CUPTI_ACTIVITY_KIND_MEMCPY"]
    ranges = [row["text"].partition(",")[0] for row in written.tables["NVTX_EVENTS"]]
    ops = sum("::" in one for one in ranges)
    math = name == MATH
    calls = STEPS * LAYERS
    denoise = ("math", MATH_US) if math else ("flash-2", FLASH_US)
    work = [*kernels, *copies]
    return {
        "schema": "traceview.sample-truth/1", "trace": f"{name}.sqlite", "authored": True, "shows": SHOWS[name],
        "pair": FLASH if math else MATH, "gpu": H100.name,
        "events": {
            "cpu_op": ops, "cuda_runtime": len(written.tables["CUPTI_ACTIVITY_KIND_RUNTIME"]),
            "cuda_sync": len(written.tables["CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"]),
            "gpu_memcpy": len(copies), "kernel": len(kernels), "user_annotation": len(ranges) - ops,
        },
        "launches": len(work), "launches_without_work": 0, "work_without_launch": 0,
        "devices": [
            {"ordinal": 0, "events": len(work), "busy_ns": sum(row["end"] - row["start"] for row in work)}
        ],
        "steps": [],
        "stages": [
            {"stage": stage, "count": STEPS, "device_busy_ns": busy}
            for stage, busy in (
                ("text_encoder", STEPS * 32_500),
                ("denoise", STEPS * LAYERS * round(
                    1000 * (290 + (MATH_US + 2 * CAST_US[0] + CAST_US[1] if math else FLASH_US)))),
                ("vae_decode", STEPS * 1_742_500),
            )
        ],
        "dispatches": [
            _dispatch("flash-2", "text_encoder", STEPS, STEPS * TEXT_US),
            _dispatch(denoise[0], "denoise", calls, calls * denoise[1]),
        ],
        "verdict": "fail" if math else "pass", "findings": ["TV102"] if math else ["TV501"],
    }  # fmt: skip


def _dispatch(implementation: str, stage: str, count: int, us: float) -> dict[str, Any]:
    return {
        "op": "attention", "implementation": implementation, "provider": "pytorch", "attribution": "attributed",
        "stage": stage, "count": count, "device_ns": round(1000 * us),
    }  # fmt: skip


def note(name: str, table: dict[str, Any]) -> str:
    """The Markdown page of one of the two."""
    keys = ("pair", "events", "devices", "stages", "dispatches", "verdict")
    rows = "\n".join(f"- `{key}`: `{json.dumps(table[key])}`" for key in keys)
    return (
        f"# {name}\n\n**Authored, not measured.** {SHOWS[name]}\n\n"
        "Written by `sample_traces/make_authored.py` (`samples_nsys_pair.py`) with the builder in "
        "`sample_traces/nsys_authoring.py`; no GPU was involved. The tables and columns are those of Nsight Systems "
        "(schema 3.25), the kernel names are those of real recordings, the times are chosen. The file says so itself "
        "in `META_DATA_EXPORT`, key `TRACEVIEW_AUTHORED`.\n\n"
        f"## What to look at\n\n{LOOK[name]}\n\n## The right answers\n\n"
        f"Also in `{name}.truth.json`, which the tests read.\n\n{rows}\n"
    )


def build(folder: Path) -> list[Path]:
    """Write both samples, their truth tables and their notes below ``folder``."""
    paths = []
    for name in (MATH, FLASH):
        written = export(upcast=name == MATH)
        table = truth(name, written)
        truth_path, note_path = folder / f"{name}.truth.json", folder / f"{name}.md"
        truth_path.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
        note_path.write_text(note(name, table), encoding="utf-8")
        paths += [written.write_sqlite(folder / f"{name}.sqlite"), truth_path, note_path]
    return paths
