"""The authored sample in the layout of Nsight Systems: its program, its right answers and its note."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from sample_traces import kernel_names as names
from sample_traces.nsys_authoring import H100, Export

if TYPE_CHECKING:
    from pathlib import Path

FILE: Final = "two-ranks.nsys-authored.sqlite"

MASK: Final = [2, 8, 1024, 1024]
HEADS: Final = [2, 8, 1024, 64]
SDPA_SIZES: Final = [HEADS, HEADS, HEADS, MASK, [], [], [], []]
FUSED_SIZES: Final = [[2, 8, 128, 64]] * 3 + [[]] * 5
STEPS: Final = 3
GRAPH_NODES: Final = 4

SHOWS: Final = (
    "Two ranks in one file, each calling its GPU 0; a mask made PyTorch run its math path, and NVTX sizes say why."
)
LOOK: Final = (
    "Both ranks have a GPU of their own under the number 0 (one visible GPU each), and the same correlation numbers. "
    "In `denoise` a mask of 2 x 8 x 1024 x 1024 is passed: FlashAttention takes no mask, and math ran. The ranges "
    "carry sizes and no dtypes, as `emit_nvtx(record_shapes=True)` writes them, so rules about dtypes stay *not "
    "recorded*. `text_encoder` got FlashAttention-2. The last part of each rank replays a CUDA graph traced node by "
    "node: four attention kernels, one launch, no op."
)


def export() -> Export:
    """The two ranks."""
    written = Export("2026", mode="Node")
    for rank in range(2):
        one = written.process(41_000 + rank, H100, device=0, physical=rank)
        one.now += 1_500 * rank
        for _ in range(STEPS):
            with one.range("text_encoder"), one.op("aten::scaled_dot_product_attention", FUSED_SIZES, seq=7):  # noqa: SIM117
                with one.op("aten::_scaled_dot_product_flash_attention", FUSED_SIZES[:5], seq=7):
                    one.launch(names.flash2("pytorch_flash", 64, "bfloat16_t"), us=11.7)
            with one.range("denoise"), one.op("aten::scaled_dot_product_attention", SDPA_SIZES, seq=9):  # noqa: SIM117
                with one.op("aten::_scaled_dot_product_attention_math", SDPA_SIZES, seq=9):
                    with one.op("aten::bmm", [[16, 1024, 64], [16, 64, 1024]], seq=9):
                        one.launch(names.GEMM_BF16_H100, us=90.25)
                    with one.op("aten::add", [MASK, MASK, []], seq=9):
                        one.launch(names.ADD_BF16, us=61.5)
                    with one.op("aten::_softmax", [MASK, [], []], seq=9):
                        one.launch(names.softmax_warp("c10::BFloat16", "c10::BFloat16", 10), us=72.125)
                    with one.op("aten::bmm", [[16, 1024, 1024], [16, 1024, 64]], seq=9):
                        one.launch(names.GEMM_BF16_H100, us=88.5)
            one.copy(5, kind=2, source=2, target=0, size=4)
            one.synchronize()
        replay = one.call("cudaGraphLaunch_v10000")
        for node in range(GRAPH_NODES):
            one.kernel(names.flash2("pytorch_flash", 64, "bfloat16_t", causal=True), 20, replay, graphNodeId=node + 1)
        one.synchronize()
    return written


def truth(written: Export) -> dict[str, Any]:
    """The right answers, counted from what was written and not by traceview."""
    kernels = written.tables["CUPTI_ACTIVITY_KIND_KERNEL"]
    copies = written.tables["CUPTI_ACTIVITY_KIND_MEMCPY"]
    ranges = [row["text"].partition(",")[0] for row in written.tables["NVTX_EVENTS"]]
    devices = []
    for rank in range(2):
        own = [row for row in (*kernels, *copies) if row["globalPid"] >> 24 & 0xFFFFFF == 41_000 + rank]
        devices.append({"ordinal": rank, "events": len(own), "busy_ns": sum(row["end"] - row["start"] for row in own)})
    ops = sum("::" in name for name in ranges)
    waits = len(written.tables["CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"])
    math_ns = 2 * STEPS * (90_250 + 61_500 + 72_125 + 88_500)
    return {
        "schema": "traceview.sample-truth/1",
        "trace": FILE,
        "authored": True,
        "shows": SHOWS,
        "gpu": H100.name,
        "events": {
            "cpu_op": ops,
            "cuda_runtime": len(written.tables["CUPTI_ACTIVITY_KIND_RUNTIME"]),
            "cuda_sync": waits,
            "gpu_memcpy": len(copies),
            "kernel": len(kernels),
            "user_annotation": len(ranges) - ops,
        },
        "launches": len({(row["globalPid"], row["correlationId"]) for row in (*kernels, *copies)}),
        "launches_without_work": 0,
        "work_without_launch": 0,
        "devices": devices,
        "steps": [],
        "dispatches": [
            _dispatch("flash-2", "attributed", "text_encoder", 2 * STEPS, 2 * STEPS * 11_700),
            _dispatch("math", "attributed", "denoise", 2 * STEPS, math_ns),
            _dispatch("flash-2", "opaque", None, 2 * GRAPH_NODES, 2 * GRAPH_NODES * 20_000),
        ],
        "graph_launches": 2,
        "verdict": "fail",
        "refusals": [{"backend": "flash", "rule": "F2", "because": "a mask was given"}],
    }


def _dispatch(implementation: str, attribution: str, stage: str | None, count: int, device_ns: int) -> dict[str, Any]:
    return {
        "op": "attention", "implementation": implementation, "provider": "pytorch", "attribution": attribution,
        "stage": stage, "count": count, "device_ns": device_ns,
    }  # fmt: skip


def note(table: dict[str, Any]) -> str:
    """The Markdown page of the sample."""
    rows = "\n".join(
        f"- `{key}`: `{json.dumps(table[key])}`" for key in ("events", "devices", "dispatches", "refusals")
    )
    return (
        f"# {FILE.removesuffix('.sqlite')}\n\n**Authored, not measured.** {SHOWS}\n\n"
        "Written by `sample_traces/make_authored.py` with the builder in `sample_traces/nsys_authoring.py`; no GPU "
        "was involved. The tables and columns are those of Nsight Systems (schema 3.25), the kernel names are those "
        "of real recordings, the times are chosen. The file says so itself in `META_DATA_EXPORT`, key "
        "`TRACEVIEW_AUTHORED`.\n\n"
        f"## What to look at\n\n{LOOK}\n\n## The right answers\n\n"
        f"Also in `{FILE.removesuffix('.sqlite')}.truth.json`, which the tests read.\n\n{rows}\n"
    )


def build(folder: Path) -> list[Path]:
    """Write the sample, its truth table and its note below ``folder``."""
    written = export()
    table = truth(written)
    base = folder / FILE.removesuffix(".sqlite")
    truth_path = base.with_name(base.name + ".truth.json")
    truth_path.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    note_path = base.with_name(base.name + ".md")
    note_path.write_text(note(table), encoding="utf-8")
    return [written.write_sqlite(folder / FILE), truth_path, note_path]
