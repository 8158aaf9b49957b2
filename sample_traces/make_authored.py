"""Write every authored sample trace with its truth table and its note.

Usage: ``python sample_traces/make_authored.py [FOLDER]`` (default: this folder). The result is the same to the
byte on every machine, apart from the compression of ``.gz`` files and the version of SQLite in ``.sqlite`` files.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

HERE: Final = Path(__file__).resolve().parent
if not __package__:  # Started as a script: make the folder importable by its own name.
    sys.path.insert(0, str(HERE.parent))

from sample_traces import (  # noqa: E402
    broken,
    broken_binary,
    samples_attention,
    samples_nsys,
    samples_nsys_pair,
    samples_pipelines,
    samples_serving,
    samples_systems,
    truth,
)
from sample_traces.kineto_text import render, write_text  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

    from sample_traces.authoring import Trace


@dataclass(frozen=True, slots=True)
class Sample:
    """One authored file: how to build it, which ranges are stages, further answers, and what to look at."""

    file: str
    build: Callable[[], list[Trace]]
    stages: tuple[str, ...]
    look: str
    facts: dict[str, Any] = field(default_factory=dict)


REFUSALS: Final = [
    {"backend": "flash", "rule": "F1", "because": "query, key and value are float32"},
    {"backend": "mem-efficient", "rule": "F10", "because": "enable_gqa with unequal head counts"},
    {"backend": "cudnn", "rule": "C1", "because": "query, key and value are float32"},
]
PAIR_STAGES: Final = ("text_encoder", "denoise", "vae_decode")
IMAGE_STAGES: Final = tuple(f"traceview.stage:{name}" for name in ("data", *PAIR_STAGES))
SERVING_RANGES: Final = ("execute_context_8(2048)_generation_0(0)", "execute_context_0(0)_generation_8(8)")

SAMPLES: Final = (
    Sample(
        "flash-requested-math-ran.cuda-authored.json.gz",
        lambda: [samples_attention.flash_requested(upcast=True)], PAIR_STAGES,
        "The `flash_attn=True` story. In `denoise` queries, keys and values are cast to float32 for the rotary "
        "embedding and never back, and the heads are grouped (`enable_gqa=True`, 16 query heads, 4 key heads). "
        "FlashAttention refuses float32, the memory-efficient kernel refuses grouped heads, cuDNN refuses float32: "
        "PyTorch runs `aten::_scaled_dot_product_attention_math` and says nothing. `text_encoder` next to it got "
        "FlashAttention-2. Compare with `flash-requested-flash-ran`.",
        {"verdict": "fail", "refusals": REFUSALS},
    ),
    Sample(
        "flash-requested-flash-ran.cuda-authored.json.gz",
        lambda: [samples_attention.flash_requested(upcast=False)], PAIR_STAGES,
        "The same program after the fix: queries stay in bfloat16, and FlashAttention-2 accepts them, grouped heads "
        "included. Only `denoise` changed.",
        {"verdict": "pass"},
    ),
    Sample(
        "unfused-by-hand.cuda-authored.json",
        lambda: [samples_attention.unfused_by_hand()], ("prefill",),
        "No `aten::scaled_dot_product_attention` anywhere: matmul, scale, mask, softmax, cast, matmul, on tensors of "
        "1024 x 1024 per head. The Python frames and modules say where.",
        {"verdict": "fail"},
    ),
    Sample(
        "mixed-backends.cuda-authored.json",
        lambda: [samples_attention.mixed_backends()], ("encoder", "refiner", "decoder", "adapter"),
        "Four fused implementations from two providers. `refiner` asks in float32 and with a mask, so it gets the "
        "memory-efficient kernel, built for sm80, on an sm90 GPU. `adapter` calls the flash-attn package: the "
        "namespace `flash::` instead of `pytorch_flash::` is the only difference in the kernel name.",
    ),
    Sample(
        "graph-replay.cuda-authored.json",
        lambda: [samples_systems.graph_replay()], ("execute_context_0(0)_generation_8(8)",),
        "Each `cudaGraphLaunch` owns 21 kernels that share its correlation. The attention kernel can be named, the op "
        "that asked for it cannot: attribution is `opaque`, and every attention kernel counts as a call. `stage` in "
        "a dispatch is the phase that the range name states (no context requests, eight generation requests).",
        {"graph_launches": 3, "kernels_per_graph_launch": 21},
    ),
    Sample(
        "compiled.cuda-authored.json",
        lambda: [samples_systems.compiled()], ("forward",),
        "Inductor decomposed attention: GEMM, `triton_per_fused__safe_softmax_mul_*`, GEMM inside one "
        "`CompiledFxGraph`. Step 0 compiles (warm-up). Step 2 comes with a new length and compiles again: frame 0 "
        "continues as `0/1`.",
        {"compiles": 2, "recompiles_after_warmup": 1, "recompile_steps": [2], "compiled_frames": ["0/0", "0/1"]},
    ),
    Sample(
        "gaps-and-copies.cuda-authored.json",
        lambda: [samples_systems.gaps_and_copies()], ("forward", "metrics"),
        "The device waits twice in every step: for the data loader (4 ms), and for Python code after `.item()` "
        "(1.2 ms). `.item()` itself waits for work that was queued and costs next to nothing; it empties the queue, "
        "and so the Python after it shows. 64 MiB of weights are copied from pageable memory in every step, and never "
        "change. Step 0 also allocates. `gaps` lists every time of at least 0.1 ms in which the device did nothing "
        "between its first and last work, with the range or op that covered most of it.",
        {"pageable_copies_per_step": 3, "items_per_step": 1, "allocations_in_steps": [0],
         "repeated_host_to_device_bytes": 64 << 20},
    ),
    Sample(
        "two-ranks/rank0.cuda-authored.json",
        lambda: samples_systems.train_ranks(own_clocks=True)[:1], ("forward", "backward", "Optimizer.step#SGD.step"),
        "Rank 0 of two; load it with `rank1`. The two files have different `baseTimeNanoseconds` and the same "
        "correlation numbers.",
        {"rank": 0, "world_size": 2},
    ),
    Sample(
        "two-ranks/rank1.cuda-authored.json",
        lambda: samples_systems.train_ranks(own_clocks=True)[1:], ("forward", "backward", "Optimizer.step#SGD.step"),
        "Rank 1 of two: its data loader is 1.4 ms slower, so rank 0 waits in the all-reduce. On the common clock both "
        "all-reduces of a step end at the same nanosecond.",
        {"rank": 1, "world_size": 2},
    ),
    *(
        Sample(
            f"straggler/rank{rank}.cuda-authored.json.gz",
            lambda rank=rank: samples_systems.straggler()[rank : rank + 1],  # type: ignore[misc]
            ("forward", "backward", "Optimizer.step#SGD.step"),
            f"Rank {rank} of four; load the folder. The kernels of rank 2 take 1.4 times as long, so it comes last to "
            "every all-reduce and waits for nobody; in the others the all-reduce lasts as long as rank 2 is late, plus "
            "the transfer. All four leave it at the same nanosecond.",
            {"rank": rank, "world_size": 4, "straggler": 2},
        )
        for rank in range(4)
    ),
    Sample(
        "merged-ranks.cuda-authored.json",
        lambda: samples_systems.train_ranks(own_clocks=False), ("forward", "backward", "Optimizer.step#SGD.step"),
        "Both ranks in one file: two host processes, two GPUs, and every correlation number twice. A kernel belongs "
        "to the launch of its own process; joined by correlation alone, half of them land on the wrong rank.",
        {"host_processes": 2, "work_of_pid": {"31000": 0, "31007": 1}},
    ),
    Sample(
        "no-device-work.cuda-authored.json",
        lambda: [samples_systems.no_device_work()], ("forward",),
        "The file describes an H100, and nothing ran on it. Zero device time here is a finding, not a good score.",
    ),
    Sample(
        "rocm.hip-authored.json",
        lambda: [samples_systems.rocm()], ("denoise",),
        "HIP calls under the category `cuda_runtime`, stream 0, no `context`. FlashAttention and the memory-efficient "
        "backend share the AOTriton kernel `attn_fwd`; the op above says that flash was chosen.",
    ),
    Sample(
        "image-pipeline-before.cuda-authored.json.gz",
        lambda: [samples_pipelines.diffusion(fixed=False)], IMAGE_STAGES,
        "Marked stages (`traceview.stage:denoise`). An image waits 6 ms for its data; the weights of the text encoder "
        "come from pageable memory again (8 copies, 134 MB); every denoising step ends in `.item()` and 0.9 ms of "
        "Python, in which the device runs dry; the decoder's convolutions run in float32 without tensor cores and cost "
        "more than the denoiser. Attention is not the problem: it is FlashAttention-2 throughout. Compare with "
        "`image-pipeline-after`.",
        {"pair": "image-pipeline-after.cuda-authored", "verdict": "pass",
         "findings": ["TV105", "TV204", "TV401", "TV501", "TV502"],
         "items_per_step": 4, "repeated_host_to_device_bytes": 8 * (16 << 20), "repeated_copies_per_step": 8},
    ),
    Sample(
        "image-pipeline-after.cuda-authored.json.gz",
        lambda: [samples_pipelines.diffusion(fixed=True)], IMAGE_STAGES,
        "The same pipeline: data comes ahead of time, weights stay on the device, nothing is read in the loop, the "
        "decoder runs in bfloat16, and its result is copied to pinned memory. `denoise` itself did not change by a "
        "nanosecond of device time.",
        {"pair": "image-pipeline-before.cuda-authored", "verdict": "pass", "findings": ["TV105"],
         "repeated_host_to_device_bytes": 0, "repeated_copies_per_step": 0},
    ),
    Sample(
        "llm-decode-eager.cuda-authored.json.gz",
        lambda: [samples_serving.serving(graphs=False)], SERVING_RANGES,
        "Two rounds of one prompt (`prefill`) and six tokens for each of eight requests (`decode`). A decoded token is "
        "120 kernels of 2 to 10 us, each launched by itself: the device waits for launches. Compare with "
        "`llm-decode-graph`. Attention is vLLM's Triton kernel.",
        {"pair": "llm-decode-graph.cuda-authored", "verdict": "pass", "iterations": {"prefill": 2, "decode": 12},
         "findings": ["TV404"], "launch_bound": True, "graph_launches": 0},
    ),
    Sample(
        "llm-decode-graph.cuda-authored.json.gz",
        lambda: [samples_serving.serving(graphs=True)], SERVING_RANGES,
        "The same server with CUDA graphs: one launch a token. A token takes less than half the time; the kernels are "
        "the same. Within a graph the op that asked for attention is not recorded (`opaque`).",
        {"pair": "llm-decode-eager.cuda-authored", "verdict": "pass", "iterations": {"prefill": 2, "decode": 12},
         "findings": ["TV401"], "launch_bound": False, "graph_launches": 12},
    ),
    Sample(
        "audio-decoder.cuda-authored.json.gz",
        lambda: [samples_pipelines.audio()], ("traceview.stage:sampler", "traceview.stage:decoder"),
        "Where to look first: three convolutions of the decoder, float32 without tensor cores, take longer than the "
        "whole transformer of 24 blocks. Its heads of 72 run in FlashAttention's kernel for 96: a quarter of the "
        "matrix work multiplies padding. The device is busy in `sampler` and `decoder`; the one real pause is 12 ms of "
        "Python that writes the file.",
        {"verdict": "pass", "findings": ["TV105", "TV107", "TV204", "TV401"]},
    ),
)  # fmt: skip


def stem(file: str) -> str:
    """The name that a file shares with its note and its truth table."""
    return file.removesuffix(".gz").removesuffix(".json")


def _rows(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return ""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += [
        "| " + " | ".join(f"`{row[c]}`" if isinstance(row.get(c), str) else str(row.get(c, "")) for c in columns) + " |"
        for row in rows
    ]
    return "\n".join(lines)


def note(sample: Sample, table: dict[str, Any]) -> str:
    """The Markdown page of a sample."""
    listed = ("devices", "steps", "stages", "gaps", "dispatches", "refusals")
    other = {k: v for k, v in table.items() if k not in (*listed, "schema", "trace", "shows", "authored")}
    parts = [
        f"# {stem(sample.file)}",
        f"**Authored, not measured.** {table['shows']}",
        (
            "Written by `sample_traces/make_authored.py` with the builder in `sample_traces/authoring.py`; no GPU was "
            "involved. The layout is the PyTorch profiler's (Kineto), the op chains and kernel names are those of real "
            "recordings (`sample_traces/op_chains.py`, `sample_traces/kernel_names.py` say of which), the times are "
            "chosen. The file says so itself in its key `traceview_authored`."
        ),
        f"## What to look at\n\n{sample.look}",
        f"## The right answers\n\nAlso in `{Path(stem(sample.file)).name}.truth.json`, which the tests read.",
        "\n".join(f"- `{key}`: `{json.dumps(value)}`" for key, value in other.items()),
    ]
    parts += [f"### {key}\n\n{_rows(table[key])}" for key in listed if table.get(key)]
    return "\n\n".join(parts) + "\n"


def build(folder: Path) -> list[Path]:
    """Write all authored samples below ``folder`` and return what was written."""
    written = []
    for sample in SAMPLES:
        traces = sample.build()
        table = truth.table(traces, file=Path(sample.file).name, stages=sample.stages, **sample.facts)
        base = folder / stem(sample.file)
        written.append(write_text(folder / sample.file, render(traces)))
        written.append(write_text(base.with_name(base.name + ".truth.json"), json.dumps(table, indent=1) + "\n"))
        written.append(write_text(base.with_name(base.name + ".md"), note(sample, table)))
    return (
        written
        + samples_nsys.build(folder)
        + samples_nsys_pair.build(folder)
        + broken.build(folder / "bad", broken_binary.CASES)
    )


if __name__ == "__main__":
    for path in build(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE):
        print(f"{path.stat().st_size:>8}  {path}")
