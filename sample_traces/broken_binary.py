"""Broken twins of the binary formats: exports of Nsight Systems and profiles of XProf, one change in each.

What must come of them stands in ``bad/expected.json`` beside the rest, see :mod:`sample_traces.broken`.
"""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sample_traces import kernel_names as k
from sample_traces.broken import Case
from sample_traces.nsys_authoring import H100, VERSION_IN_HEADER, Export
from sample_traces.xspace_bytes import Space, Unsigned

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE: Final = 1024
KERNELS: Final = 60
"""Enough to fill several pages of a database."""


def export() -> bytes:
    """A healthy export: a step, a stage, many small kernels."""
    written = Export("2026")
    one = written.process(7_000, H100)
    with one.range("step_0"), one.range("forward"):
        for _ in range(KERNELS):
            with one.op("aten::mm", [[64, 64], [64, 64]]):
                one.launch(k.GEMM_F32_SIMT_A100, us=12.5)
        one.copy(3.75, kind=2, source=2, target=0, size=16_384)
        one.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        return written.write_sqlite(Path(folder) / "export.sqlite", page_bytes=PAGE).read_bytes()


def without_tables(*names: str) -> bytes:
    """The export with some of its tables dropped."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "export.sqlite"
        path.write_bytes(export())
        connection = sqlite3.connect(path, isolation_level=None)
        for name in names:
            connection.execute(f'DROP TABLE "{name}"')
        connection.execute("VACUUM")
        connection.close()
        data = bytearray(path.read_bytes())
    data[VERSION_IN_HEADER] = bytes(4)
    return bytes(data)


def foreign_database() -> bytes:
    """A database of another program."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "other.sqlite"
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE experiments (name TEXT, score REAL)")
        connection.execute("INSERT INTO experiments VALUES ('baseline', 0.5)")
        connection.commit()
        connection.close()
        data = bytearray(path.read_bytes())
    data[VERSION_IN_HEADER] = bytes(4)
    return bytes(data)


def profile(*, device: bool = True) -> bytes:
    """A healthy profile of one TPU core: two runs of a program with two ops each; or its host alone."""
    space = Space()
    if device:
        plane = space.plane("/device:TPU:0", 2, device_type_string="TPU v6 Lite")
        modules, ops = plane.line("XLA Modules", 2), plane.line("XLA Ops", 3)
        for run in range(2):
            at = 50_000 + 400_000 * run
            modules.event("jit_f(77)", at, 200_000, run_id=Unsigned(run + 1), _ct=12, _c=9_000 + run)
            for index, (name, category) in enumerate((("fusion.1", "convolution fusion"), ("fusion.2", "loop fusion"))):
                ops.event(
                    f"%{name} = f32[64,64] fusion(...)", at + 100_000 * index, 100_000, display_name=name,
                    of_name={"hlo_category": category, "program_id": Unsigned(77)},
                )  # fmt: skip
    host = space.plane("/host:CPU")
    main = host.line("python", 11)
    for run in range(2):
        main.event("train", 400_000 * run, 350_000, _r=1, step_num=run)
        main.event("PjitFunction(f)", 400_000 * run + 1_000, 40_000)
        main.event("DoEnqueueProgram", 400_000 * run + 20_000, 5_000, _pt=12, _p=9_000 + run)
    space.plane("Task Environment", profile_start_time=Unsigned(1_767_225_600_000_000_000))
    return space.encode()


def mangled(data: bytes) -> bytes:
    """A binary file that was saved as text: every byte that is not valid UTF-8 became three."""
    return data.decode("utf-8", errors="replace").encode()


def damaged_page() -> bytes:
    """A page with rows of the kernels is overwritten, as a bad disk leaves it."""
    data = export()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "export.sqlite"
        path.write_bytes(data)
        connection = sqlite3.connect(path)
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'CUPTI_ACTIVITY_KIND_KERNEL'"
        ).fetchone()
        connection.close()
    # https://www.sqlite.org/fileformat2.html: an interior page lists its cells from byte 12 on, and a cell begins with
    # the number of the page below it.
    at = PAGE * (root - 1)
    cell = at + int.from_bytes(data[at + 12 : at + 14], "big")
    leaf = PAGE * (int.from_bytes(data[cell : cell + 4], "big") - 1)
    return data[:leaf] + b"\xaa" * PAGE + data[leaf + PAGE :]


def _case(file: str, what: str, make: Callable[[], bytes], **more: Any) -> Case:
    return Case(file, what, lambda _: make(), **more)


CASES: Final = (
    _case("nsys-healthy.authored.sqlite", "An export of Nsight Systems; nothing is wrong with it.", export,
          events=186, work=61),
    _case("nsys-cut.authored.sqlite", "The copy of the export stopped after two thirds.",
          lambda: (data := export())[: len(data) * 2 // 3], events=None, code="sqlite-cut",
          says="ends before its own end"),
    _case("nsys-damaged-page.authored.sqlite", "One page with rows of the kernels is overwritten.",
          damaged_page, events=170, work=45, counts={"lost-rows": 16}, doubted=True, notes=("device-work-lost",)),
    _case("nsys-zeroed-header.authored.sqlite", "The first 512 bytes of the export are zero.",
          lambda: bytes(512) + export()[512:], events=None, code="zeroed", says="head is nothing but zeros"),
    _case("nsys-no-kernels.authored.sqlite", "The table of kernels is missing: device work was not traced.",
          lambda: without_tables("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY"), events=125, work=0,
          doubted=True, notes=("launch-without-work", "no-device-work")),
    _case("nsys-other-database.authored.sqlite", "A database, and not of Nsight Systems.", foreign_database,
          events=None, code="sqlite", says="without profiler tables"),
    _case("xprof-healthy.authored.xplane.pb", "A profile of XProf; nothing is wrong with it.", profile,
          events=12, work=4),
    _case("xprof-cut.authored.xplane.pb", "The copy of the profile stopped in the middle of the device.",
          lambda: (data := profile())[: len(data) // 3], events=None, code="xplane-damaged",
          says="it breaks off or is damaged at byte 275 of 275"),
    _case("xprof-cut-late.authored.xplane.pb", "The copy of the profile stopped in the middle of the host.",
          lambda: (data := profile())[: len(data) * 4 // 5], events=6, work=4, truncated=True, doubted=True,
          notes=("cut-off", "work-without-launch")),
    _case("xprof-host-only.authored.xplane.pb", "A profile without a device: the host alone was traced.",
          lambda: profile(device=False), events=6, work=0, doubted=True, notes=("host-only",)),
    _case("xprof-mangled.authored.xplane.pb", "A profile that was saved as UTF-8 text.", lambda: mangled(profile()),
          events=None, code="xplane-as-text", says="stored or copied as text"),
)  # fmt: skip
