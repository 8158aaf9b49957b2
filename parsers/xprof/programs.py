"""The programs of a profile and what each of its XLA ops is, read when somebody asks.

A program can take megabytes and most questions need none, so only its place is kept while loading.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from .attention_chains import chains
from .columns import BYTES
from .hlo import read_program
from .stats import whole
from .wire import WireError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .hlo import Instruction, Program
    from .source import SourceFile
    from .space import Plane

_IN_NAME: Final = re.compile(r"\(([0-9]{1,20})\)$")
_UINT64: Final = (1 << 64) - 1


@dataclass(slots=True)
class Programs:
    """Where the programs of a file lie.

    Attributes:
        source: The file.
        places: Position and length of each program by its id (as uint64).
        names: Module name by id.
        unreadable: Ids of programs that turned out to be damaged.
    """

    source: SourceFile | None = None
    places: dict[int, tuple[int, int]] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    unreadable: set[int] = field(default_factory=set)
    _read: dict[int, Program] = field(default_factory=dict)

    def find(self, program_id: int) -> Program | None:
        """The program with an id; ``None`` if the file does not hold it or it is damaged."""
        key = program_id & _UINT64
        if key in self._read:
            return self._read[key]
        if self.source is None or key not in self.places or key in self.unreadable:
            return None
        position, length = self.places[key]
        try:
            self._read[key] = read_program(self.source.read(position, length), 0, length)
        except WireError:
            self.unreadable.add(key)
            return None
        return self._read[key]

    def add_plane(self, plane: Plane) -> None:
        """Take note of the programs of ``/host:metadata``.

        Older writers give no ``program_id``; there the number in brackets at the end of the name is the id.
        """
        for entry in plane.names:
            place = next((stat for stat in entry.stats.values() if stat.kind == BYTES), None)
            inside = _IN_NAME.search(entry.name)
            key = whole(entry.stats, "program_id")
            if key is None and inside:
                key = int(inside[1])
            if place is not None and key is not None:
                self.places[key & _UINT64] = (place.position, place.length)
                self.names[key & _UINT64] = _IN_NAME.sub("", entry.name)


@dataclass(frozen=True, slots=True)
class OpKey:
    """Which instruction of which program an event ran; and whether a longer list of names was cut to its last."""

    program_id: int
    op: str


class Origins:
    """What the programs say of each distinct XLA op of a file.

    Args:
        programs: The programs.
        keys: Distinct ops; events refer to them by index.
    """

    def __init__(self, programs: Programs, keys: Iterable[OpKey]) -> None:
        self._programs = programs
        self._keys = list(keys)

    def __len__(self) -> int:
        return len(self._keys)

    @cached_property
    def _chains(self) -> dict[int, dict[str, list[tuple[int, str]]]]:
        """Attention by hand in each program that ran."""
        ids = {key.program_id & _UINT64 for key in self._keys}
        return {key: chains(program) for key in ids if (program := self._programs.find(key)) is not None}

    def unfused_attention(self) -> list[str | None]:
        """For each op its part in attention that is not fused, as JSON text ``["program:number:part", …]``."""
        told: list[str | None] = []
        for key in self._keys:
            program = key.program_id & _UINT64
            parts = self._chains.get(program, {}).get(key.op)
            told.append(json.dumps([f"{program}:{number}:{part}" for number, part in parts]) if parts else None)
        return told

    @cached_property
    def _found(self) -> list[tuple[Program, Instruction] | None]:
        found = []
        for key in self._keys:
            program = self._programs.find(key.program_id)
            instruction = program.by_name.get(key.op) if program else None
            found.append((program, instruction) if program and instruction else None)
        return found

    def program_ids(self) -> set[int]:
        """Ids of all programs that ran, as uint64."""
        return {key.program_id & _UINT64 for key in self._keys}

    def names(self) -> list[str]:
        """Name of each op as JSON text."""
        return [json.dumps(key.op) for key in self._keys]

    def values(self, what: str) -> list[str | None]:
        """One fact of each op as JSON text; ``None`` where the programs do not tell."""
        if what == UNFUSED:
            return self.unfused_attention()
        tell = FACTS[what]
        return [None if one is None or not (value := tell(*one)) else json.dumps(value) for one in self._found]


def _mixed(program: Program, instruction: Instruction) -> list[str]:
    scopes = program.scopes(instruction)
    return scopes if len(scopes) > 1 else []


def _source(program: Program, instruction: Instruction) -> str:
    frames = program.stack(instruction)
    return shown_path(frames[0].partition(" ")[0] if frames else instruction.source)


def _source_stack(program: Program, instruction: Instruction) -> str:
    return "\n".join(shown_path(frame) for frame in program.stack(instruction))


UNFUSED: Final = "unfused_attention"
"""Detail that says which part of which attention by hand an op is."""

FACTS: Final[dict[str, Callable[[Program, Instruction], str | list[str]]]] = {
    "hlo_module": lambda program, _: program.name,
    "op_name": lambda program, instruction: program.path(instruction),
    "hlo_category": lambda program, instruction: program.category(instruction),
    "source": _source,
    "source_stack": _source_stack,
    "fused_ops": lambda program, instruction: program.opcodes(instruction),
    "mixed_scopes": _mixed,
    "custom_call_target": lambda _, instruction: instruction.custom_call_target,
    "backend_kind": lambda _, instruction: instruction.backend_kind,
    "dot_precision": lambda program, instruction: program.precision(instruction),
    "dot_types": lambda program, instruction: program.product_types(instruction),
}
"""What can be told of an op from its program, by the name of the detail."""


_HOME: Final = re.compile(r"(/home|/Users|/users|C:\\Users)[/\\][^/\\]+", re.IGNORECASE)


def shown_path(path: str) -> str:
    """A source path without the name of the user whose folder it lies in."""
    return _HOME.sub("~", path)
