"""The authored pair of a text-to-image pipeline on one TPU: what a profile looks like before and after the work on it.

Its numbers are chosen to tell the kind of story that people report (about 945 ms an image before, 346 after, on one
TPU v6e); nothing of it is measured.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sample_traces.xspace_bytes import Instruction, Interned, Plane, Space, Unsigned, program

if TYPE_CHECKING:
    from pathlib import Path

BEFORE: Final = "image-pipeline-before.xprof-authored"
AFTER: Final = "image-pipeline-after.xprof-authored"

START_UNIX_NS: Final = 1_767_225_600_000_000_000
IMAGES: Final = 4
DENOISE_STEPS: Final = 4
BLOCKS: Final = 24
LAYERS: Final = 12
CONVOLUTIONS: Final = 8
COMPILED_IN: Final = 2
COMPILE_NS: Final = 310_000_000
IMAGE_NS: Final = {BEFORE: 944_670_000, AFTER: 345_900_000}
"""Wall time of one image; the image for which the encoder is compiled again takes :data:`COMPILE_NS` more."""

SCORES: Final = (32, 4096, 4096)
HEADS: Final = (32, 4096, 128)
WEIGHTS: Final = {"encode": 600_000_000, "denoise": 1_512_000_000, "decode": 100_000_000}
"""Bytes that the first version copies to the device again for every image, by the program that takes them; one tensor
for each layer, block or convolution."""
COPY_NS: Final = {"encode": 36_000_000, "denoise": 90_000_000, "decode": 6_000_000}

ATTENTION_FLOPS: Final = 2 * 2 * 32 * 4096 * 4096 * 128
MLP_FLOPS: Final = 850_000_000_000
ENCODER_FLOPS: Final = 750_000_000_000
DECODER_FLOPS: Final = 4_250_000_000_000
SCORE_BYTES: Final = 4 * 32 * 4096 * 4096
"""One float32 buffer of scores: 2.1 GB."""

PROGRAMS: Final = {"encode": 7_310_201_884_109_326_571, "denoise": 12_884_001_930_117_360_047, "decode": 4_077}
ENCODE_AGAIN: Final = 16_018_775_230_664_901_123
"""The encoder after its recompilation; ids need all 64 bits."""


@dataclass(frozen=True, slots=True)
class Op:
    """One op of a program: its category, time, and what XProf says it computes and moves."""

    name: str
    category: str
    ns: int
    path: str
    flops: int = 0
    moved: int = 0


BODY: Final = {
    "encode": "jit(encode)/text_encoder/while/body",
    "denoise": "jit(denoise)/denoise/while/body",
    "decode": "jit(decode)/vae_decode",
}

ENCODER: Final = {
    BEFORE: (
        Op("fusion.11", "convolution fusion", 9_000_000, "mlp/dot_general", ENCODER_FLOPS, 64_000_000),
        Op("fusion.12", "loop fusion", 2_666_667, "mlp/gelu", 0, 3_900_000_000),
    ),
    AFTER: (
        Op("fusion.11", "convolution fusion", 1_400_000, "mlp/dot_general", ENCODER_FLOPS, 32_000_000),
        Op("fusion.12", "loop fusion", 1_266_667, "mlp/gelu", 0, 1_900_000_000),
    ),
}  # fmt: skip
DENOISER: Final = {
    BEFORE: (
        Op("fusion.1", "convolution fusion", 1_400_000, "attn/dot_general", ATTENTION_FLOPS // 2, SCORE_BYTES),
        Op("fusion.2", "input fusion", 2_000_000, "attn/reduce_sum", 0, SCORE_BYTES * 3 // 2),
        Op("fusion.3", "convolution fusion", 900_000, "attn/dot_general", ATTENTION_FLOPS // 2, SCORE_BYTES // 2),
        Op("copy-done.1", "copy-done", 100_000, "mlp/copy"),
        Op("fusion.4", "convolution fusion", 1_200_000, "mlp/dot_general", MLP_FLOPS, 210_000_000),
    ),
    AFTER: (
        Op("splash_mha_fwd_residuals.1", "custom-call", 900_000, "attn/pallas_call", ATTENTION_FLOPS, 134_217_728),
        Op("copy-done.1", "copy-done", 50_000, "mlp/copy"),
        Op("fusion.4", "convolution fusion", 1_200_000, "mlp/dot_general", MLP_FLOPS, 210_000_000),
        Op("fusion.5", "loop fusion", 200_000, "mlp/add", 0, 300_000_000),
    ),
}  # fmt: skip
DECODER: Final = {
    BEFORE: (Op("fusion.21", "convolution fusion", 11_250_000, "conv_general_dilated", DECODER_FLOPS, 900_000_000),),
    AFTER: (Op("fusion.21", "convolution fusion", 9_000_000, "conv_general_dilated", DECODER_FLOPS, 900_000_000),),
}
REPEATS: Final = {"encode": LAYERS, "denoise": BLOCKS, "decode": CONVOLUTIONS}


def ops_of(name: str, module: str) -> tuple[Op, ...]:
    """What one round of a program runs in one of the two versions."""
    return {"encode": ENCODER, "denoise": DENOISER, "decode": DECODER}[module][name]


def module_ns(name: str, module: str) -> int:
    """Time of one run of a program on the device."""
    return REPEATS[module] * sum(op.ns for op in ops_of(name, module))


def _program(name: str, module: str) -> bytes:
    """The compiled program, as far as a reader looks into it."""
    body = BODY[module]
    if module != "denoise":
        op = ops_of(name, module)[0]
        high = 2 if name == BEFORE and module == "encode" else 0
        kind = 11 if high else 16
        inner = [
            Instruction("x", "parameter", (256, 4096), type=kind),
            Instruction("w", "parameter", (4096, 4096), parameter=1, type=kind),
            Instruction("convolution.9", "convolution", (256, 4096), ("x", "w"), f"{body}/{op.path}", precision=high,
                        type=kind),
        ]  # fmt: skip
        main = [
            Instruction("arg", "parameter", (256, 4096), type=kind),
            Instruction(op.name, "fusion", (256, 4096), ("arg", "arg"), f"{body}/{op.path}", "product", type=kind,
                        fusion_kind="kOutput"),
        ]  # fmt: skip
        parts = {"product": inner, "main": main}
        for other in ops_of(name, module)[1:]:
            parts["gelu"] = [Instruction("a", "parameter", (256, 4096), type=kind),
                             Instruction("tanh.1", "tanh", (256, 4096), ("a",), type=kind)]  # fmt: skip
            main.append(Instruction(other.name, "fusion", (256, 4096), (op.name,), f"{body}/{other.path}", "gelu",
                                    type=kind, fusion_kind="kLoop"))  # fmt: skip
        return program(f"jit_{module}", {**parts, "main": main}, entry="main")
    mlp = [
        Instruction("h", "parameter", HEADS, type=16), Instruction("w", "parameter", (128, 512), parameter=1, type=16),
        Instruction("convolution.3", "convolution", HEADS, ("h", "w"), f"{body}/mlp/dot_general", type=16),
    ]  # fmt: skip
    last = Instruction("fusion.4", "fusion", HEADS, ("copy-done.1",), f"{body}/mlp/dot_general", "mlp",
                       fusion_kind="kOutput")  # fmt: skip
    state = Instruction("state", "parameter", HEADS)
    wait = Instruction("copy-done.1", "copy-done", (128, 512), (), f"{body}/mlp/copy")
    if name == AFTER:
        fused = Instruction("splash_mha_fwd_residuals.1", "custom-call", HEADS, ("state", "state", "state"),
                            f"{body}/attn/pallas_call", target="tpu_custom_call")  # fmt: skip
        tail = Instruction("fusion.5", "fusion", HEADS, ("fusion.4",), f"{body}/mlp/add", "sum", fusion_kind="kLoop")
        total = [Instruction("a", "parameter", HEADS), Instruction("add.1", "add", HEADS, ("a", "a"))]
        parts = {"mlp": mlp, "sum": total, "main": [state, fused, wait, last, tail]}
        return program("jit_denoise", parts, entry="main")
    attention = {
        "qk": [
            Instruction("q", "parameter", HEADS), Instruction("k", "parameter", HEADS, parameter=1),
            Instruction("convolution.1", "convolution", SCORES, ("q", "k"), f"{body}/attn/dot_general"),
        ],
        "softmax": [
            Instruction("scores", "parameter", SCORES),
            Instruction("exponential.1", "exponential", SCORES, ("scores",), f"{body}/attn/exp"),
            Instruction("reduce.1", "reduce", SCORES[:2], ("exponential.1",), f"{body}/attn/reduce_sum"),
            Instruction("broadcast.1", "broadcast", SCORES, ("reduce.1",), f"{body}/attn/div"),
            Instruction("divide.1", "divide", SCORES, ("exponential.1", "broadcast.1"), f"{body}/attn/div"),
        ],
        "pv": [
            Instruction("p", "parameter", SCORES), Instruction("v", "parameter", HEADS, parameter=1),
            Instruction("convolution.2", "convolution", HEADS, ("p", "v"), f"{body}/attn/dot_general"),
        ],
    }  # fmt: skip
    main = [
        state,
        Instruction("fusion.1", "fusion", SCORES, ("state", "state"), f"{body}/attn/dot_general", "qk",
                    fusion_kind="kOutput"),
        Instruction("fusion.2", "fusion", SCORES, ("fusion.1",), f"{body}/attn/reduce_sum", "softmax",
                    fusion_kind="kInput"),
        Instruction("fusion.3", "fusion", HEADS, ("fusion.2", "state"), f"{body}/attn/dot_general", "pv",
                    fusion_kind="kOutput"),
        wait, last,
    ]  # fmt: skip
    return program("jit_denoise", {**attention, "mlp": mlp, "main": main}, entry="main")


class _Recording:
    """The planes of one file while the program runs: the device works off what the host has enqueued."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.space = Space()
        self.device = self.space.plane(
            "/device:TPU:0", 2, device_type_string="TPU v6 Lite", peak_teraflops_per_second=918.0,
            peak_hbm_bw_gigabytes_per_second=1638.0,
        )  # fmt: skip
        self.modules, self.ops, self.flight = (
            self.device.line(line, at) for line, at in (("XLA Modules", 2), ("XLA Ops", 3), ("Async XLA Ops", 4))
        )
        self.metadata = self.space.plane("/host:metadata", jax_version="0.10.2", authored="by traceview, not recorded")
        for module, number in PROGRAMS.items():
            self._describe(module, number)
        if name == BEFORE:
            self._describe("encode", ENCODE_AGAIN)
        host: Plane = self.space.plane("/host:CPU")
        self.main = host.line("python", 7_770_125_207_720_702_235)
        self.queue = host.line("py_xla_execute/3118851", 3_118_851)
        self.now = 1_000_000
        self.free = 0
        self.runs = 0

    def _describe(self, module: str, number: int) -> None:
        stats = {"Hlo Proto": _program(self.name, module), "program_id": Unsigned(number)}
        self.metadata.name_id(f"jit_{module}({number})", stats=stats)

    def call(self, module: str, number: int) -> None:
        """A call of a compiled function: its weights, its launch, and its work when the device is free."""
        start = self.now
        again = self.name == BEFORE and number == ENCODE_AGAIN and not getattr(self, "compiled", False)
        if again:
            self.compiled = True
            self.main.event("backend_compile_and_load", self.now + 20_000, COMPILE_NS - 40_000)
            self.now += COMPILE_NS
        if self.name == BEFORE and (module != "denoise" or not self.copied):
            leaves, took = REPEATS[module], COPY_NS[module]
            each = (took - 70_000) // leaves
            for leaf in range(leaves):
                self.queue.event(
                    "tpu::System::TransferToDevice", self.now + 10_000 + leaf * each, each - 1_000,
                    size=WEIGHTS[module] // leaves, device_ordinal=0,
                )  # fmt: skip
            self.now += took - 60_000
            self.copied = module == "denoise"
        self.runs += 1
        launch = (-1) ** self.runs * (2_002_751_013_228_737_526 + 977 * self.runs)
        self.queue.event("DoEnqueueProgram", self.now + 20_000, 15_000, _pt=12, _p=launch)
        begin = max(self.now + 60_000, self.free)
        self._work(module, number, begin, launch)
        self.now += 60_000
        self.main.event(f"PjitFunction({module})", start, self.now - start)

    def _work(self, module: str, number: int, begin: int, launch: int) -> None:
        took = module_ns(self.name, module)
        self.modules.event(f"jit_{module}({number})", begin, took, run_id=Unsigned(self.runs), _ct=12, _c=launch)
        at = begin
        if REPEATS[module] > 1 and module != "decode":
            self._op(Op("while.1", "while", took, ""), module, number, begin)
        for _ in range(REPEATS[module]):
            for op in ops_of(self.name, module):
                self._op(op, module, number, at)
                if op.category == "copy-done":
                    self.flight.event(
                        "%copy-start.1 = (bf16[128,512]) copy-start(...)", at - 900_000, 900_000 + op.ns - 10_000,
                        display_name="async-copy", hlo_op=Interned("copy-done.1"), _a=1,
                    )  # fmt: skip
                at += op.ns
        self.free = begin + took

    def _op(self, op: Op, module: str, number: int, at: int) -> None:
        dtype = "f32" if self.name == BEFORE and "attn" in op.path else "bf16"
        self.ops.event(
            f"%{op.name} = {dtype}[...] {op.category.replace(' ', '-')}(...)", at, op.ns, display_name=op.name,
            of_name={
                "hlo_category": op.category, "program_id": Unsigned(number), "flops": op.flops,
                "model_flops": op.flops, "bytes_accessed": op.moved,
                "tf_op": f"{BODY[module]}/{op.path}:", "source": "/home/somebody/pipeline/model.py:88",
            },
        )  # fmt: skip

    def read(self, then_ns: int, doing: str) -> None:
        """The host reads a value, which waits for the device, and then works on it."""
        end = max(self.now + 20_000, self.free + 30_000)
        self.main.event("np.asarray(jax.Array)", self.now, end - self.now)
        if then_ns:
            self.main.event(doing, end, then_ns)
        self.now = end + then_ns

    copied = False


