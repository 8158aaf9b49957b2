"""The structured compile log of PyTorch (``TORCH_TRACE=folder``), as tlparse reads it: why each frame was compiled.

Each record is one line: a log prefix, then a JSON object. A record that says ``has_payload`` is followed by lines that
begin with a tab. Only what explains a compilation is kept. Format: pytorch ``torch/_logging/_internal.py``
(``trace_structured``) and ``torch/_dynamo/utils.py`` (``CompilationMetrics``), torch 2.13, read 2026-11.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from traceview.errors import TraceviewError
from traceview.name_numbers import read_number

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_BYTES: Final = 4 << 30
"""A log is read line by line and little of it is kept; more than this is no log of one run."""

_LONGEST_LINE: Final = 64 << 20
_LONGEST_TEXT: Final = 2_000
_RECORD: Final = re.compile(r"^[VIWEC]\d{4} [^\]]*\] (?:\[rank(?P<rank>\d+)\]:? ?)?(?P<json>\{.*)$")
_WANTED: Final = ("compilation_metrics", "recompile_reasons", "dynamo_start", "dynamo_output_graph")


class CompileLogError(TraceviewError):
    """A compile log that cannot be read."""


@dataclass(frozen=True, slots=True)
class LoggedCompilation:
    """What the log says of one attempt to compile a frame.

    Attributes:
        compile_id: ``frame/attempt``, as in ``Torch-Compiled Region: 0/1``.
        rank: Rank of the process, if the log says.
        function: Name of the function, with file and line where known.
        reasons: Guards that failed, so that it was compiled again; latest version first.
        failure: Why it could not be compiled, so that it runs uncompiled.
        shapes: Name of each input of the graph to its shape.
        duration_s: Time the compilation took by the log's own clock, s.
    """

    compile_id: str
    rank: int | None = None
    function: str | None = None
    reasons: tuple[str, ...] = ()
    failure: str | None = None
    shapes: dict[str, tuple[int | str, ...]] = field(default_factory=dict)
    duration_s: float | None = None


@dataclass(frozen=True, slots=True)
class CompileLog:
    """A structured compile log.

    Attributes:
        compilations: By rank and compile id, in the order of the log.
        skipped: Lines that look like records and could not be read.
    """

    compilations: tuple[LoggedCompilation, ...]
    skipped: int

    def find(self, compile_id: str, rank: int | None = None) -> LoggedCompilation | None:
        """The compilation of an id, on the given rank or, where the log names no rank, on any."""
        same = [one for one in self.compilations if one.compile_id == compile_id]
        on_rank = [one for one in same if rank is None or one.rank is None or one.rank == rank]
        return on_rank[-1] if on_rank else None

    def function_of(self, compile_id: str) -> str | None:
        """The function of the frame of an id, as another version of it tells: a failure may leave its name out."""
        frame = compile_id.split("/", maxsplit=1)[0]
        same = (one.function for one in self.compilations if one.compile_id.split("/")[0] == frame)
        return next((function for function in same if function), None)


def read_compile_log(path: str | Path) -> CompileLog:
    """Read a log, or every ``*.log`` of a folder.

    Args:
        path: A file or a folder, as ``TORCH_TRACE`` leaves it.

    Raises:
        CompileLogError: nothing there can be read, or no record of a compilation is in it.
    """
    path = Path(path)
    files = sorted(path.glob("*.log")) if path.is_dir() else [path]
    if not files:
        raise CompileLogError(
            "no-compile-log",
            where=str(path),
            why="the folder holds no *.log file.",
            next_step="Give the folder that TORCH_TRACE named, or one of its files.",
        )
    found: dict[tuple[int | None, str], LoggedCompilation] = {}
    skipped = records = 0
    for file in files:
        try:
            if file.stat().st_size > MOST_BYTES:
                raise CompileLogError("compile-log-too-large", where=str(file), why="the file is larger than 4 GiB.")
            with open(file, encoding="utf-8", errors="replace") as lines:
                for record in _records(lines):
                    if record is None:
                        skipped += 1
                        continue
                    records += 1
                    _keep(found, *record)
        except OSError as error:
            raise CompileLogError(
                "compile-log-unreadable", where=str(file), why=f"{error.strerror or error}."
            ) from error
    if not records:
        raise CompileLogError(
            "not-a-compile-log",
            where=str(path),
            why="it holds no record of a compilation.",
            next_step="Run the program with TORCH_TRACE=folder and give that folder.",
        )
    return CompileLog(tuple(found.values()), skipped)


def _records(lines: Any) -> Iterator[tuple[int | None, dict[str, Any], str] | None]:
    """Rank, JSON object and payload of each wanted record; ``None`` for one that cannot be read."""
    rank: int | None = None
    current: dict[str, Any] | None = None
    payload: list[str] = []
    while line := lines.readline(_LONGEST_LINE):
        if line.startswith("\t"):
            if current is not None and sum(map(len, payload)) < _LONGEST_LINE:
                payload.append(line[1:])
            continue
        if current is not None:
            yield rank, current, "".join(payload)
        current, payload = None, []
        found = _RECORD.match(line)
        if not found or not any(word in line for word in _WANTED):
            continue
        try:
            value = json.loads(found["json"])
        except (ValueError, RecursionError):
            yield None
            continue
        if isinstance(value, dict):
            current = value
            stated = value.get("rank", found["rank"])
            rank = read_number(stated if isinstance(stated, str) else json.dumps(stated))
    if current is not None:
        yield rank, current, "".join(payload)


def _keep(
    found: dict[tuple[int | None, str], LoggedCompilation], rank: int | None, record: dict[str, Any], payload: str
) -> None:
    frame, attempt = record.get("frame_id"), record.get("frame_compile_id")
    if not isinstance(frame, int) or not isinstance(attempt, int):
        return
    key = (rank, f"{frame}/{attempt}")
    one = found.get(key) or LoggedCompilation(key[1], rank)
    artifact = record.get("artifact")
    if isinstance(artifact, dict) and artifact.get("name") == "recompile_reasons":
        one = replace(one, reasons=_reasons(payload))
    metrics = record.get("compilation_metrics")
    if isinstance(metrics, dict):
        one = _with_metrics(one, metrics)
    start = record.get("dynamo_start")
    if isinstance(start, dict) and one.function is None:
        one = replace(one, function=_innermost(start.get("stack")))
    graph = record.get("dynamo_output_graph")
    if isinstance(graph, dict) and isinstance(graph.get("sizes"), dict):
        inputs = {str(name): value for name, value in graph["sizes"].items() if str(name).lower().startswith("l_")}
        shapes = {
            name.strip("_")[2:] or name: tuple(size if isinstance(size, int) else str(size) for size in value)
            for name, value in inputs.items()
            if isinstance(value, list)
        }
        one = replace(one, shapes=shapes)
    found[key] = one


def _reasons(payload: str) -> tuple[str, ...]:
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError):
        value = payload
    texts = value if isinstance(value, list) else [value]
    return tuple(_short(text) for text in texts if isinstance(text, str) and text.strip())


def _with_metrics(one: LoggedCompilation, metrics: dict[str, Any]) -> LoggedCompilation:
    function = one.function
    name = metrics.get("co_name")
    if isinstance(name, str):
        file, line = metrics.get("co_filename"), metrics.get("co_firstlineno")
        # The base name alone: the folders of a user are nobody's business.
        place = f" ({Path(file).name}:{line})" if isinstance(file, str) else ""
        function = name + place
    failure = metrics.get("fail_reason")
    seconds = metrics.get("entire_frame_compile_time_s")
    return replace(
        one,
        function=function,
        failure=_short(failure) if isinstance(failure, str) else None,
        duration_s=float(seconds) if isinstance(seconds, int | float) else None,
    )


def _innermost(stack: object) -> str | None:
    if not isinstance(stack, list) or not stack or not isinstance(stack[-1], dict):
        return None
    name = stack[-1].get("name")
    return name if isinstance(name, str) else None


def _short(text: str) -> str:
    """The first line of a text, not too much of it."""
    first = text.strip().splitlines()[0] if text.strip() else ""
    return first[:_LONGEST_TEXT]
