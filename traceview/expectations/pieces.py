"""The dispatch table cut into pieces that one expectation can be judged on.

An attention call is one piece, with the time of all its kernels. Other work is a piece per kernel. Each criterion is
true, false, or not told by the trace (``None``) for a piece; a piece that is false in one criterion is false.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from traceview.attention import INFERRED, UNTOLD, Attribution
from traceview.expectations.input_types import input_dtype
from traceview.expectations.vocabulary import FAMILIES, all_implementations, implementations, spelled_out
from traceview.kernels import Family, Role, identify, normalise
from traceview.rules.base import Facts
from traceview.stages import matches

if TYPE_CHECKING:
    from collections.abc import Iterable

    from traceview.dispatch import Dispatch, DispatchTable
    from traceview.expectations.model import Wanted
    from traceview.timeline import Timeline

MATRIX_FAMILIES: Final = ("attention", "gemm", "conv", "moe", "sparse", "recurrent", "fusion", "unknown")
"""Families whose kernels may use tensor cores; of an op, these are what an expectation is about."""

_AROUND: Final = ("memcpy", "memset")
"""Families that only surround an op's work."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some work of one kind.

    Attributes:
        row: The dispatch it belongs to.
        family: What it is; a kernel inside an attention call has its own family.
        implementation: Which implementation, ``None`` if not told.
        provider: Whose build, ``None`` if not told.
        kernel: Kernel name; ``None`` for an attention call.
        bare_kernel: The name without return type and decoration.
        helper: The kernel belongs to another kernel's work.
        count: Calls, or kernels.
        device_ns: Device time, ns.
        tensor_core: Whether its matrix work runs on tensor cores, ``None`` if not known.
        precision: Precision of its matrix work's inputs, ``None`` if not known.
        dtype: Type of the inputs with which its op was called, ``None`` if not known.
    """

    row: Dispatch
    family: str
    implementation: str | None
    provider: str | None
    kernel: str | None
    bare_kernel: str | None
    helper: bool
    count: int
    device_ns: int
    tensor_core: bool | None
    precision: str | None
    dtype: str | None

    @property
    def is_inferred(self) -> bool:
        """Attention by hand that only the order of kernels suggests: it may be none."""
        return self.kernel is None and self.row.evidence in INFERRED

    @property
    def label(self) -> str:
        """Implementation with what else tells it apart, e.g. ``flash-2`` or ``gemm xmma``."""
        if self.family == "attention":
            return self.implementation or "unknown"
        return f"{self.family} {self.implementation}" if self.implementation else self.family


class Pieces:
    """All pieces of a trace.

    Args:
        timeline: Linked timeline.
        table: Its dispatch table.
        why_no_stage: Why no stage is known, ``None`` if stages are or were not looked for.
        facts: What rules have worked out of the trace, if it is at hand.
    """

    def __init__(
        self,
        timeline: Timeline,
        table: DispatchTable,
        *,
        why_no_stage: str | None = None,
        facts: Facts | None = None,
    ) -> None:
        self.timeline = timeline
        self.table = table
        self.facts = facts or Facts(timeline, table)
        self.why_no_stage = why_no_stage
        self._identity = self._identify()

    @cached_property
    def has_stages(self) -> bool:
        """Any work is assigned to a stage."""
        return any(row.stage is not None for row in self.table.dispatches)

    @cached_property
    def stages(self) -> tuple[str, ...]:
        """The stages that work is assigned to, in order of device time."""
        held: dict[str, int] = {}
        for row in self.table.dispatches:
            if row.stage is not None:
                held[row.stage] = held.get(row.stage, 0) + row.device_ns
        return tuple(sorted(held, key=lambda stage: (-held[stage], stage)))

    @cached_property
    def all_stages(self) -> tuple[str, ...]:
        """Every stage that occurs, also where it gave no work to a device."""
        return tuple(self.timeline.events["stage"].drop_nulls().unique().cast(pl.String).sort())

    @cached_property
    def _unplaced(self) -> frozenset[str]:
        """Names of kernels of which some have neither launch nor stage: nobody knows which stage they belong to."""
        work = self.timeline.device_work.filter(
            pl.col("launch_id").is_null() & pl.col("op_id").is_null() & pl.col("stage").is_null()
        )
        return frozenset(work["name"].unique().cast(pl.String))

    def stage_untold(self, piece: Piece) -> bool:
        """The stage of a piece is not known, because the launch of its kernels is not."""
        if piece.row.stage is not None:
            return False
        names = [piece.kernel] if piece.kernel is not None else [kernel.name for kernel in piece.row.kernels]
        return any(name in self._unplaced for name in names)

    @cached_property
    def total_ns(self) -> int:
        """Sum of all device time, ns."""
        return sum(piece.device_ns for piece in self.work)

    @cached_property
    def calls(self) -> tuple[Piece, ...]:
        """Attention calls."""
        return tuple(self._call(row) for row in self.table.dispatches if row.family == "attention")

    @cached_property
    def work(self) -> tuple[Piece, ...]:
        """Everything: attention calls whole, other work by kernel."""
        others = [
            self._kernel(row, kernel.name, kernel.count, kernel.device_ns)
            for row in self.table.dispatches
            if row.family != "attention"
            for kernel in row.kernels
        ]
        return (*self.calls, *others)

    @cached_property
    def kernels(self) -> tuple[Piece, ...]:
        """Everything by kernel, also attention calls."""
        return tuple(
            self._kernel(row, kernel.name, kernel.count, kernel.device_ns)
            for row in self.table.dispatches
            for kernel in row.kernels
        )

    def in_scope(self, wanted: Wanted) -> list[Piece]:
        """The pieces that an expectation is about: of a family its main kernels, of an op its matrix work, if any.

        Stage, direction and type of inputs are looked at; a piece of which the latter two are not told is in.
        """
        if wanted.op in FAMILIES:
            source = self.calls if wanted.op == "attention" else self.kernels
            return [
                piece for piece in source if piece.family == wanted.op and not piece.helper and in_place(piece, wanted)
            ]
        pieces = [
            piece
            for piece in self.work
            if matches_op(piece, wanted.op)
            and in_place(piece, wanted)
            and not piece.helper
            and piece.family not in _AROUND
        ]
        return [piece for piece in pieces if piece.family in MATRIX_FAMILIES] or pieces

    def suspects(self, wanted: Wanted) -> list[Piece]:
        """Pieces outside the scope that could belong to it, because their kernel or their op is not known.

        A kernel of an aten op that does not ask for attention is no attention kernel. For an op name, work whose op
        is not recorded is suspect if it is of a family that the op is seen to have, or of no known family. Work of the
        right kind is suspect if nobody knows its stage.
        """
        if wanted.stage is None:
            return self._suspects(wanted)
        anywhere = replace(wanted, stage=None)
        lost = [piece for piece in (*self.in_scope(anywhere), *self._suspects(anywhere)) if self.stage_untold(piece)]
        return [*self._suspects(wanted), *lost]

    def _suspects(self, wanted: Wanted) -> list[Piece]:
        unknown = [piece for piece in self.work if piece.family == Family.UNKNOWN.value and in_place(piece, wanted)]
        if wanted.op is None or wanted.op in FAMILIES:
            if wanted.op == "attention":
                unknown = [piece for piece in unknown if not (piece.row.op or "").startswith("aten::")]
            return unknown
        families = {piece.family for piece in self.in_scope(wanted)} | {Family.UNKNOWN.value}
        return [
            piece
            for piece in self.work
            if piece.row.op is None and piece.family in families and in_place(piece, wanted)
        ]

    def _call(self, row: Dispatch) -> Piece:
        named = [(kernel, self._identity[kernel.name]) for kernel in row.kernels]
        ranks = [
            [fact for _, fact in named if fact["family"] == "attention" and fact["role"] == Role.MAIN.value],
            [fact for _, fact in named if fact["family"] == "gemm" and fact["role"] == Role.MAIN.value],
        ]
        witness = next((rank[0] for rank in ranks if rank), {"tensor_core": None, "precision": None})
        return Piece(
            row=row,
            family=row.family,
            implementation=row.implementation,
            provider=row.provider,
            kernel=None,
            bare_kernel=None,
            helper=False,
            count=row.count,
            device_ns=row.device_ns,
            tensor_core=witness["tensor_core"],
            precision=witness["precision"],
            dtype=input_dtype(row, witness["precision"]),
        )

    def _kernel(self, row: Dispatch, name: str, count: int, device_ns: int) -> Piece:
        fact = self._identity[name]
        return Piece(
            row=row,
            family=fact["family"],
            implementation=fact["implementation"],
            provider=fact["provider"],
            kernel=name,
            bare_kernel=fact["bare"],
            helper=fact["role"] == Role.HELPER.value,
            count=count,
            device_ns=device_ns,
            tensor_core=fact["tensor_core"],
            precision=fact["precision"],
            dtype=input_dtype(row, fact["precision"]),
        )

    def _identify(self) -> dict[str, dict[str, Any]]:
        names = sorted({kernel.name for row in self.table.dispatches for kernel in row.kernels})
        identity = identify(pl.Series("name", names, dtype=pl.String))
        facts = identity.with_columns(bare=normalise(identity["name"])).to_dicts()
        return {fact["name"]: fact for fact in facts}


def matches_op(piece: Piece, op: str | None) -> bool:
    """The piece is of the family, or was asked for by an op of that name."""
    if op is None:
        return True
    if op in FAMILIES:
        return piece.family == op
    return piece.row.op is not None and fnmatchcase(piece.row.op, op)


def matches_kernel(piece: Piece, pattern: str) -> bool:
    """The kernel's name, as recorded or without return type and decoration, matches a glob."""
    if piece.kernel is None or piece.bare_kernel is None:
        return False
    return fnmatchcase(piece.kernel, pattern) or fnmatchcase(piece.bare_kernel, pattern)


