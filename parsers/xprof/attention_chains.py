"""Attention that the compiler did not fuse, proven in the program: product → softmax over its result → product.

A fused attention is a custom call and has no exponential in the program. Here an ``exponential`` counts as softmax if a
reduction sums its very result; it is attention if its input comes from a product of the same number of elements and a
product consumes as many. Whatever lies in fusions is followed into them, so names and orders of ops do not matter.

Scores are products of activations, matrix by matrix of a batch of heads. A product by one matrix that the whole batch
shares is a layer with weights, and a softmax between two of them is none of attention; where neither side has a batch,
it may be attention of one head or such a layer, and is told so (part ``single`` instead of ``softmax``). Scores of two
matrices that were both computed by products, or of a matrix with itself, are proven all the same.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .hlo import Instruction, Program

LAYOUT: Final = frozenset(
    {"bitcast", "copy", "transpose", "reshape", "convert", "get-tuple-element", "tuple", "parameter", "fusion"}
)
"""Opcodes that change no value."""

PLAIN: Final = LAYOUT | {
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "select", "compare", "and", "or", "not",
    "negate", "exponential", "broadcast", "reduce", "clamp", "reduce-precision", "is-finite", "tanh", "abs",
    "power", "rsqrt", "slice", "pad", "concatenate", "dynamic-slice", "iota", "constant",
}  # fmt: skip
"""What may lie between the products: scale, mask, soft cap, normalisation, layout."""

MOST_NODES: Final = 4096
"""A search that meets more instructions gives up: attention is local."""

_PRODUCTS: Final = ("dot", "convolution", "ragged-dot", "scaled-dot")
_PRODUCT_CALLS: Final = ("__cublas$", "__onednn$matmul", "__triton_gemm")


def chains(program: Program) -> dict[str, list[tuple[int, str]]]:
    """Which ops of the program take part in which attention by hand.

    Returns:
        Name of each top-level op to ``(number of the attention, part)``; parts are ``first``, ``softmax`` (or
        ``single``), ``middle`` and ``last``.
    """
    graph = _Graph(program)
    found: dict[str, list[tuple[int, str]]] = defaultdict(list)
    number = 0
    for softmax in [one for one in program.by_id.values() if one.opcode == "exponential" and len(one.dims) > 1]:
        parts = _attention_around(graph, softmax)
        if parts is None:
            continue
        first, middle, last = parts
        batched = [_is_batched(graph, one) for one in (first, last)]
        proven = all(batched) or _is_of_activations(graph, first)
        if not proven and (any(batched) or len(softmax.dims) != 2):
            continue
        tops = {graph.top(one): "middle" for one in middle}
        tops |= {
            graph.top(last): "last",
            graph.top(first): "first",
            graph.top(softmax): "softmax" if proven else "single",
        }
        for name, part in tops.items():
            found[name].append((number, part))
        number += 1
    return dict(found)


def _attention_around(graph: _Graph, softmax: Instruction) -> tuple[Instruction, list[Instruction], Instruction] | None:
    size = _numel(softmax)
    if size < 4 or not _is_summed(graph, softmax, size):
        return None
    before = _search(graph.producers, softmax, PLAIN)
    first = next((one for one in before.products if _numel(one) == size), None)
    after = _search(graph.users, softmax, PLAIN)
    last = next(
        (one for one in after.products if any(_numel(operand) == size for operand in graph.producers(one))), None
    )
    if first is None or last is None or first is last:
        return None
    back = _search(graph.producers, last, PLAIN)
    return first, [one for one in back.plain if one.id in after.ids], last


def _is_batched(graph: _Graph, product: Instruction) -> bool:
    """Whether both operands are more than one matrix, or their extents are not known."""
    matrices = [len(one.dims) for one in graph.producers(product)[:2] if one.dims]
    return len(matrices) < 2 or min(matrices) > 2


def _is_of_activations(graph: _Graph, product: Instruction) -> bool:
    """Whether neither operand is a matrix of weights or a table: other products stand behind both, or both are one."""
    operands = graph.producers(product)[:2]
    if len(operands) < 2:
        return False
    if all(is_product(one) or _search(graph.producers, one, PLAIN).products for one in operands):
        return True
    return _origins(graph, operands[0]) == _origins(graph, operands[1])


def _origins(graph: _Graph, one: Instruction) -> set[int]:
    """Where a value comes from, however it was laid out on the way."""
    if one.opcode not in LAYOUT:
        return {one.id}
    found = _search(graph.producers, one, LAYOUT)
    first = {step.id for step in (one, *found.plain) if not graph.producers(step)}
    return first | {other.id for other in (*found.products, *found.others)}


def _is_summed(graph: _Graph, softmax: Instruction, size: int) -> bool:
    reached = _search(graph.users, softmax, LAYOUT)
    return any(one.opcode == "reduce" and _numel(one) < size for one in reached.others)


class _Reached:
    """What a search met: products, instructions that it passed, and those where it stopped."""

    def __init__(self) -> None:
        self.products: list[Instruction] = []
        self.plain: list[Instruction] = []
        self.others: list[Instruction] = []
        self.ids: set[int] = set()


def _search(
    step: Callable[[Instruction], Iterable[Instruction]], start: Instruction, through: frozenset[str]
) -> _Reached:
    reached = _Reached()
    waiting = deque(step(start))
    while waiting and len(reached.ids) < MOST_NODES:
        one = waiting.popleft()
        if one.id in reached.ids:
            continue
        reached.ids.add(one.id)
        if is_product(one):
            reached.products.append(one)
        elif one.opcode in through:
            reached.plain.append(one)
            waiting.extend(step(one))
        else:
            reached.others.append(one)
    return reached


def is_product(instruction: Instruction) -> bool:
    """Whether it multiplies matrices."""
    return instruction.opcode in _PRODUCTS or (
        instruction.opcode == "custom-call" and instruction.custom_call_target.startswith(_PRODUCT_CALLS)
    )


def _numel(instruction: Instruction) -> int:
    size = 1
    for extent in instruction.dims:
        size *= extent
    return size


class _Graph:
    """Producers and users of values, through the borders of fusions."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._home: dict[int, int] = {}
        self._caller: dict[int, Instruction] = {}
        for key, body in program.bodies.items():
            for one in body:
                self._home[one.id] = key
                if one.opcode == "fusion":
                    self._caller.update(dict.fromkeys(one.called, one))
        self._users: dict[int, list[Instruction]] = defaultdict(list)
        for one in program.by_id.values():
            for producer in self.producers(one):
                self._users[producer.id].append(one)

    def producers(self, one: Instruction) -> list[Instruction]:
        """Where its operands come from; a fusion passes on its root, a parameter what its fusion was given."""
        by_id = self._program.by_id
        if one.opcode == "parameter":
            caller = self._caller.get(self._home.get(one.id, -1))
            if caller is None or one.parameter >= len(caller.operands):
                return []
            return [by_id[number] for number in caller.operands[one.parameter : one.parameter + 1] if number in by_id]
        if one.opcode == "fusion":
            return [by_id[root] for key in one.called if (root := self._program.roots.get(key, -1)) in by_id]
        return [by_id[number] for number in one.operands if number in by_id]

    def users(self, one: Instruction) -> list[Instruction]:
        """Who reads its result."""
        return self._users.get(one.id, [])

    def top(self, one: Instruction) -> str:
        """Name of the op that runs it: itself, or the outermost fusion around it."""
        for _ in range(16):
            caller = self._caller.get(self._home.get(one.id, -1))
            if caller is None:
                break
            one = caller
        return one.name
