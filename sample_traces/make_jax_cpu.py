"""Record the JAX sample on the CPU and write it with its note and truth table. Needs jax."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
NAME: Final = "jax-cpu-steps"
SHOWN_PATH: Final = "/traceview/sample_traces/jax_cpu_steps.py"
"""Where the recording says that its program lies."""

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


def record() -> bytes:
    """Run the program in a process of its own, under a made-up path, so that no path of this machine is in the file."""
    run = f"import sys; exec(compile(open('jax_cpu_steps.py').read(), {SHOWN_PATH!r}, 'exec'))"
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
        subprocess.run([sys.executable, "-c", run, folder], cwd=HERE, check=True, env=environment)
        (path,) = Path(folder).rglob("*.xplane.pb")
        return path.read_bytes()


def truth() -> dict[str, Any]:
    """What the program planted."""
    import jax

    return {
        "schema": "traceview.sample-truth/1",
        "trace": f"{NAME}.xplane.pb",
        "authored": False,
        "shows": "Four steps of a small JAX program on the CPU: attention by hand in a named scope, a recompilation in "
        "step 2 because the batch has a new size, and three weights that come from the host in every step.",
        "recorded_with": {"jax": jax.__version__, "python": platform.python_version(), "system": platform.system()},
        "steps": [f"infer {n}" for n in range(4)],
        "recompiled_steps": [2],
        "transfers_per_step": 3,
        "scopes": ["attention", "mlp"],
        "module": "jit_model",
        "programs": 2,
        "attention": {"implementation": "unfused", "provider": "xla", "count": 4, "evidence": "shapes"},
    }


def note(table: dict[str, Any]) -> str:
    """The Markdown page."""
    made = table["recorded_with"]
    return (
        f"# {NAME}\n\n**Recorded, not authored.** {table['shows']}\n\n"
        f"Written by `sample_traces/make_jax_cpu.py`, which runs `jax_cpu_steps.py`, with jax {made['jax']} on Python "
        f"{made['python']} ({made['system']}, CPU only). The names of hosts were taken out; nothing else was changed. "
        f"Times differ from recording to recording; the facts in `{NAME}.truth.json` do not.\n"
    )


def main(folder: Path) -> None:
    """Record into ``folder``."""
    table = truth()
    path = folder / f"{NAME}.xplane.pb"
    path.write_bytes(scrub(record()))
    (folder / f"{NAME}.truth.json").write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    (folder / f"{NAME}.md").write_text(note(table), encoding="utf-8")
    print(f"{path.stat().st_size:>8}  {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "xprof")
