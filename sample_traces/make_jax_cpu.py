"""Record the JAX samples on the CPU and write them with their notes and truth tables. Needs jax."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
SHOWN_FOLDER: Final = "/traceview/sample_traces"
"""Where the recordings say that their programs lie."""

HOST_NAMES: Final = 4
"""Field of an XSpace that holds the names of hosts."""


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A number and the position behind it."""
    value = shift = 0
    while True:
        octet = data[at]
        at += 1
        value |= (octet & 0x7F) << shift
        if octet < 0x80:
            return value, at
        shift += 7


def scrub(data: bytes) -> bytes:
    """The same file without the names of hosts; nothing else is changed."""
    kept = bytearray()
    at = 0
    while at < len(data):
        start = at
        tag, at = read_varint(data, at)
        size, at = read_varint(data, at)
        at += size
        if tag >> 3 != HOST_NAMES:
            kept += data[start:at]
    return bytes(kept)


@dataclass(frozen=True, slots=True)
class Recording:
    """One recording: its program, what it shows, and what the program planted."""

    name: str
    program: str
    shows: str
    planted: dict[str, Any]


RECORDINGS: Final = (
    Recording(
        "jax-cpu-steps",
        "jax_cpu_steps.py",
        "Four steps of a small JAX program on the CPU: attention by hand in a named scope, a recompilation in step 2 "
        "because the batch has a new size, and three weights that come from the host in every step.",
        {
            "steps": [f"infer {n}" for n in range(4)], "recompiled_steps": [2], "transfers_per_step": 3,
            "scopes": ["attention", "mlp"], "module": "jit_model", "programs": 2,
            "attention": {"implementation": "unfused", "provider": "xla", "count": 4, "evidence": "shapes"},
        },
    ),
    Recording(
        "jax-cpu-stages",
        "jax_cpu_stages.py",
        "Seven images of a small JAX pipeline on the CPU, its stages marked (`traceview.stage:denoise`): prompts of "
        "new lengths compile the text encoder again in steps 2 and 5, and eight weights are put on the device in "
        "every step.",
        {
            "steps": [f"image {n}" for n in range(7)], "recompiled_steps": [2, 5], "transfers_per_step": 8,
            "stages": ["text_encoder", "denoise", "vae_decode"], "module": "jit_encode", "programs": 3,
            "attention": {"implementation": "unfused", "provider": "xla", "count": 21, "evidence": "shapes"},
        },
    ),
)  # fmt: skip
"""``programs``: how many programs are recorded under the name ``module``."""


def record(recording: Recording) -> bytes:
    """Run the program in a process of its own, under a made-up path, so that no path of this machine is in the file."""
    shown = f"{SHOWN_FOLDER}/{recording.program}"
    run = f"import sys; exec(compile(open({recording.program!r}).read(), {shown!r}, 'exec'))"
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
        subprocess.run([sys.executable, "-c", run, folder], cwd=HERE, check=True, env=environment)
        (path,) = Path(folder).rglob("*.xplane.pb")
        return path.read_bytes()


def truth(recording: Recording) -> dict[str, Any]:
    """What the program planted."""
    import jax

    return {
        "schema": "traceview.sample-truth/1",
        "trace": f"{recording.name}.xplane.pb",
        "authored": False,
        "shows": recording.shows,
        "recorded_with": {"jax": jax.__version__, "python": platform.python_version(), "system": platform.system()},
        **recording.planted,
    }


def note(recording: Recording, table: dict[str, Any]) -> str:
    """The Markdown page."""
    made = table["recorded_with"]
    rows = "\n".join(f"- `{key}`: `{json.dumps(value)}`" for key, value in recording.planted.items())
    return (
        f"# {recording.name}\n\n**Recorded, not authored.** {table['shows']}\n\n"
        f"Written by `sample_traces/make_jax_cpu.py`, which runs `{recording.program}`, with jax {made['jax']} on "
        f"Python {made['python']} ({made['system']}, CPU only). The names of hosts were taken out; nothing else was "
        f"changed.\n\n## The right answers\n\nAlso in `{recording.name}.truth.json`, which the tests read. Times "
        f"differ from recording to recording; these facts do not.\n\n{rows}\n"
    )


def main(folder: Path) -> None:
    """Record everything into ``folder``."""
    for recording in RECORDINGS:
        table = truth(recording)
        path = folder / f"{recording.name}.xplane.pb"
        path.write_bytes(scrub(record(recording)))
        (folder / f"{recording.name}.truth.json").write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
        (folder / f"{recording.name}.md").write_text(note(recording, table), encoding="utf-8")
        print(f"{path.stat().st_size:>8}  {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "xprof")
