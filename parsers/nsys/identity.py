"""Whose event is it: processes, threads and devices from packed ids.

``globalTid`` packs machine (bits 48 to 63), process (24 to 47) and thread (0 to 23); ``globalPid`` is the same with the
thread bits zero. Nsight Systems documentation, "SQLite schema", read 2026-11. ``deviceId`` is the CUDA ordinal inside
its process: with one visible GPU per rank it is 0 everywhere, so a device is found through the process.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from traceview import schema
from traceview.building import NO_KEY, key_series
from traceview.parsers.nsys.names import distinct_of
from traceview.timeline import Note, Trust

if TYPE_CHECKING:
    from traceview.parsers.nsys.names import Names
    from traceview.parsers.nsys.tables import Tables

_TID_BITS: Final = 24
_MPI_RANK: Final = re.compile(r"^MPI Rank (\d{1,7})$")


def pid_of(packed: int) -> int:
    """Process id in a packed id; ids of system threads are negative, hence the bits and not a division."""
    return (packed >> _TID_BITS) & 0xFFFFFF


def tid_of(packed: int) -> int:
    """Thread id in a packed id."""
    return packed & 0xFFFFFF


def process_part(packed: pl.Series) -> pl.Series:
    """``globalPid`` of each ``globalTid``."""
    bits = packed.fill_null(0).to_numpy() & ~np.int64(0xFFFFFF)
    column = pl.Series(packed.name, bits)
    return column.set(packed.is_null(), None) if packed.null_count() else column


@dataclass(slots=True)
class Owners:
    """Keys are given out as rows ask for them; afterwards ``frames`` describes what was asked for.

    Args:
        gpus: What the export says of GPUs.
    """

    gpus: Gpus
    _processes: dict[int, int] = field(default_factory=dict)
    _threads: dict[int, int] = field(default_factory=dict)
    _devices: dict[tuple[Any, ...], int] = field(default_factory=dict)
    _device_facts: list[dict[str, Any]] = field(default_factory=list)
    _ordinals: dict[int, set[int]] = field(default_factory=dict)

    def processes_of(self, global_pid: pl.Series) -> pl.Series:
        """Process key of each row; null where no process is recorded."""
        return _keyed(global_pid, self.process)

    def threads_of(self, global_tid: pl.Series) -> pl.Series:
        """Thread key of each row."""
        return _keyed(global_tid, self.thread)

    def process(self, global_pid: int) -> int:
        """Key of a process."""
        return self._processes.setdefault(global_pid, len(self._processes))

    def thread(self, global_tid: int) -> int:
        """Key of a thread, and its process gets one."""
        self.process(global_tid & ~0xFFFFFF)
        return self._threads.setdefault(global_tid, len(self._threads))

    def devices_of(self, global_pid: pl.Series, ordinal: pl.Series) -> pl.Series:
        """Device key of each row, from its process and the ordinal inside it; null without an ordinal."""
        pids, pid_at = distinct_of(global_pid)
        ordinals, ordinal_at = distinct_of(ordinal)
        width = len(ordinals) + 1
        pairs = pid_at.astype(np.int64) * width + ordinal_at
        seen, place = distinct_of(pl.Series(pairs))
        keys = np.full(len(seen) + 1, NO_KEY, np.uint32)
        for at, pair in enumerate(seen):
            pid_index, ordinal_index = divmod(pair, width)
            if ordinal_index < len(ordinals):
                pid = pids[pid_index] if pid_index < len(pids) else None
                keys[at] = self.device(pid, ordinals[ordinal_index])
                if pid is not None:
                    self._ordinals.setdefault(pid, set()).add(ordinals[ordinal_index])
        return key_series(keys[place])

    def device(self, global_pid: int | None, ordinal: int) -> int:
        """Key of a device as one process numbers it."""
        identity, facts = self.gpus.find(None if global_pid is None else pid_of(global_pid), ordinal)
        if identity not in self._devices:
            self._devices[identity] = len(self._devices)
            self._device_facts.append(facts)
        return self._devices[identity]

    def ordinals_by_process(self) -> dict[int, set[int]]:
        """The ordinals that each process has used so far."""
        return self._ordinals

    def add_idle_devices(self) -> None:
        """Describe the GPUs of a recording in which none did anything."""
        if not self._device_facts:
            for identity, facts in self.gpus.all():
                self._devices[identity] = len(self._devices)
                self._device_facts.append(facts)

    def frames(self, tables: Tables, names: Names, thread_names: dict[int, str], run: int) -> dict[str, pl.DataFrame]:
        """``processes``, ``threads`` and ``devices`` as :mod:`traceview.schema` has them."""
        listed = tables.read("PROCESSES", ("globalPid", "pid"), ("name",))
        facts = {pid: (number, name) for pid, number, name in listed.iter_rows() if pid in self._processes}
        ranks = {**_ranks(thread_names), **_mpi_ranks(tables)}
        processes = [
            {
                "process": key,
                "run": run,
                "pid": facts.get(pid, (None, None))[0] or pid_of(pid),
                # A path can hold the name of a user.
                "name": program_name(facts.get(pid, (None, None))[1]),
                "rank": ranks.get(pid),
            }
            for pid, key in self._processes.items()
        ]
        named = tables.read("ThreadNames", ("globalTid", "nameId"))
        by_thread = {tid: names.text(name_id) for tid, name_id in named.iter_rows() if tid in self._threads}
        threads = [
            {
                "thread": key,
                "process": self._processes[tid & ~0xFFFFFF],
                "tid": tid_of(tid),
                "name": thread_names.get(tid) or by_thread.get(tid),
            }
            for tid, key in self._threads.items()
        ]
        devices = [{"device": key, "run": run, **facts} for key, facts in enumerate(self._device_facts)]
        return {
            "processes": pl.DataFrame(processes, schema=schema.PROCESSES.dtypes),
            "threads": pl.DataFrame(threads, schema=schema.THREADS.dtypes),
            "devices": pl.DataFrame(devices, schema=schema.DEVICES.dtypes),
        }


def program_name(name: str | None) -> str | None:
    """The last part of the path of a program."""
    return re.split(r"[/\\]", name)[-1] or None if name else None


def _ranks(thread_names: dict[int, str]) -> dict[int, int]:
    """Process to its MPI rank, where the MPI trace named its main thread so."""
    found = {tid & ~0xFFFFFF: match[1] for tid, name in thread_names.items() if (match := _MPI_RANK.match(name))}
    return {pid: int(rank) for pid, rank in found.items()}


def _mpi_ranks(tables: Tables) -> dict[int, int]:
    """Process to its MPI rank, from the table of ranks, where it names one."""
    found: dict[int, set[int]] = {}
    for tid, rank in tables.read("MPI_RANKS", ("globalTid", "rank")).drop_nulls().iter_rows():
        found.setdefault(tid & ~0xFFFFFF, set()).add(rank)
    return {pid: next(iter(ranks)) for pid, ranks in found.items() if len(ranks) == 1}


def _keyed(packed: pl.Series, key_of: Any) -> pl.Series:
    distinct, place = distinct_of(packed)
    keys = np.array([*(key_of(one) for one in distinct), NO_KEY], np.uint32)
    return key_series(keys[place])


@dataclass(frozen=True, slots=True)
class Gpus:
    """The GPUs that an export describes, and which of them a process means by an ordinal.

    Attributes:
        by_id: ``TARGET_INFO_GPU`` by its id.
        of_process: ``(pid, ordinal)`` to that id, from ``TARGET_INFO_CUDA_DEVICE``.
        several: More than one process used a GPU under the same ordinal, so an ordinal names no GPU by itself.
    """

    by_id: dict[int, dict[str, Any]]
    of_process: dict[tuple[int, int], int]
    several: bool

    def find(self, pid: int | None, ordinal: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What identifies a device, and its columns of :data:`traceview.schema.DEVICES`."""
        gpu = self.of_process.get((pid, ordinal)) if pid is not None else None
        if gpu is None and len(self.by_id) == 1:
            gpu = next(iter(self.by_id))
        if gpu is None and not self.several:
            gpu = next((key for key, row in self.by_id.items() if row["cuDevice"] == ordinal), None)
            if gpu is None and ordinal in self.by_id and all(row["cuDevice"] is None for row in self.by_id.values()):
                gpu = ordinal  # exports of 2021 have no cuDevice, and their own reports take the id for it
        if gpu is not None:
            return ("gpu", gpu), self._facts(gpu, ordinal)
        return ("ordinal", pid, ordinal), {**self._common(), "ordinal": ordinal}

    def all(self) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        """Every described GPU."""
        return [(("gpu", gpu), self._facts(gpu, gpu)) for gpu in sorted(self.by_id)]

    def _facts(self, gpu: int, ordinal: int) -> dict[str, Any]:
        row = self.by_id.get(gpu)
        if row is None:  # the process says which GPU it is, the list of GPUs is not in the export
            return {**_NO_FACTS, "ordinal": gpu if self.several else ordinal}
        number = row["cuDevice"] if row["cuDevice"] is not None else gpu if self.several else ordinal
        return {**_facts_of(row), "ordinal": number}

    def _common(self) -> dict[str, Any]:
        """What holds for every GPU of the machine, if it is known that they are alike."""
        kinds = {tuple(_facts_of(row).items()) for row in self.by_id.values()}
        return dict(kinds.pop()) if len(kinds) == 1 else dict(_NO_FACTS)

    def notes(self, used: int) -> list[Note]:
        """What must be said of a recording in which ``used`` devices could not be told apart by GPU."""
        if not self.several or self.of_process or len(self.by_id) == 1:
            return []
        return [
            Note(
                "device-mapping",
                "Several processes used a device of the same number, and the export does not say which GPU each of "
                f"them means: they are kept apart as {used} devices.",
                Trust.GOOD,
            )
        ]


