"""Write the XProf samples: authored profiles of TPUs, and with ``--record`` one that JAX records on this CPU.

Usage: ``python sample_traces/make_xprof.py [--record] [FOLDER]`` (default: ``xprof/`` beside this file).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
if not __package__:  # Started as a script: make the folder importable by its own name.
    sys.path.insert(0, str(HERE.parent))

from sample_traces import samples_tpu  # noqa: E402
from sample_traces.xspace_bytes import Instruction, Interned, Space, Unsigned, program  # noqa: E402

NAME: Final = "jax-tpu-unfused.xprof-authored"
START_UNIX_NS: Final = 1_767_225_600_000_000_000
"""2026-01-01, when this recording did not take place."""

PROGRAM_ID: Final = 12_190_760_917_235_803_885
STEPS: Final = 4
CORES: Final = 2
STEP_NS: Final = 1_000_000

BODY: Final = "jit(train_step)/while/body"

OPS: Final = (
    # name, category, start and duration in the step (ns), flops, bytes, path
    ("while.1", "while", 20_000, 600_000, 0, 0, "jit(train_step)/while"),
    ("fusion.1", "convolution fusion", 20_000, 120_000, 68_719_476_736, 50_331_648, f"{BODY}/attn/dot_general"),
    ("fusion.2", "input fusion", 140_000, 80_000, 0, 67_108_864, f"{BODY}/attn/reduce_sum"),
    ("fusion.3", "convolution fusion", 220_000, 100_000, 68_719_476_736, 50_331_648, f"{BODY}/attn/dot_general"),
    ("copy-done.1", "copy-done", 320_000, 150_000.5, 0, 0, f"{BODY}/mlp/copy"),
    ("fusion.4", "convolution fusion", 470_000.5, 149_999.5, 137_438_953_472, 33_554_432, f"{BODY}/mlp/dot_general"),
    ("all-reduce.1", "all-reduce", 620_000, 60_000, 0, 16_777_216, "jit(train_step)/psum"),
    ("copy.1", "data formatting", 680_000, 20_000, 0, 8_388_608, "jit(train_step)/transpose"),
)
"""What one step runs on a core; the loop holds the first five after it."""

SCORES: Final = (16, 1024, 1024)


def training_program() -> bytes:
    """The compiled step: attention that nothing fused, and a product at the highest precision."""
    heads, length, _ = SCORES
    size = (heads, length, 128)
    path = BODY
    return program(
        "jit_train_step",
        {
            "qk": [
                Instruction("q", "parameter", size),
                Instruction("k", "parameter", size, parameter=1),
                Instruction("convolution.1", "convolution", SCORES, ("q", "k"), f"{path}/attn/dot_general"),
            ],
            "softmax": [
                Instruction("scores", "parameter", SCORES),
                Instruction("exponential.1", "exponential", SCORES, ("scores",), f"{path}/attn/exp"),
                Instruction("reduce.1", "reduce", (heads, length), ("exponential.1",), f"{path}/attn/reduce_sum"),
                Instruction("broadcast.1", "broadcast", SCORES, ("reduce.1",), f"{path}/attn/div"),
                Instruction("divide.1", "divide", SCORES, ("exponential.1", "broadcast.1"), f"{path}/attn/div"),
            ],
            "pv": [
                Instruction("p", "parameter", SCORES),
                Instruction("v", "parameter", size, parameter=1),
                Instruction("convolution.2", "convolution", size, ("p", "v"), f"{path}/attn/dot_general"),
            ],
            "mlp": [
                Instruction("h", "parameter", size),
                Instruction("w", "parameter", (128, 512), parameter=1),
                Instruction(
                    "convolution.3",
                    "convolution",
                    (heads, length, 512),
                    ("h", "w"),
                    f"{path}/mlp/dot_general",
                    precision=2,
                ),
            ],
            "body": [
                Instruction("state", "parameter", size),
                Instruction(
                    "fusion.1",
                    "fusion",
                    SCORES,
                    ("state", "state"),
                    f"{path}/attn/dot_general",
                    "qk",
                    fusion_kind="kOutput",
                ),
                Instruction(
                    "fusion.2",
                    "fusion",
                    SCORES,
                    ("fusion.1",),
                    f"{path}/attn/reduce_sum",
                    "softmax",
                    fusion_kind="kInput",
                ),
                Instruction(
                    "fusion.3",
                    "fusion",
                    size,
                    ("fusion.2", "state"),
                    f"{path}/attn/dot_general",
                    "pv",
                    fusion_kind="kOutput",
                ),
                Instruction("copy-done.1", "copy-done", (128, 512), (), f"{path}/mlp/copy"),
                Instruction(
                    "fusion.4",
                    "fusion",
                    size,
                    ("fusion.3", "copy-done.1"),
                    f"{path}/mlp/dot_general",
                    "mlp",
                    fusion_kind="kOutput",
                ),
            ],
            "main": [
                Instruction("arg", "parameter", size),
                Instruction("while.1", "while", size, ("arg",), "jit(train_step)/while", "body"),
                Instruction("all-reduce.1", "all-reduce", size, ("while.1",), "jit(train_step)/psum"),
                Instruction("copy.1", "copy", size, ("all-reduce.1",), "jit(train_step)/transpose"),
            ],
        },
        entry="main",
    )


def authored() -> bytes:
    """The whole file."""
    space = Space()
    for core in range(CORES):
        _tpu(space, core)
    metadata = space.plane("/host:metadata", jax_version="0.10.2", authored="by traceview, not recorded")
    metadata.name_id(
        f"jit_train_step({PROGRAM_ID})", stats={"Hlo Proto": training_program(), "program_id": Unsigned(PROGRAM_ID)}
    )
    _host(space)
    space.plane(
        "Task Environment",
        profile_start_time=Unsigned(START_UNIX_NS),
        profile_stop_time=Unsigned(START_UNIX_NS + STEPS * STEP_NS),
    )
    return space.encode()


def _tpu(space: Space, core: int) -> None:
    plane = space.plane(
        f"/device:TPU:{core}",
        2 + 8 * core,
        device_type_string="TPU v6 Lite",
        peak_teraflops_per_second=918.0,
        peak_hbm_bw_gigabytes_per_second=1638.0,
    )
    modules, ops, flight = (
        plane.line(name, at) for name, at in (("XLA Modules", 2), ("XLA Ops", 3), ("Async XLA Ops", 4))
    )
    for step in range(STEPS):
        begin = 100_000 + step * STEP_NS
        launch = _flow(step, core)
        modules.event(
            f"jit_train_step({PROGRAM_ID})", begin + 10_000, 700_000, run_id=Unsigned(step + 1), _ct=12, _c=launch
        )
        for name, category, start, dur, flops, moved, path in OPS:
            ops.event(
                f"%{name} = f32[16,1024,1024]{{2,1,0}} {category.replace(' ', '-')}(...)",
                begin + start,
                dur,
                display_name=name,
                of_name={
                    "hlo_category": category,
                    "program_id": Unsigned(PROGRAM_ID),
                    "flops": flops,
                    "model_flops": flops,
                    "bytes_accessed": moved,
                    "tf_op": f"{path}:",
                    "source": "/home/somebody/model/train.py:42",
                },
            )
        flight.event(
            "%copy-start.1 = (f32[128,512]) copy-start(...)",
            begin + 30_000,
            440_000,
            display_name="async-copy",
            hlo_op=Interned("copy-done.1"),
            _a=1,
        )


def _flow(step: int, core: int) -> int:
    """An id as the run time makes them: all 64 bits, often negative as int64."""
    return (-1) ** core * (2_002_751_013_228_737_526 + step * 977 + core)


def _host(space: Space) -> None:
    plane = space.plane("/host:CPU")
    main = plane.line("python", 7_770_125_207_720_702_235)
    queue = plane.line("py_xla_execute/3118851", 3_118_851)
    done = plane.line("callbacks/3118763", 3_118_763)
    for step in range(STEPS):
        begin = step * STEP_NS
        main.event("train", begin, 900_000, _r=1, step_num=step)
        main.event("$train.py:42 train_step", begin + 500, 880_000)
        main.event("PjitFunction(train_step)", begin + 1_000, 60_000)
        main.event("PjitFunction(train_step)", begin + 1_500, 59_000)
        for leaf in range(3):
            main.event("DevicePut", begin + 5_000 + 4_000 * leaf, 3_000)
        if step == 2:
            main.event("backend_compile_and_load", begin + 20_000, 30_000)
        main.event("np.asarray(jax.Array)", begin + 70_000, 800_000)
        for core in range(CORES):
            launch = _flow(step, core)
            queue.event("DoEnqueueProgram", begin + 62_000 + 2_000 * core, 1_500, _pt=12, _p=launch)
            done.event("CompleteCallbacks", begin + 820_000 + 2_000 * core, 1_000, _ct=12, _c=launch)
        queue.event("tpu::System::TransferToDevice", begin + 66_000, 9_000, size=1_048_576, device_ordinal=0)
        queue.event("tpu::System::TransferToDevice=>IssueEvent", begin + 66_500, 1_000)


def _rounded_ns(*categories: str) -> int:
    """Time of the ops of some categories in one step; end points are rounded down. They do not overlap."""
    return sum(int(start + dur) - int(start) for _, category, start, dur, *_ in OPS if category in categories)


def truth() -> dict[str, Any]:
    """The right answers, worked out from the constants above."""
    runs = STEPS * CORES
    return {
        "schema": "traceview.sample-truth/1",
        "trace": f"{NAME}.xplane.pb",
        "authored": True,
        "shows": "A training step on two TPU cores: attention that XLA did not fuse, a wait for a copy, a product at "
        "the highest precision, weights copied in every step, a recompilation in step 2.",
        "origin_unix_ns": START_UNIX_NS,
        "cores": CORES,
        "steps": [{"name": "train", "index": n, "wall_ns": 900_000} for n in range(STEPS)],
        "busy_ns_per_core": STEPS
        * (_rounded_ns("convolution fusion", "input fusion", "all-reduce", "data formatting")),
        "wait_ns_per_core": STEPS * _rounded_ns("copy-done"),
        "collective_ns_per_core": STEPS * 60_000,
        "modules": runs,
        "attention": {"implementation": "unfused", "provider": "xla", "count": runs, "evidence": "shapes"},
        "attention_device_ns": runs * 300_000,
        "flops": runs * sum(one[4] for one in OPS),
        "xprof": {"total_ps": runs // STEPS * ((STEPS - 1) * STEP_NS + 680_000) * 1000, "wait_ps": runs * 150_000_500},
        "transfers_per_step": 4,
        "recompiled_steps": [2],
    }


NOTE: Final = """# {name}