def satisfies(piece: Piece, wanted: Wanted, *, proven: bool) -> bool | None:
    """Whether a piece has every property that is wanted; ``None`` if the trace does not tell.

    Args:
        piece: The piece.
        wanted: Its properties are looked at, not its scope.
        proven: What is only inferred is not told.
    """
    answers = [
        _is_implementation(piece, wanted.implementation, proven=proven) if wanted.implementation else True,
        _is_one_of(piece.provider, wanted.provider),
        True if wanted.tensor_core is None else _equal(piece.tensor_core, wanted.tensor_core),
        _is_one_of(piece.precision, wanted.precision),
        _is_one_of(piece.dtype, wanted.dtype),
        _has_direction(piece, wanted.direction),
    ]
    return all_of(answers)


def all_of(answers: Iterable[bool | None]) -> bool | None:
    """And, with three values."""
    answers = list(answers)
    if False in answers:
        return False
    return None if None in answers else True


def _is_implementation(piece: Piece, wanted: tuple[str, ...], *, proven: bool) -> bool | None:
    ids = spelled_out(wanted)
    if piece.family == "attention":
        if piece.implementation in UNTOLD or piece.implementation is None or (proven and piece.is_inferred):
            return None
        return piece.implementation in ids
    # "cudnn" of a convolution is asked for by its own name, never by a word for attention.
    ids = ids & set(wanted)
    if piece.implementation is not None:
        return piece.implementation in ids
    possible = all_implementations() if piece.family == Family.UNKNOWN.value else implementations(piece.family)
    return None if ids & set(possible) else False