def authored(name: str) -> bytes:
    """One of the two files."""
    run = _Recording(name)
    before = name == BEFORE
    encoder = PROGRAMS["encode"]
    for image in range(IMAGES):
        start = run.now
        whole = IMAGE_NS[name]
        if before and image == COMPILED_IN:
            encoder, whole = ENCODE_AGAIN, whole + COMPILE_NS
        run.call("encode", encoder)
        run.copied = False
        if before:
            run.read(0, "")
        for _ in range(DENOISE_STEPS):
            run.call("denoise", PROGRAMS["denoise"])
            if before:  # Is it good enough already? A read of one number, and Python, in every step.
                run.read(4_500_000, "$scheduler.py:41 step")
        run.call("decode", PROGRAMS["decode"])
        tail = start + whole - max(run.now + 20_000, run.free + 30_000)
        run.read(tail, "$postprocess.py:12 to_png")
        run.main.event("generate", start, whole, _r=1, step_num=image)
        run.now = start + whole + 200_000
    run.space.plane("Task Environment", profile_start_time=Unsigned(START_UNIX_NS),
                    profile_stop_time=Unsigned(START_UNIX_NS + run.now))  # fmt: skip
    return run.space.encode()


def truth(name: str) -> dict[str, Any]:
    """The right answers, worked out from the constants above."""
    before = name == BEFORE
    calls = {"encode": 1, "denoise": DENOISE_STEPS, "decode": 1}
    busy = {
        stage: IMAGES * calls[module] * REPEATS[module]
        * sum(op.ns for op in ops_of(name, module) if op.category != "copy-done")
        for stage, module in (("text_encoder", "encode"), ("denoise", "denoise"), ("vae_decode", "decode"))
    }  # fmt: skip
    rounds = IMAGES * DENOISE_STEPS * BLOCKS
    attention = [op for op in DENOISER[name] if "attn" in op.path]
    found = ("unfused", "xla", "shapes") if before else ("pallas", "jax", "kernel")
    flops = sum(
        calls[module] * REPEATS[module] * op.flops for module in calls for op in ops_of(name, module)
    )  # fmt: skip
    return {
        "schema": "traceview.sample-truth/1", "trace": f"{name}.xplane.pb", "authored": True,
        "shows": SHOWS[name], "pair": AFTER if before else BEFORE, "origin_unix_ns": START_UNIX_NS, "cores": 1,
        "steps": [
            {"name": "generate", "index": n,
             "wall_ns": IMAGE_NS[name] + (COMPILE_NS if before and n == COMPILED_IN else 0)}
            for n in range(IMAGES)
        ],
        "busy_ns_per_core": sum(busy.values()),
        "stage_busy_ns": busy,
        "wait_ns_per_core": rounds * sum(op.ns for op in DENOISER[name] if op.category == "copy-done"),
        "modules": IMAGES * sum(calls.values()),
        "attention": {"implementation": found[0], "provider": found[1], "count": rounds, "evidence": found[2]},
        "attention_device_ns": rounds * sum(op.ns for op in attention),
        "flops_per_image": flops,
        "recopied_bytes_per_image": sum(WEIGHTS.values()) if before else 0,
        "transfers_per_step": sum(REPEATS.values()) if before else 0,
        "recompiled_steps": [COMPILED_IN] if before else [],
        "verdict": "fail" if before else "pass",
        "findings": ["TV108", "TV207", "TV208", "TV301", "TV403", "TV502"] if before else [],
    }  # fmt: skip


