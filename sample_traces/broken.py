"""Broken twins: one small file for each way in which real traces arrive malformed, and what must come of it.

Every file is the healthy trace (``healthy.json``) with one change, or an authored stand-in for a file that is no
trace. ``expected.json`` says for each what a reader must keep: every event that is intact, with a count of what
was repaired or lost; or a refusal with a stable code; and the exit code of ``traceview report``. The binary formats
are in :mod:`sample_traces.broken_binary`.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from sample_traces import kernel_names as k
from sample_traces.authoring import A100, Tensor, Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

EVENTS: Final = 17
"""Rows of the healthy file that are events: 15 of phase X, 2 instants."""
WORK: Final = 3
"""Of these, device work: two kernels and a copy."""

OPEN: Final = '"traceEvents": [\n'
CLOSE: Final = "\n  ],\n"
FRAME: Final = '"name": "model.py(12): forward"'


def healthy() -> str:
    """The trace that the broken files are made from."""
    trace = Trace(gpu=A100, note="The healthy twin of the broken files.")
    main = trace.thread()
    x = Tensor(64, 64)
    with main.step(0), main.range("forward"), main.python("model.py(12): forward"):
        with main.op("aten::mm", x, x):
            main.launch(k.GEMM_F32_SIMT_A100, us=12.5)
        with main.op("aten::add", x, x, 1):
            main.launch(k.ADD_F32, us=2.25)
        with main.op("aten::copy_", x, x, False):
            main.memcpy("DtoH", 16384, us=3.75)
        main.sync()
    return trace.text()


@dataclass(frozen=True, slots=True)
class Case:
    """One broken file: how it comes about, and the outcome.

    Attributes:
        file: Its name.
        what: What is wrong with it, one sentence.
        make: The file's bytes from the healthy text.
        events: Event rows that must be kept; ``None`` if the file must be refused.
        work: Of these, device work.
        counts: What the import must count, by kind.
        truncated: Whether the import must say that the file is cut; ``None`` leaves it free.
        doubted: Whether the trust grade must not be "good".
        notes: Kinds of note that the import or the linking of launches must leave.
        code: Code of the refusal.
        says: A part of the one line that a refusal prints.
    """

    file: str
    what: str
    make: Callable[[str], str | bytes]
    events: int | None = EVENTS
    work: int = WORK
    counts: dict[str, int] = field(default_factory=dict)
    truncated: bool | None = False
    doubted: bool = False
    notes: tuple[str, ...] = ()
    code: str = ""
    says: str = ""

    def expected(self) -> dict[str, Any]:
        """The entry of ``expected.json``."""
        if self.events is None:
            says = {"says": self.says} if self.says else {}
            return {"what": self.what, "outcome": "refused", "exit": 2, "code": self.code, **says}
        return {
            "what": self.what, "outcome": "loads", "exit": 0, "events": self.events, "device_work": self.work,
            "counts": self.counts, "truncated": self.truncated, "doubted": self.doubted, "notes": list(self.notes),
        }  # fmt: skip


def swap(old: str, new: str) -> Callable[[str], str]:
    """Replace the one occurrence of ``old``."""

    def edit(text: str) -> str:
        if text.count(old) != 1:
            raise ValueError(f"{old!r} occurs {text.count(old)} times")
        return text.replace(old, new)

    return edit


def events(text: str) -> tuple[str, list[str], str]:
    """Head, the text of each event, tail."""
    start, end = text.index(OPEN) + len(OPEN), text.index(CLOSE)
    return text[:start], text[start:end].removeprefix("  {").split(",\n  {"), text[end:]


def joined(head: str, parts: list[str], tail: str) -> str:
    """The inverse of :func:`events`."""
    return head + ",\n".join("  {" + part for part in parts) + tail


def without(*marks: str) -> Callable[[str], str]:
    """Leave out every event that holds one of ``marks``."""

    def edit(text: str) -> str:
        head, parts, tail = events(text)
        return joined(head, [part for part in parts if not any(mark in part for mark in marks)], tail)

    return edit


def after(event: str, *more: str) -> Callable[[str], str]:
    """Put further events behind the one that holds ``event``."""

    def edit(text: str) -> str:
        head, parts, tail = events(text)
        at = next(i for i, part in enumerate(parts) if event in part) + 1
        return joined(head, [*parts[:at], *(one.strip()[1:] for one in more), *parts[at:]], tail)

    return edit


def cut_in(event: str, *, plus: int) -> Callable[[str], str]:
    """End the file ``plus`` characters after the first occurrence of ``event``."""
    return lambda text: text[: text.index(event) + plus]


def cut_gzip(text: str) -> bytes:
    """A gzip stream that ends early. Blocks are stored, so that it is the same with every zlib."""
    data = text[: text.index(f'"{k.ADD_F32}"')].encode()
    out = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"
    for at in range(0, len(data), 1024):
        block = data[at : at + 1024]
        out += b"\x00" + struct.pack("<HH", len(block), len(block) ^ 0xFFFF) + block
    return out


def whole_gzip_with_bad_checksum(text: str) -> bytes:
    """A complete gzip stream whose checksum is wrong."""
    data = text.encode()
    block = b"\x01" + struct.pack("<HH", len(data), len(data) ^ 0xFFFF) + data
    tail = struct.pack("<II", zlib.crc32(data) ^ 1, len(data))
    return b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff" + block + tail


def bare_list(text: str) -> str:
    """Only the array of events, without its end."""
    return joined("[\n", events(text)[1], "")


def bare_words(text: str) -> str:
    """Three numbers that C++ printed as no number."""
    text = swap('"memory bandwidth (GB/s)": 4.369066666666667', '"memory bandwidth (GB/s)": inf')(text)
    text = swap('"bytes": 16384', '"bytes": N/A')(text)
    return text.replace('"warps per SM": 4.888889', '"warps per SM": nan', 1)


def compact(text: str) -> str:
    """The same trace in one line, as other tools write it back."""
    return json.dumps(json.loads(text), separators=(",", ":"))


EXTRA_KERNEL: Final = (
    '{\n    "ph": "X", "cat": "kernel", "name": "stray_kernel", "pid": 0, "tid": 7,\n    "ts": %s, "dur": %s,\n'
    '    "args": {\n      "device": 0, "context": 1, "stream": 7, "correlation": %d\n    }\n  }'
)
ASCEND: Final = [
    {"name": "process_name", "pid": 960, "tid": 0, "ph": "M", "args": {"name": "Ascend Hardware"}},
    {
        "name": "aclnnMatMul_MatMulCommon_MatMulV2", "ph": "X", "pid": 960, "tid": 2,
        "ts": "1700000000123456.780", "dur": 41.32,
        "args": {"Model Id": 4294967295, "Task Type": "AI_CORE", "Stream Id": 2, "Task Id": 7},
    },
]  # fmt: skip
EXECUTION_TRACE: Final = {
    "schema": "1.1.1-chakra.0.0.4", "pid": 4242, "time": "2026-01-01 00:00:00", "start_ts": 5000000000,
    "nodes": [{
        "id": 2, "name": "[pytorch|profiler|execution_trace|process]", "ctrl_deps": 1,
        "inputs": {"values": [], "shapes": [], "types": []}, "outputs": {"values": [], "shapes": [], "types": []},
        "attrs": [{"name": "rf_id", "type": "uint64", "value": 1},
                  {"name": "op_schema", "type": "string", "value": ""}],
    }],
}  # fmt: skip

CASES: Final = (
    Case("healthy.json", "Nothing is wrong with it.", lambda text: text),
    Case("one-line.json", "All of it in one line, as a JSON library writes it back.", compact),
    Case(
        "cut-in-event.json",
        "The file ends in the middle of its second kernel.",
        cut_in(f'"{k.ADD_F32}"', plus=90),
        8,
        1,
        {"lost-cut": 1},
        truncated=True,
    ),
    Case(
        "cut-between-events.json",
        "The file ends after a comma between two events.",
        lambda text: joined(events(text)[0], events(text)[1][:8], ","),
        7,
        1,
        truncated=True,
    ),
    Case(
        "cut.json.gz",
        "The gzip stream ends early, in the middle of an event.",
        cut_gzip,
        8,
        1,
        {"lost-cut": 1},
        truncated=True,
    ),
    Case(
        "bad-checksum.json.gz",
        "The gzip stream is complete, its checksum is wrong.",
        whole_gzip_with_bad_checksum,
        truncated=None,
        doubted=True,
    ),
    Case(
        "bad-utf8.json",
        "A name holds bytes that are not UTF-8.",
        lambda text: text.encode().replace(FRAME.encode(), b'"name": "m\xff\xfedel.py(12): forward"'),
        counts={"repaired-utf8": 2},
    ),
    Case(
        "backslashes.json",
        "A name holds the single backslashes of a Windows path, some of which look like escapes.",
        swap(FRAME, r'"name": "C:\torch\nn\backends\utils\__init__.py(12): forward"'),
        counts={"repaired-backslash": 1},
    ),
    Case(
        "unescaped-quotes.json",
        "A name holds quotes that are not escaped.",
        swap(FRAME, '"name": "{"device": "cpu", "dtype": "float32"}(12): run"'),
        counts={"repaired-quote": 1},
    ),
    Case(
        "bare-words.json",
        "Values are inf, nan and N/A.",
        bare_words,
        counts={"repaired-word": 3},
    ),
    Case(
        "control-characters.json",
        "A name holds a raw tab, a raw line break and a raw \\x01.",
        swap(FRAME, '"name": "model.py(12):\tfor\nward\x01"'),
    ),
    Case(
        "lone-surrogate.json",
        "A name holds half of a surrogate pair.",
        swap(FRAME, r'"name": "model.py(12): \ud83d forward"'),
        counts={"repaired-surrogate": 1},
    ),
    Case(
        "trailing-commas.json",
        "A comma too many at the end of an object, and of the list of events.",
        lambda text: swap('"Ev Idx": 2\n', '"Ev Idx": 2,\n')(text).replace(CLOSE, "," + CLOSE),
        counts={"repaired-comma": 2},
    ),
    Case("list-without-end.json", "Only the list of events, and its bracket is missing.", bare_list, truncated=True),
    Case(
        "byte-order-mark.json", "The file begins with a byte order mark.", lambda text: b"\xef\xbb\xbf" + text.encode()
    ),
    Case(
        "big-integer.json",
        "An argument does not fit into 64 bits with a sign; its digits must survive.",
        swap('"cbid": 131', '"cbid": 131, "Comms Id": 18446744073709551615'),
    ),
    Case(
        "times-in-quotes.json",
        "ts and dur of one event are strings.",
        swap('"ts": 5000000000130.608, "dur": 7.209', '"ts": "5000000000130.608", "dur": "7.209"'),
        counts={"repaired-time-in-quotes": 2},
    ),
    Case(
        "time-zero.json",
        "A kernel has ts 0 and dur 0: it must not stretch the trace to decades.",
        after("ampere_sgemm", EXTRA_KERNEL % ("0", "0", 105)),
        counts={"lost-time-zero": 1},
    ),
    Case(
        "negative-duration.json",
        "A kernel has dur -1.",
        after("ampere_sgemm", EXTRA_KERNEL % ("5000000000160.000", "-1", 105)),
        counts={"lost-negative-duration": 1},
    ),
    Case(
        "no-launches.json",
        "Device work without the calls that launched it.",
        without('"cat": "cuda_runtime"', '"cat": "ac2g"'),
        EVENTS - 4,
        notes=("work-without-launch",),
    ),
    Case(
        "no-work.json",
        "Launches whose device work is missing.",
        without('"cat": "kernel"', '"cat": "gpu_memcpy"', '"cat": "gpu_user_annotation"', '"bp": "e"'),
        EVENTS - 4,
        0,
        notes=("launch-without-work",),
    ),
    Case(
        "repeated-correlation.json",
        "Two launches and their kernels share one correlation.",
        lambda text: text.replace('"correlation": 102', '"correlation": 101').replace('"id": 102', '"id": 101'),
        counts={"correlation-reused": 1},
    ),
    Case(
        "only-metadata.json",
        "Process and thread names, and no event.",
        without('"ph": "X"', '"ph": "i"', '"cat": "ac2g"'),
        0,
        0,
        notes=("no-events",),
    ),
    Case(
        "two-in-one.json",
        "Two complete traces written into one file: their clocks can differ, so the events of the second are counted.",
        lambda text: text + text,
        counts={"lost-trailing": 35},
    ),
    Case("empty.json", "Zero bytes.", lambda _: "", None, code="empty-file"),
    Case(
        "text.json",
        "A text that was saved under the name of a trace.",
        lambda _: "Connection refused\n",
        None,
        code="text",
    ),
    Case("half-an-object.json", "An opening brace, and nothing more.", lambda _: "{", None, code="json-without-events"),
    Case(
        "execution-trace.authored.json",
        "A PyTorch execution trace: operators without times.",
        lambda _: json.dumps(EXECUTION_TRACE, indent=1),
        None,
        code="execution-trace",
    ),
    Case(
        "ascend.authored.json",
        "A trace of the Ascend profiler: a list, times in quotes.",
        lambda _: json.dumps(ASCEND),
        None,
        code="ascend",
    ),
    Case(
        "nsys.authored.nsys-rep",
        "The header of a raw Nsight Systems report.",
        lambda _: b"NVIDIA Tegra Profiler Report 2025@3@1@90-253135822126v0.\x00\x08\x96\x01\x12\x07\x00\x01\x02",
        None,
        code="nsys-report",
    ),
)


def build(folder: Path, more: Iterable[Case] = ()) -> list[Path]:
    """Write every case, those given too, and ``expected.json`` into ``folder``; return what was written."""
    folder.mkdir(parents=True, exist_ok=True)
    text = healthy()
    written = []
    for case in (*CASES, *more):
        data = case.make(text)
        path = folder / case.file
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        written.append(path)
    table = {case.file: case.expected() for case in (*CASES, *more)}
    path = folder / "expected.json"
    path.write_bytes(json.dumps(table, indent=1).encode() + b"\n")
    return [*written, path]
