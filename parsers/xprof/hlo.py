"""The compiled programs that a profile holds: where each instruction came from and what is in it.

Only the fields below are read. Source: xla/service/hlo.proto (HloProto, HloModuleProto, HloComputationProto,
HloInstructionProto, StackFrameIndexProto) and xla/xla_data.proto (OpMetadata, ShapeProto, PrecisionConfig,
PrimitiveType).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from .wire import LENGTH, VARINT, fields, signed, text, varint

if TYPE_CHECKING:
    from .wire import Data

MOST_FRAMES: Final = 64
"""A stack deeper than this is cut; frames that point at each other would never end."""

MOST_NESTING: Final = 8
"""Fusions lie in fusions only so deep."""

_TYPES: Final = {
    1: "pred", 2: "s8", 3: "s16", 4: "s32", 5: "s64", 6: "u8", 7: "u16", 8: "u32", 9: "u64", 10: "f16", 11: "f32",
    12: "f64", 13: "tuple", 15: "c64", 16: "bf16", 17: "token", 18: "c128", 19: "f8e5m2", 20: "f8e4m3fn", 21: "s4",
    22: "u4", 23: "f8e4m3b11fnuz", 24: "f8e5m2fnuz", 25: "f8e4m3fnuz", 28: "f8e4m3", 29: "f8e3m4", 32: "f4e2m1fn",
}  # fmt: skip
_TEXTS: Final = {1: "name", 2: "opcode", 11: "fusion_kind", 28: "custom_call_target"}
"""Fields of an instruction that are plain text."""

_PRECISION: Final = {0: "default", 1: "high", 2: "highest"}
_WRAPPERS: Final = ("jit(", "pjit(", "xla_call(", "pmap(", "vmap(")
_RANK: Final = {"default": 0, "high": 1, "highest": 2}
_ELEMENTWISE: Final = frozenset({
    "abs", "add", "and", "atan2", "bitcast-convert", "cbrt", "ceil", "clamp", "compare", "complex", "convert",
    "cosine", "divide", "erf", "exponential", "exponential-minus-one", "floor", "imag", "is-finite", "log",
    "log-plus-one", "logistic", "maximum", "minimum", "multiply", "negate", "not", "or", "popcnt", "power",
    "real", "reduce-precision", "remainder", "round-nearest-afz", "round-nearest-even", "rsqrt", "select",
    "shift-left", "shift-right-arithmetic", "shift-right-logical", "sign", "sine", "sqrt", "subtract", "tan",
    "tanh", "xor",
})  # fmt: skip


@dataclass(slots=True)
class Instruction:
    """One instruction.

    Attributes:
        name: Unique within its program.
        opcode: E.g. ``dot``.
        op_name: Path of the framework op, e.g. ``jit(f)/decoder/dot_general``.
        source: ``file:line``, or ``""``.
        frame: Stack frame, 0 for none.
        fusion_kind: E.g. ``kLoop``.
        custom_call_target: What a custom call calls.
        backend_kind: Kind in the back end's own settings, e.g. ``__triton_gemm``.
        type: Element type of the result.
        dims: Its extents.
        id: Number.
        operands: Numbers of its operands.
        called: Numbers of the computations it calls.
        precision: Highest operand precision of a product, or ``""``.
        parameter: Which argument of its computation a ``parameter`` is.
    """

    name: str = ""
    opcode: str = ""
    op_name: str = ""
    source: str = ""
    frame: int = 0
    fusion_kind: str = ""
    custom_call_target: str = ""
    backend_kind: str = ""
    type: str = ""
    dims: tuple[int, ...] = ()
    id: int = 0
    operands: tuple[int, ...] = ()
    called: tuple[int, ...] = ()
    precision: str = ""
    parameter: int = 0


@dataclass(slots=True)
class Program:
    """One compiled program.

    Attributes:
        name: Module name, e.g. ``jit_f``.
        by_name: Every instruction by name.
        by_id: Every instruction by number.
        bodies: Instructions of each computation by its number.
        roots: Number of the instruction that each computation returns.
    """

    name: str = ""
    by_name: dict[str, Instruction] = field(default_factory=dict)
    by_id: dict[int, Instruction] = field(default_factory=dict)
    bodies: dict[int, list[Instruction]] = field(default_factory=dict)
    roots: dict[int, int] = field(default_factory=dict)
    _files: list[str] = field(default_factory=list)
    _functions: list[str] = field(default_factory=list)
    _locations: list[tuple[int, int, int]] = field(default_factory=list)
    _frames: list[tuple[int, int]] = field(default_factory=list)

    def inside(self, instruction: Instruction) -> list[Instruction]:
        """What a fusion or call is made of; empty for any other instruction."""
        found: list[Instruction] = []
        waiting = [(computation, 0) for computation in instruction.called]
        seen: set[int] = set()
        while waiting:
            computation, depth = waiting.pop()
            if computation in seen or depth > MOST_NESTING:
                continue
            seen.add(computation)
            for inner in self.bodies.get(computation, ()):
                found.append(inner)
                waiting += [(one, depth + 1) for one in inner.called]
        return found

    def stack(self, instruction: Instruction) -> list[str]:
        """``file:line function`` of the frames that made it, innermost first."""
        frames: list[str] = []
        at, seen = instruction.frame, set[int]()
        while 0 < at <= len(self._frames) and at not in seen and len(frames) < MOST_FRAMES:
            seen.add(at)
            location, at = self._frames[at - 1]
            if 0 < location <= len(self._locations):
                file, function, line = self._locations[location - 1]
                named = self._functions[function - 1] if 0 < function <= len(self._functions) else ""
                where = self._files[file - 1] if 0 < file <= len(self._files) else "?"
                frames.append(f"{where}:{line} {named}".strip())
        return frames

    def products(self, instruction: Instruction) -> list[Instruction]:
        """The matrix products and convolutions that it is or contains."""
        candidates = (
            [instruction, *self.inside(instruction)] if instruction.opcode in ("fusion", "call") else [instruction]
        )
        return [one for one in candidates if one.opcode in ("dot", "convolution", "ragged-dot", "scaled-dot")]

    def category(self, instruction: Instruction) -> str:
        """The HLO category, in XLA's own words.

        A fusion around a product is ``convolution fusion``, as the TPU compiler calls it.
        """
        opcode = instruction.opcode
        if opcode == "fusion":
            if self.products(instruction):
                return "convolution fusion"
            kind = instruction.fusion_kind.removeprefix("k").lower()
            return f"{kind} fusion" if kind else "fusion"
        if opcode in ("transpose", "copy", "reshape"):
            return "data formatting"
        return "non-fusion elementwise" if opcode in _ELEMENTWISE else opcode

    def path(self, instruction: Instruction) -> str:
        """Path of the framework op; of a fusion without one, the first path of what it is made of."""
        if instruction.op_name or instruction.opcode != "fusion":
            return instruction.op_name
        return next((part.op_name for part in self.inside(instruction) if "/" in part.op_name), "")

    def opcodes(self, instruction: Instruction) -> list[str]:
        """The distinct opcodes of what a fusion is made of, in order; empty for any other instruction."""
        if instruction.opcode != "fusion":
            return []
        return list(dict.fromkeys(part.opcode for part in self.inside(instruction) if part.opcode != "parameter"))

    def scopes(self, instruction: Instruction) -> list[str]:
        """The distinct named scopes of what it is made of, in order; more than one: a fusion that mixes scopes."""
        parts = self.inside(instruction) if instruction.opcode == "fusion" else [instruction]
        return list(dict.fromkeys(scope for part in parts if part.op_name and (scope := scope_of(part.op_name))))

    def precision(self, instruction: Instruction) -> str:
        """The highest precision that one of its products asks for; ``""`` if it has none."""
        asked = [one.precision or "default" for one in self.products(instruction)]
        return max(asked, key=_RANK.__getitem__, default="")

    def product_types(self, instruction: Instruction) -> str:
        """Element types of the operands and the result of its first product, e.g. ``f32,f32->f32``."""
        for one in self.products(instruction)[:1]:
            operands = [self.by_id[number].type for number in one.operands[:2] if number in self.by_id]
            return f"{','.join(operands)}->{one.type}"
        return ""


def scope_of(op_name: str) -> str:
    """The named scopes in the path of an op: without ``jit(…)``, ``vmap()`` and the primitive at its end.

    An op that the compiler made of several has their paths joined by ``;``: the first one counts.
    """
    parts = op_name.partition(";")[0].rstrip(":").split("/")[:-1]
    return "/".join(part for part in parts if not part.startswith(_WRAPPERS))


def read_program(data: Data, start: int, end: int) -> Program:
    """A program out of its ``HloProto``.

    Raises:
        WireError: it is damaged.
    """
    program = Program()
    for number, wire, value, behind in fields(data, start, end):
        if (number, wire) == (1, LENGTH):
            _module(data, value, behind, program)
    return program


def _module(data: Data, start: int, end: int, program: Program) -> None:
    for number, wire, value, behind in fields(data, start, end):
        if wire != LENGTH:
            continue
        if number == 1:
            program.name = text(data, value, behind)
        elif number == 3:
            _computation(data, value, behind, program)
        elif number == 17:
            _frames(data, value, behind, program)


def _computation(data: Data, start: int, end: int, program: Program) -> None:
    body: list[Instruction] = []
    key, root = 0, -1
    for number, wire, value, behind in fields(data, start, end):
        if (number, wire) == (2, LENGTH):
            made = _instruction(data, value, behind)
            body.append(made)
            program.by_name[made.name] = made
            program.by_id[made.id] = made
        elif (number, wire) == (5, VARINT):
            key = signed(value)
        elif (number, wire) == (6, VARINT):
            root = signed(value)
    program.bodies[key] = body
    if root >= 0:
        program.roots[key] = root


def _instruction(data: Data, start: int, end: int) -> Instruction:
    made = Instruction()
    operands: list[int] = []
    called: list[int] = []
    for number, wire, value, behind in fields(data, start, end):
        if number in (36, 38):
            (operands if number == 36 else called).extend(_numbers(data, wire, value, behind))
        elif wire == VARINT:
            if number == 35:
                made.id = signed(value)
            elif number == 9:
                made.parameter = value
        elif wire != LENGTH:
            continue
        elif number in _TEXTS:
            setattr(made, _TEXTS[number], text(data, value, behind))
        elif number == 3:
            made.type, made.dims = _shape(data, value, behind)
        elif number == 7:
            _op_metadata(data, value, behind, made)
        elif number == 43:
            made.backend_kind = _backend_kind(text(data, value, min(behind, value + 4096)))
        elif number == 51:
            made.precision = _precision(data, value, behind)
    made.operands, made.called = tuple(operands), tuple(called)
    return made


def _numbers(data: Data, wire: int, value: int, behind: int) -> list[int]:
    """One number, or several packed into one field."""
    if wire == VARINT:
        return [signed(value)]
    found: list[int] = []
    at = value
    while wire == LENGTH and at < behind:
        one, at = varint(data, at, behind)
        found.append(signed(one))
    return found


def _shape(data: Data, start: int, end: int) -> tuple[str, tuple[int, ...]]:
    kind, dims = "", []
    for number, wire, value, behind in fields(data, start, end):
        if (number, wire) == (2, VARINT):
            kind = _TYPES.get(value, f"type{value}")
        elif number == 3:
            dims += _numbers(data, wire, value, behind)
    return kind, tuple(dims)


def _op_metadata(data: Data, start: int, end: int, made: Instruction) -> None:
    file, line = "", 0
    for number, wire, value, behind in fields(data, start, end):
        if (number, wire) == (2, LENGTH):
            made.op_name = text(data, value, behind)
        elif (number, wire) == (3, LENGTH):
            file = text(data, value, behind)
        elif (number, wire) == (4, VARINT):
            line = signed(value)
        elif (number, wire) == (15, VARINT):
            made.frame = signed(value)
    if file:
        made.source = f"{file}:{line}"


def _precision(data: Data, start: int, end: int) -> str:
    asked = [0]
    for number, wire, value, behind in fields(data, start, end):
        if number == 1:
            asked += _numbers(data, wire, value, behind)
    return _PRECISION.get(max((one for one in asked if one in _PRECISION), default=0), "")


def _backend_kind(settings: str) -> str:
    """The kind of a fusion in the JSON of its back end, read without trusting that it is whole."""
    for key in ('"kind":"', '"kind": "'):
        _, found, rest = settings.partition(key)
        if found:
            return rest.partition('"')[0][:80]
    return ""


def _frames(data: Data, start: int, end: int, program: Program) -> None:
    for number, wire, value, behind in fields(data, start, end):
        if wire != LENGTH:
            continue
        if number == 1:
            program._files.append(text(data, value, behind))  # noqa: SLF001  # filled by its reader only
        elif number == 2:
            program._functions.append(text(data, value, behind))  # noqa: SLF001
        else:
            inner = {n: signed(v) for n, w, v, _ in fields(data, value, behind) if w == VARINT}
            if number == 3:
                program._locations.append((inner.get(1, 0), inner.get(2, 0), inner.get(3, 0)))  # noqa: SLF001
            elif number == 4:
                program._frames.append((inner.get(1, 0), inner.get(2, 0)))  # noqa: SLF001
