"""Record the sample traces that need no GPU with the PyTorch profiler, and trim and scrub what it writes.

Usage: ``python sample_traces/make_torch_cpu.py [FOLDER]`` (default: this folder). Needs PyTorch; compiling needs a
C++ compiler. Recordings differ from run to run in their times, not in what the programs planted. The truth tables are
counted in the files by plain means; ``tests/samples`` says what the counts must be.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import platform
import re
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"  # A cached graph would compile in no time.

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import ProfilerActivity, profile, record_function, schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

HERE: Final = Path(__file__).resolve().parent
DROPPED_KEYS: Final = ("host_name", "username", "trace_id")
SLEEP_S: Final = 0.05


def steps(prof: profile, count: int) -> Iterator[int]:
    """Numbers of the profiler's steps; the profiler opens the first, and closes the last when it stops."""
    for step in range(count):
        if step:
            prof.step()
        yield step


def by_hand(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Attention as two batched products around a softmax."""
    scores = torch.bmm(q.flatten(0, 1), k.flatten(0, 1).transpose(1, 2)) / math.sqrt(q.shape[-1])
    return torch.bmm(scores.softmax(-1), v.flatten(0, 1)).view(q.shape)


def attention(prof: profile) -> None:
    """Three implementations of one attention, a stage each, three steps."""
    q, k, v = (torch.randn(1, 4, 128, 32) for _ in range(3))
    for _ in steps(prof, 3):
        with record_function("sdpa_default"):
            for _ in range(2):
                torch.nn.functional.scaled_dot_product_attention(q, k, v)
        with record_function("sdpa_math"), sdpa_kernel(SDPBackend.MATH):
            torch.nn.functional.scaled_dot_product_attention(q, k, v)
        with record_function("by_hand"):
            by_hand(q, k, v)


def recompiles(prof: profile) -> None:
    """A compiled function with a graph break, called with a new size in step 2, after a warm-up in step 0."""

    def model(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y = torch.relu(x @ w)
        torch._dynamo.graph_break()  # noqa: SLF001 - the documented way to ask for one
        return (y * 2).sum(-1)

    compiled = torch.compile(model, dynamic=False)
    w = torch.randn(32, 32)
    for step in steps(prof, 4):
        with record_function("forward"):
            compiled(torch.randn(16 if step < 2 else 24, 32), w)


def gaps(prof: profile) -> None:
    """A sleep inside one stage and a read of one number in another."""
    x, w = torch.randn(64, 256), torch.randn(256, 256)
    for _ in steps(prof, 3):
        with record_function("load_batch"):
            time.sleep(SLEEP_S)
        with record_function("forward"):
            y = x @ w
        with record_function("log_loss"):
            y.mean().item()


WEIGHTS: Final = 9
WIDTH: Final = 640


def stages(prof: profile) -> None:
    """A pipeline of marked stages: one got flash attention, one math, and all weights are converted in every step."""
    stored = [torch.randn(WIDTH, WIDTH).to(torch.bfloat16) for _ in range(WEIGHTS)]
    q, k, v = (torch.randn(1, 4, 256, 64) for _ in range(3))
    x = torch.randn(64, WIDTH)
    for _ in steps(prof, 4):
        with record_function("traceview.stage:text_encoder"):
            weights = [weight.to(torch.float32) for weight in stored]
            torch.nn.functional.scaled_dot_product_attention(q, k, v)
        with record_function("traceview.stage:denoise"), sdpa_kernel(SDPBackend.MATH):
            for _ in range(3):
                torch.nn.functional.scaled_dot_product_attention(q, k, v)
                x = torch.tanh(x @ weights[0])
        with record_function("traceview.stage:vae_decode"):
            torch.nn.functional.conv2d(q, torch.randn(4, 4, 3, 3))


@dataclass(frozen=True, slots=True)
class Recording:
    """One recording: the program, the profiler's options, what it shows and which facts it must hold."""

    name: str
    program: Callable[[profile], None]
    options: dict[str, Any]
    shows: str
    facts: Callable[[list[dict[str, Any]]], dict[str, Any]]


def named(events: list[dict[str, Any]], name: str) -> int:
    """How many events have that name."""
    return sum(e["name"] == name for e in events)


def attention_facts(events: list[dict[str, Any]]) -> dict[str, Any]:
    """What the attention recording holds."""
    rows = [
        ("sdpa_default", "cpu-flash", "aten::_scaled_dot_product_flash_attention_for_cpu"),
        ("sdpa_math", "math", "aten::_scaled_dot_product_attention_math"),
    ]
    found = [
        {"op": "attention", "implementation": implementation, "provider": "pytorch", "attribution": "attributed",
         "stage": stage, "count": named(events, op)}
        for stage, implementation, op in rows
    ]  # fmt: skip
    ranges = [e for e in events if e["name"] == "by_hand"]
    softmax = [e for e in events if e["name"] == "aten::_softmax" and any(_inside(e, r) for r in ranges)]
    found.append({"op": "attention", "implementation": "unfused", "provider": None, "attribution": "attributed",
                  "stage": "by_hand", "count": len(softmax)})  # fmt: skip
    return {"stages": ["sdpa_default", "sdpa_math", "by_hand"], "dispatches": found}


def recompile_facts(events: list[dict[str, Any]]) -> dict[str, Any]:
    """What the compile recording holds."""
    regions = Counter(e["name"] for e in events if e["name"].startswith("Torch-Compiled Region: "))
    steps = sorted((e for e in events if e["name"].startswith("ProfilerStep#")), key=lambda e: e["ts"])
    compiles = [e for e in events if e["name"].startswith("_compile.compile_inner")]
    per_step = {step["name"]: sum(_inside(e, step) for e in compiles) for step in steps}
    return {
        "stages": ["forward"], "compiled_regions": dict(sorted(regions.items())), "compiles_per_step": per_step,
        "graph_breaks_per_call": 1,
    }  # fmt: skip


def gap_facts(events: list[dict[str, Any]]) -> dict[str, Any]:
    """What the gap recording holds."""
    sleeps = [e for e in events if e["name"] == "load_batch"]
    return {
        "stages": ["load_batch", "forward", "log_loss"], "items": named(events, "aten::item"),
        "sleep_per_step_ns": round(SLEEP_S * 1e9),
        "load_batch_at_least_as_long": all(e["dur"] >= SLEEP_S * 1e6 for e in sleeps),
    }  # fmt: skip


def stage_facts(events: list[dict[str, Any]]) -> dict[str, Any]:
    """What the recording of a pipeline holds."""
    found = [
        {"op": "attention", "implementation": implementation, "provider": "pytorch", "attribution": "attributed",
         "stage": stage, "count": named(events, op)}
        for stage, implementation, op in (
            ("text_encoder", "cpu-flash", "aten::_scaled_dot_product_flash_attention_for_cpu"),
            ("denoise", "math", "aten::_scaled_dot_product_attention_math"),
        )
    ]  # fmt: skip
    return {
        "stages": ["text_encoder", "denoise", "vae_decode"], "dispatches": found,
        "converted_weights_per_step": WEIGHTS, "converted_bytes_per_step": WEIGHTS * WIDTH * WIDTH * 4,
    }  # fmt: skip


def _inside(inner: dict[str, Any], outer: dict[str, Any]) -> bool:
    return bool(outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"])


RECORDINGS: Final = (
    Recording(
        "torch-cpu-attention", attention, {"record_shapes": True},
        "One attention three ways on a CPU: PyTorch's choice (flash), the math path asked for, and written by hand.",
        attention_facts,
    ),
    Recording(
        "torch-cpu-recompiles", recompiles, {"record_shapes": True},
        "torch.compile with a planted graph break, and a planted recompile in step 2 because the batch has a new size.",
        recompile_facts,
    ),
    Recording(
        "torch-cpu-gaps", gaps, {"record_shapes": True, "with_stack": True},
        "A planted sleep of 50 ms and a planted read of one number (`.item()`) in every step.", gap_facts,
    ),
    Recording(
        "torch-cpu-stages", stages, {"record_shapes": True},
        "A pipeline of marked stages (`traceview.stage:denoise`) on a CPU: `text_encoder` got flash attention, "
        "`denoise` the math path that it asked for, and nine weights are converted from bfloat16 in every step.",
        stage_facts,
    ),
)  # fmt: skip


def record(recording: Recording, folder: Path) -> str:
    """Run the program under the profiler; the text of the file that the profiler wrote."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # What else the machine does then shows less in the times.
    path = folder / "trace.json"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Profiler won't be using warmup")  # The first step is the warm-up.
        plan = schedule(wait=0, warmup=0, active=10)
    with profile(activities=[ProfilerActivity.CPU], schedule=plan, **recording.options) as prof:
        prof.add_metadata("torch_version", torch.__version__)
        recording.program(prof)
    prof.export_chrome_trace(str(path))
    return path.read_text(encoding="utf-8")


def scrub(text: str) -> str:
    """Take out host and user name, trace id, and the parts of paths that say where this ran; change nothing else."""
    for key in DROPPED_KEYS:
        text = re.sub(rf'\s*"{key}": "[^"]*",', "", text)
    text = re.sub(r'"traceName": "[^"]*"', '"traceName": "trace.json"', text)
    text = re.sub(r"[^\"\s]*/site-packages/", "", text)
    text = re.sub(r"[^\"\s]*/lib/python3\.\d+/", "", text)
    text = text.replace(f"{HERE}/", "")
    return re.sub(rf"{re.escape(tempfile.gettempdir())}/[^\"\s]*/", "", text)


def name_of(recording: Recording) -> str:
    """File name: compressed where plain text would be too large to bundle."""
    large = ("torch-cpu-recompiles", "torch-cpu-stages")
    return recording.name + (".json.gz" if recording.name in large else ".json")


def truth(recording: Recording, text: str) -> dict[str, Any]:
    """The truth table: facts that the program planted, counted in the file."""
    content = json.loads(text)
    events = [e for e in content["traceEvents"] if e["ph"] == "X" and e["cat"] != "Trace"]
    starts = [e for e in events if e["name"].startswith("ProfilerStep#")]
    return {
        "schema": "traceview.sample-truth/1", "trace": name_of(recording), "authored": False, "shows": recording.shows,
        "recorded_with": {"torch": torch.__version__, "python": platform.python_version(), "system": platform.system()},
        "base_unix_ns": content["baseTimeNanoseconds"], "gpu": None,
        "events": dict(sorted(Counter(e["cat"] for e in events).items())), "launches": 0, "devices": [],
        "steps": [e["name"] for e in sorted(starts, key=lambda e: float(e["ts"]))],
        **recording.facts(events),
    }  # fmt: skip


def note(recording: Recording, table: dict[str, Any]) -> str:
    """The Markdown page of a recording."""
    made = table["recorded_with"]
    answers = {key: value for key, value in table.items() if key not in ("schema", "trace", "shows", "authored")}
    lines = [f"- `{key}`: `{json.dumps(value)}`" for key, value in answers.items()]
    return (
        f"# {recording.name}\n\n**Recorded, not authored.** {recording.shows}\n\n"
        f"Written by `sample_traces/make_torch_cpu.py` with torch {made['torch']} on Python {made['python']} "
        f"({made['system']}, CPU only). No event was taken out. Host name, user name, trace id and the parts of paths "
        "that say where it ran were removed from the text; nothing else was changed.\n\n"
        f"## The right answers\n\nAlso in `{recording.name}.truth.json`, which the tests read. Times differ from "
        "recording to recording; these facts do not.\n\n" + "\n".join(lines) + "\n"
    )


def main(folder: Path, names: Collection[str] = ()) -> None:
    """Record everything into ``folder``, or what is named."""
    for recording in RECORDINGS:
        if names and recording.name not in names:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            text = scrub(record(recording, Path(scratch)))
        table = truth(recording, text)
        path = folder / name_of(recording)
        data = text.encode()
        path.write_bytes(gzip.compress(data, 9, mtime=0) if path.suffix == ".gz" else data)
        (folder / f"{recording.name}.truth.json").write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
        (folder / f"{recording.name}.md").write_text(note(recording, table), encoding="utf-8")
        print(f"{path.stat().st_size:>8}  {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