SHOWS: Final = {
    BEFORE: "An image pipeline on one TPU v6e, 944.67 ms an image: attention that XLA did not fuse, with float32 "
    "scores of 2.1 GB a block, weights copied again for every image, a text encoder at the highest precision, a read "
    "of one number after each denoising step, a recompilation for a new prompt length.",
    AFTER: "The same pipeline at 345.9 ms an image: fused attention (Pallas), weights that stay on the device, "
    "the default precision, one prompt length, no read before the image is done.",
}
LOOK: Final = {
    BEFORE: "Three programs (`jit_encode`, `jit_denoise` four times, `jit_decode`) make an image; the stages come from "
    "the named scopes `text_encoder`, `denoise` and `vae_decode`. Each of 24 blocks runs product, softmax, product "
    "with the scores in between. `copy-done` is a wait, not work. Before each program the device waits for its weights "
    "(2.2 GB an image), and after each denoising step for Python. Image 2 has a new prompt length: `jit_encode` is "
    "compiled again for 310 ms. In the encoder a product asks for `HIGHEST`.",
    AFTER: "The same work (the FLOP of an image are the same) in 37 % of the time: 47.5 % of the chip's peak in place "
    "of 17.4 %. `splash_mha_fwd_residuals` is JAX's "
    "fused attention, a custom call. Nothing is copied to the device, nothing is compiled, and the host reads once per "
    "image. What is left is the denoiser's own products, the decoder, and 16 ms of host work at the end of an image.",
}


