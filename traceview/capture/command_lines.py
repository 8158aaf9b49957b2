"""Command lines: which interpreter runs which program, and how Nsight Systems is asked to record one."""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import dataclass
from typing import Final

from traceview.errors import UsageError

_PYTHON: Final = re.compile(r"(python|pypy)(\d+(\.\d+)*)?(\.exe)?", re.IGNORECASE)
_WITH_VALUE: Final = ("-X", "-W", "--check-hash-based-pycs")
"""Options of the interpreter whose value is a word of its own."""


@dataclass(frozen=True, slots=True)
class PythonProgram:
    """A Python command line, taken apart.

    Attributes:
        interpreter: Path of the interpreter.
        options: Its own options.
        target: Script or module.
        module: ``target`` is a module.
        arguments: Those of the program.
    """

    interpreter: str
    options: tuple[str, ...]
    target: str
    module: bool
    arguments: tuple[str, ...]

    @property
    def name(self) -> str:
        """What to call it: no folder and no argument."""
        return self.target if self.module else os.path.basename(self.target)


def python_program(words: list[str]) -> PythonProgram:
    """Take a command line apart.

    Args:
        words: ``["python", "train.py", …]``, ``["python", "-m", "train", …]`` or ``["train.py", …]``.

    Raises:
        UsageError: it runs no Python script or module, or there is none of that name.
    """
    first, rest = words[0], words[1:]
    if first.endswith(".py"):
        interpreter, rest = sys.executable, words
    elif _PYTHON.fullmatch(os.path.basename(first)):
        found = shutil.which(first)
        if found is None:
            raise UsageError("no-python", where=first, why="there is no such program.")
        interpreter = found
    else:
        raise UsageError(
            "not-python",
            where=first,
            why="is no Python interpreter and no script, so no profiler can be started in it.",
            next_step="Give the Python command behind it: -- python script.py …, or -- python -m module ….",
        )
    options: list[str] = []
    while rest and rest[0].startswith("-") and rest[0] not in {"-m", "-c", "-"}:
        count = 2 if rest[0] in _WITH_VALUE else 1
        options += rest[:count]
        rest = rest[count:]
    module = bool(rest) and rest[0] == "-m"
    rest = rest[1:] if module else rest
    if not rest or rest[0] in {"-c", "-"}:
        raise UsageError(
            "no-program",
            why="there is no script or module to run.",
            next_step="Write -- python script.py …, or -- python -m module ….",
        )
    if not module and not os.path.exists(rest[0]):
        raise UsageError("no-script", where=rest[0], why="there is no such file.")
    return PythonProgram(interpreter, tuple(options), rest[0], module, tuple(rest[1:]))


NSYS_SUFFIX: Final = ".nsys-rep"


def nsys_command(
    program: list[str],
    *,
    out: str,
    graph_nodes: bool = False,
    capture_range: str | None = None,
    delay: float = 0.0,
    duration: float | None = None,
    stacks: bool = False,
) -> list[str]:
    """The command line with which Nsight Systems records a program so that every analysis has what it needs.

    Args:
        program: The program and its arguments.
        out: The report; the suffix ``.nsys-rep`` may be left out.
        graph_nodes: Record each kernel of a CUDA graph, not only the graph. Costs time in every launch.
        capture_range: Record only between ``cudaProfilerStart`` and ``cudaProfilerStop`` (``"cuda"``), or inside the
            NVTX ranges of this name (``"nvtx:NAME"``).
        delay: Seconds to wait before recording.
        duration: Seconds to record.
        stacks: Record Python call stacks.

    Raises:
        UsageError: ``capture_range`` is neither.
    """
    words = [
        "nsys", "profile", "--trace=cuda,nvtx,osrt,cudnn,cublas", "--sample=none", "--cpuctxsw=none",
        f"--output={out.removesuffix(NSYS_SUFFIX)}", "--force-overwrite=true",
        f"--cuda-graph-trace={'node' if graph_nodes else 'graph'}",
    ]  # fmt: skip
    if capture_range == "cuda":
        words += ["--capture-range=cudaProfilerApi", "--capture-range-end=stop"]
    elif capture_range is not None and capture_range.startswith("nvtx:") and capture_range != "nvtx:":
        # The range is found by its text, which programs do not register.
        name = capture_range.removeprefix("nvtx:")
        words += [
            "--capture-range=nvtx", "--capture-range-end=stop", f"--nvtx-capture={name}",
            "--env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0",
        ]  # fmt: skip
    elif capture_range is not None:
        raise UsageError(
            "bad-capture-range",
            where=f"--capture-range {capture_range}",
            why="is neither cuda nor nvtx:NAME.",
            next_step="Give cuda for cudaProfilerStart and cudaProfilerStop, or the name of an NVTX range.",
        )
    if delay:
        words.append(f"--delay={delay:g}")
    if duration is not None:
        words.append(f"--duration={duration:g}")
    if stacks:
        words += ["--python-backtrace=cuda"]
    return [*words, *program]