**Authored, not recorded**: written by `sample_traces/make_xprof.py` in XProf's layout (XSpace), with chosen times. The
plane `/host:metadata` says so too (`authored`). Use it to see what traceview says about a situation, never as evidence
of how fast something is.

{shows}

Each step runs `jit_train_step` on both cores. Its loop holds the two products and the softmax of an attention that XLA
left unfused, the wait for an asynchronous copy (`copy-done`), and a product at `HIGHEST`; an all-reduce and a relayout
follow. The loop's own row spans its ops and is no work of its own. Launches are linked by 64-bit flow ids, some of them
negative.

The right answers are in `{name}.truth.json`.
"""


def build(folder: Path) -> list[Path]:
    """Write the authored samples with their notes and truth tables; the same bytes each time."""
    folder.mkdir(exist_ok=True)
    table = truth()
    files = {
        f"{NAME}.xplane.pb": authored(),
        f"{NAME}.truth.json": (json.dumps(table, indent=1) + "\n").encode(),
        f"{NAME}.md": NOTE.format(name=NAME, shows=table["shows"]).encode(),
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in files] + samples_tpu.build(folder)


def main() -> None:
    """Write everything that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", nargs="?", type=Path, default=HERE / "xprof")
    parser.add_argument("--record", action="store_true", help="also record the JAX sample again")
    options = parser.parse_args()
    for path in build(options.folder):
        print(f"{path.stat().st_size:>8}  {path}")
    if options.record:
        from sample_traces import make_jax_cpu

        make_jax_cpu.main(options.folder)


if __name__ == "__main__":
    main()
