"""What an XLA op does to its device, from its category and its name.

Source of the categories: openxla/xla ``hlo_instruction.cc`` (``ToCategory``) and real TPU profiles; without a category
the name tells, because XLA names an instruction after its opcode.
"""

from __future__ import annotations

import re
from typing import Final

CONTROL: Final = frozenset({"while", "conditional", "call", "megacore fusion"})
"""Opcodes and categories that run other ops of the same line: they span work and are none. openxla/xla
``xla_op_utils.h`` (``MayHaveInnerOps``), read 2026-11."""

FROM_HOST: Final = frozenset(
    {"infeed", "outfeed", "host send", "host send-done", "host recv", "host recv-done", "infeed-done", "outfeed-done"}
)
"""Categories and opcodes of ops in which the device waits for the host; XProf calls them off duty
(``xla_op_utils.h``, ``IsOffDutyOp``)."""

_NUMBER: Final = re.compile(r"(\.\d+|\.remat\d*|\.clone)+$")
_WAIT: Final = re.compile(r"-done$")
_COLLECTIVE: Final = re.compile(
    r"^(all-reduce|all-gather|reduce-scatter|all-to-all|ragged-all-to-all|collective-permute|collective-broadcast"
    r"|async-collective-start)\b|^(send|recv)$"
)
_COLLECTIVE_FUSION: Final = re.compile(
    r"^(all[-_]reduce|all[-_]gather|reduce[-_]scatter|all[-_]to[-_]all)[-_ ]?(\w*[-_ ])?fusion$"
)


def opcode_of(name: str) -> str:
    """What the name of an instruction says of its opcode: ``all-reduce`` for ``%all-reduce.12 = f32[] …``."""
    return _NUMBER.sub("", name.removeprefix("%").split(" ", 1)[0])


def kind_of(name: str, category: str | None) -> str:
    """Event kind of an XLA op on a device line.

    Args:
        name: Short or full name.
        category: HLO category, if it is recorded.
    """
    opcode = opcode_of(name)
    if (category or opcode) in FROM_HOST:
        return "async_wait"
    for word in (category, opcode):
        if not word:
            continue
        if _WAIT.search(word):
            return "async_wait"
        if _COLLECTIVE.search(word) or _COLLECTIVE_FUSION.search(word):
            return "collective"
    return "xla_op"


def is_control(name: str, category: str | None) -> bool:
    """Whether the op runs others that have rows of their own."""
    return (category or opcode_of(name)) in CONTROL