def _is_one_of(value: str | None, wanted: tuple[str, ...]) -> bool | None:
    if not wanted:
        return True
    return None if value is None else value in wanted


def _equal(value: bool | None, wanted: bool) -> bool | None:  # noqa: FBT001 - the two compared values
    return None if value is None else value is wanted


def _has_direction(piece: Piece, wanted: str | None) -> bool | None:
    """Only attention calls tell their direction; those of the other one are out of scope already."""
    return True if wanted is None or piece.family == "attention" else None


def in_place(piece: Piece, wanted: Wanted) -> bool:
    """The piece lies in the stage, and is of the direction and the type of inputs if those are told."""
    if wanted.stage is not None and not matches(piece.row.stage, wanted.stage):
        return False
    if wanted.dtype and piece.dtype is not None and piece.dtype not in wanted.dtype:
        return False
    return wanted.direction is None or piece.row.family != "attention" or piece.row.direction == wanted.direction


def hidden_by_a_graph(pieces: Iterable[Piece]) -> list[Piece]:
    """Those whose op a graph replay hides."""
    return [piece for piece in pieces if piece.row.attribution == Attribution.OPAQUE.value]


def without_op(pieces: Iterable[Piece]) -> list[Piece]:
    """Those whose op is not recorded."""
    return [piece for piece in pieces if piece.row.attribution == Attribution.KERNEL_ONLY.value]
