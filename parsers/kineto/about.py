"""What a Kineto file says about itself: devices, producer, conditions, records the profiler dropped."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from traceview import schema
from traceview.capture_info import KEY, read_document
from traceview.name_numbers import read_number
from traceview.timeline import Note, RunInfo, Trust

if TYPE_CHECKING:
    from pathlib import Path

SAFE_KEYS: Final = (
    "schemaVersion", "displayTimeUnit", "record_shapes", "with_stack", "with_modules", "with_flops",
    "profile_memory", "cupti_version", "cuda_runtime_version", "cuda_driver_version", "roctracer_version",
    "rocprofiler-sdk_version", "hip_runtime_version", "hip_driver_version", "torch_version", "pytorch_version",
    "cudnn_version",
)  # fmt: skip
"""Top-level keys that describe conditions. Everything else (host, user, job, environment) is never taken."""

_DROPPED: Final = re.compile(
    r"Record counts: Out-of-range = (?P<out>[0-9]+), .*?CUPTI stopped early\? = (?P<stopped>[0-9]+)"
)
_MOST_ORDINAL: Final = 1 << 16
"""No computer has more devices; a larger number is damage."""

_BUFFER_FULL: Final = re.compile(r"dropped|buffer (is )?full|ran out of", re.IGNORECASE)


def run_info(head: Mapping[str, Any], path: Path, *, origin_unix_ns: int | None) -> RunInfo:
    """The file as a :class:`RunInfo`."""
    distributed = head.get("distributedInfo")
    distributed = distributed if isinstance(distributed, Mapping) else {}
    metadata = {key: head[key] for key in SAFE_KEYS if _is_plain(head.get(key))}
    backend = distributed.get("backend")
    if isinstance(backend, str):
        metadata["distributed_backend"] = backend
    capture = read_document(head[KEY]).info if KEY in head else None
    if capture is not None:
        metadata["capture"] = capture.document()
    captured = capture.versions.get("torch") if capture is not None else None
    torch = metadata.get("torch_version", metadata.get("pytorch_version", captured))
    return RunInfo(
        path=path,
        format="kineto",
        producer="PyTorch profiler (Kineto)",
        producer_version=str(torch) if torch is not None else None,
        origin_unix_ns=origin_unix_ns,
        rank=whole_number(distributed.get("rank")),
        world_size=whole_number(distributed.get("world_size")),
        metadata=metadata,
    )


def devices(head: Mapping[str, Any], ordinals: tuple[int, ...], *, run: int) -> pl.DataFrame:
    """:data:`traceview.schema.DEVICES`: the devices with events, by the key order of ``ordinals``.

    A file without any event of a device describes what was there all the same: then those that it lists.
    """
    listed = head.get("deviceProperties")
    properties: dict[int, Mapping[str, Any]] = {}
    for entry in listed if isinstance(listed, list) else []:
        if isinstance(entry, Mapping) and isinstance(entry.get("id"), int):
            properties[entry["id"]] = entry
    rocm = any(key.startswith(("hip_", "roc")) for key in head)
    rows = []
    for key, ordinal in enumerate(ordinals or sorted(one for one in properties if 0 <= one <= _MOST_ORDINAL)):
        entry = properties.get(ordinal, {})
        name = entry.get("name") if isinstance(entry.get("name"), str) else None
        rows.append(
            {
                "device": key,
                "run": run,
                "ordinal": ordinal,
                "name": name or None,
                "vendor": _vendor(name or "", rocm=rocm, cuda="cupti_version" in head or "computeMajor" in entry),
                "compute_major": whole_number(entry.get("computeMajor")),
                "compute_minor": whole_number(entry.get("computeMinor")),
                "memory_bytes": whole_number(entry.get("totalGlobalMem")),
                "sm_count": whole_number(entry.get("numSms")),
            }
        )
    return pl.DataFrame(rows, schema=schema.DEVICES.dtypes)


def notes(head: Mapping[str, Any]) -> list[Note]:
    """What the profiler logged about its own losses."""
    found = []
    for line in _log_lines(head.get("INFO")):
        match = _DROPPED.search(line)
        out = read_number(match["out"]) if match else None
        if out:
            found.append(
                Note(
                    "profiler-out-of-range",
                    f"The profiler left out {out:,} device records that lay outside its window.",
                )
            )
        if match and match["stopped"].strip("0"):
            found.append(Note("profiler-stopped-early", "CUPTI stopped before the window closed.", Trust.LIMITED))
    problem = read_document(head[KEY]).problem if KEY in head else ""
    if problem:
        found.append(Note("capture-unreadable", f"What traceview.capture wrote into the trace: {problem}."))
    errors = _log_lines(head.get("ERROR")) + _log_lines(head.get("WARNING"))
    dropped = [line for line in errors if _BUFFER_FULL.search(line)]
    if dropped:
        found.append(
            Note(
                "profiler-dropped-records",
                f"The profiler reports dropped records ({len(dropped)} messages).",
                Trust.LIMITED,
            )
        )
    return found


def _log_lines(value: object) -> list[str]:
    return [line for line in value if isinstance(line, str)] if isinstance(value, list) else []


def _is_plain(value: object) -> bool:
    return isinstance(value, int | float) or (isinstance(value, str) and len(value) < 80)


def whole_number(value: object) -> int | None:
    """A JSON value as an integer that fits a column, ``None`` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if -(2**31) <= value < 2**63 else None


def _vendor(name: str, *, rocm: bool, cuda: bool) -> str | None:
    lowered = name.lower()
    for marker, vendor in (
        ("nvidia", "nvidia"), ("tesla", "nvidia"), ("geforce", "nvidia"), ("quadro", "nvidia"),
        ("amd", "amd"), ("radeon", "amd"), ("instinct", "amd"),
        ("intel", "intel"), ("artemis", "meta"), ("mtia", "meta"), ("gaudi", "intel"), ("tpu", "google"),
    ):  # fmt: skip
        if marker in lowered:
            return vendor
    if rocm:
        return "amd"
    return "nvidia" if cuda else None
