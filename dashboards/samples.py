"""The traces that come with traceview, to try the app on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple


class Sample(NamedTuple):
    """One sample.

    Attributes:
        files: Paths below the folder of samples; several are the ranks of one run.
        title: What it shows.
        kind: Whether it was recorded, or authored by a program with chosen times.
    """

    files: tuple[str, ...]
    title: str
    kind: str


SAMPLES: Final = (
    Sample(
        ("flash-requested-math-ran.cuda-authored.json.gz",),
        "PyTorch on an H100: flash attention was asked for, math ran",
        "authored",
    ),
    Sample(
        ("xprof/jax-tpu-unfused.xprof-authored.xplane.pb",),
        "JAX on a TPU: unfused attention, waits for copies",
        "authored",
    ),
    Sample(("two-ranks.nsys-authored.sqlite",), "Nsight Systems, two GPUs: NVTX sizes say why math ran", "authored"),
    Sample(("gaps-and-copies.cuda-authored.json",), "Gaps: the data loader and Python keep a GPU waiting", "authored"),
    Sample(("compiled.cuda-authored.json",), "torch.compile: a recompilation in the second step", "authored"),
    Sample(
        ("two-ranks/rank0.cuda-authored.json", "two-ranks/rank1.cuda-authored.json"),
        "Two ranks of one run, one of them late",
        "authored",
    ),
    Sample(("torch-cpu-gaps.json",), "PyTorch on a CPU: a sleep and a read in every step", "recorded"),
    Sample(("xprof/jax-cpu-steps.xplane.pb",), "JAX on a CPU: a recompilation for a new size", "recorded"),
)
"""The samples, in the order in which they are offered."""


KINDS: Final = {
    "authored": "Authored: written by a program, with chosen times. They show what traceview says, not how fast "
    "anything is.",
    "recorded": "Recorded: real recordings, made on a CPU.",
}
"""What each kind of sample is."""


def sample_folder() -> Path | None:
    """Where the samples lie: in the installed package, or in the checkout; ``None`` if they are in neither."""
    here = Path(__file__).resolve().parent
    for folder in (here / "samples", here.parent / "sample_traces"):
        if (folder / SAMPLES[0].files[0]).is_file():
            return folder
    return None


def sample_paths(sample: Sample, folder: Path) -> list[str]:
    """The files of a sample."""
    return [os.path.join(folder, *file.split("/")) for file in sample.files]