_NO_FACTS: Final[dict[str, Any]] = {
    "name": None,
    "vendor": "nvidia",
    "compute_major": None,
    "compute_minor": None,
    "memory_bytes": None,
    "sm_count": None,
}


def _facts_of(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": row["name"] or None,
        "vendor": "nvidia",
        # Old exports write what they do not know as 0.
        "compute_major": _small(row["computeMajor"]) or None,
        "compute_minor": _small(row["computeMinor"]) if row["computeMajor"] else None,
        "memory_bytes": row["totalMemory"] or None,
        "sm_count": _small(row["smCount"]) or None,
    }


def _small(value: int | None) -> int | None:
    """A figure that fits its column."""
    return value if value is not None and 0 <= value < 2**31 else None


def _gpus_before_2021(tables: Tables) -> pl.DataFrame:
    """The GPUs of an export of 2020 or early 2021, under the names of today.

    The table was ``TARGET_INFO_CUDA_GPU``, and its number is that of CUDA. Source: public scripts that ask it for
    ``deviceId``, ``name``, ``computeCapabilityMajor`` and ``numMultiprocessors``, read 2026-11; the other two names are
    those that ``CUpti_ActivityDevice`` has beside these.
    """
    own = {"computeCapabilityMajor": "computeMajor", "computeCapabilityMinor": "computeMinor",
           "globalMemorySize": "totalMemory", "numMultiprocessors": "smCount"}  # fmt: skip
    have = tables.columns("TARGET_INFO_CUDA_GPU")
    number = "deviceId" if "deviceId" in have else "id"
    listed = tables.read("TARGET_INFO_CUDA_GPU", (number, *own), ("name",)).rename({number: "id", **own})
    return listed.with_columns(cuDevice="id")


def read_gpus(tables: Tables, users: set[tuple[int, int]]) -> Gpus:
    """The GPUs of an export.

    Args:
        tables: The export.
        users: ``(pid, ordinal)`` of every process that used a device.
    """
    facts = ("id", "cuDevice", "computeMajor", "computeMinor", "totalMemory", "smCount")
    listed = tables.read("TARGET_INFO_GPU", facts, ("name",))
    if not listed.height:
        listed = _gpus_before_2021(tables)
    by_id = {row["id"]: row for row in listed.iter_rows(named=True) if row["id"] is not None}
    mapped = tables.read("TARGET_INFO_CUDA_DEVICE", ("pid", "cudaId", "gpuId"))
    # Packed ids hold the lower 24 bits of a process id.
    of_process = {
        (pid & 0xFFFFFF, ordinal): gpu for pid, ordinal, gpu in mapped.iter_rows() if None not in (pid, ordinal, gpu)
    }
    ordinals = [ordinal for _, ordinal in users]
    return Gpus(by_id, of_process, several=len(ordinals) != len(set(ordinals)))