def note(name: str, table: dict[str, Any]) -> str:
    """The Markdown page of one of the two."""
    keys = (
        "pair", "attention", "attention_device_ns", "stage_busy_ns", "wait_ns_per_core", "recompiled_steps",
        "recopied_bytes_per_image", "flops_per_image", "verdict", "findings",
    )  # fmt: skip
    rows = "\n".join(f"- `{key}`: `{json.dumps(table[key])}`" for key in keys)
    return (
        f"# {name}\n\n**Authored, not recorded.** {SHOWS[name]}\n\n"
        "Written by `sample_traces/make_xprof.py` (`samples_tpu.py`) in XProf's layout (XSpace); no TPU was involved. "
        "All times are chosen, to tell the kind of story that people report of such work; the plane `/host:metadata` "
        "says so too (`authored`). Never take it as evidence of how fast something is.\n\n"
        f"## What to look at\n\n{LOOK[name]}\n\n## The right answers\n\nAlso in `{name}.truth.json`, which the tests "
        f"read.\n\n{rows}\n"
    )


def build(folder: Path) -> list[Path]:
    """Write both samples with their notes and truth tables; the same bytes each time."""
    folder.mkdir(exist_ok=True)
    written = []
    for name in (BEFORE, AFTER):
        table = truth(name)
        for suffix, content in (
            (".xplane.pb", authored(name)), (".truth.json", (json.dumps(table, indent=1) + "\n").encode()),
            (".md", note(name, table).encode()),
        ):  # fmt: skip
            path = folder / f"{name}{suffix}"
            path.write_bytes(content)
            written.append(path)
    return written
