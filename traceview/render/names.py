"""Names from a trace, made safe and short enough for a terminal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_CLONE: Final = re.compile(r"( \[clone \.\w+\]|\.kd)$")
_RETURN_TYPE: Final = re.compile(r"^(void |(typename )?std::enable_if<.*?>::type )")
_ANONYMOUS: Final = "(anonymous namespace)"
_SAYS_LITTLE: Final = re.compile(r"\(anonymous namespace\)::|\b(at::native|at|c10|std)::")
"""Namespaces that say nothing about which kernel it is; others (``pytorch_flash``, ``cutlass``) do."""

_NAMESPACE: Final = re.compile(r"\b[A-Za-z_]\w*::(?=\w)")
_LITERAL: Final = re.compile(r"(\(\w+\))?-?\d+\w*|true|false")
ELLIPSIS: Final = "..."
_IMPLEMENTATION: Final = re.compile(r"(?:\bvoid )?\bgpu_kernel_impl\w*<")

_CAST: Final = re.compile(r"\((?:unsigned )?(?:bool|char|short|int|long|long long)\)(?=-?\d)")
_WRAPPER: Final = re.compile(r"^cutlass::(Kernel2?|device_kernel)$")
"""Kernels that are nothing but a call of their argument."""

_GENERIC: Final = re.compile(r"(elementwise_kernel\w*|reduce_kernel|multi_tensor_apply_kernel)$")
"""Kernels that are frames for any work: their argument names the work, so it is worth more than their own name."""

_FOLDERS: Final = re.compile(r"(?:[\w.\-]+/)+(?=[\w.\-]+\.pyx?\(\d+\))")
"""Folders before the file of a Python frame."""

_LONGEST: Final = 1 << 16
"""Characters of a name that are worth taking apart; what is longer was not written by a compiler."""

UNATTRIBUTED: Final = "Unattributed"
"""What the time in no stage is called in tables; a stage of that name stands in quotes."""

MOST_STAGE: Final = 60
"""Characters of a stage in a sentence."""

LEAST_ARGUMENT: Final = 8
"""A template argument cut shorter than this says nothing and is left out."""


def plain(text: str) -> str:
    r"""``text`` without what a terminal would obey: names in a trace are whatever its author wrote.

    Control characters and marks that change the direction of text are shown as ``\x1b``.
    """
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def stage_name(path: str, width: int = MOST_STAGE) -> str:
    """A stage as people read it: safe, short, and not to be taken for the time that is in no stage.

    Args:
        path: Path of the stage, or its last part.
        width: Most characters to show, at least 8.
    """
    text = middle_cut(plain(path), width)
    return f'"{text}"' if text.strip().casefold() == UNATTRIBUTED.casefold() else text


def host_name(name: str, width: int) -> str:
    """The name of an op, a call, a range or a Python frame in at most ``width`` characters.

    The folders of a Python file go first, then the end of the text.

    Args:
        name: As recorded.
        width: Most characters to show, at least 8.
    """
    text = plain(name[:_LONGEST])
    if len(text) > width:
        text = _FOLDERS.sub("", text)
    return text if len(text) <= width else text[: width - len(ELLIPSIS)] + ELLIPSIS


def kernel_name(name: str, width: int) -> str:
    """A kernel name of at most ``width`` characters that still says which kernel it is.

    The return type and the parameter list go first, then namespaces that say little, then nested template
    arguments, then all arguments but the first that is a type, and only then the middle of what is left.

    Args:
        name: Demangled name as recorded.
        width: Most characters to show, at least 8.
    """
    if len(name) > _LONGEST:
        return middle_cut(plain(name[: _LONGEST // 2] + name[-_LONGEST // 2 :]), width)
    text = plain(name)
    if len(text) <= width:
        return text
    text = _without_parameters(_CLONE.sub("", _RETURN_TYPE.sub("", _one_style(text))))
    if len(text) > width:
        text = _SAYS_LITTLE.sub("", text)
    deepest = _template_depth(text)
    if len(text) > width and deepest:
        text = _unwrapped(text)
        outer, arguments = text[: text.index("<")], text[text.index("<") :]
        text = outer + _NAMESPACE.sub("", arguments)
        for depth in range(deepest, 1, -1):
            if len(text) > width:
                text = _collapsed(text, depth)
        if len(text) > width:
            text = _with_first_argument(text, width)
    if len(text) > width:
        text = text.removesuffix(f"<{ELLIPSIS}>")
    if len(text) > width:
        text = text[text.rfind("::") + 2 :] if re.fullmatch(r"[\w:]+", text) and "::" in text else text
    return middle_cut(text, width)


def _one_style(text: str) -> str:
    """Nsight Systems demangles in another style than most: ``f<(int)4>`` for ``f<4>``, ``<unnamed>``."""
    return _CAST.sub("", text).replace("<unnamed>::", f"{_ANONYMOUS}::")


def kernel_names(names: Sequence[str], width: int) -> list[str]:
    """Several kernel names, each of at most ``width`` characters, none like another that means something else.

    Two variants of one kernel often differ in the very part that shortening takes out. Those are shown by their
    beginning and by the part in which they differ.
    """
    short = [kernel_name(name, width) for name in names]
    alike: dict[str, set[str]] = {}
    for name, text in zip(names, short, strict=True):
        alike.setdefault(text, set()).add(name)
    told = {}
    for variants in alike.values():
        if len(variants) > 1:
            told.update(_told_apart(sorted(variants), width))
    return [told.get(name, text) for name, text in zip(names, short, strict=True)]


def _told_apart(names: list[str], width: int) -> dict[str, str]:
    """Names that shorten to the same text, each cut so that the first difference stays."""
    plainly = [_RETURN_TYPE.sub("", _one_style(plain(name[:_LONGEST]))) for name in names]
    texts = [_unwrapped(_SAYS_LITTLE.sub("", text)) for text in plainly]
    if len(set(texts)) < len(texts):
        texts = plainly
    columns = enumerate(zip(*texts, strict=False))
    same = next((at for at, letters in columns if len(set(letters)) > 1), min(map(len, texts)))
    # Begin at the start of the word in which they differ.
    while same and (texts[0][same - 1].isalnum() or texts[0][same - 1] == "_") and texts[0][same - 1 : same].islower():
        same -= 1
    head = max(width // 3, 8)
    if same <= head:
        return {
            name: text if len(text) <= width else text[: width - 3] + ELLIPSIS
            for name, text in zip(names, texts, strict=True)
        }
    room = max(width - head - 2 * len(ELLIPSIS), 8)
    return {
        name: f"{text[:head]}{ELLIPSIS}{text[same : same + room]}{ELLIPSIS if len(text) > same + room else ''}"
        for name, text in zip(names, texts, strict=True)
    }


def _with_first_argument(text: str, width: int) -> str:
    """``f<4, Add<...>, 3>`` becomes ``f<Add<...>, ...>``, or ``f<...>`` where not even that fits."""
    start, end = text.index("<"), text.rindex(">")
    outer, rest = text[:start], text[end + 1 :]
    arguments = _split(text[start + 1 : end])
    telling = next((one for one in arguments if not _LITERAL.fullmatch(one)), "")
    more = f", {ELLIPSIS}" if len(arguments) > 1 else ""
    if telling and _WRAPPER.search(outer):
        return middle_cut(telling, width)
    if _GENERIC.search(outer) and len(outer) > width // 2:
        outer = middle_cut(outer, width // 2)
    room = width - len(outer) - len(rest) - 2
    if len(telling) > room - len(more):
        telling = re.split(r"[<(]", telling)[0]
    if telling and room >= min(len(telling), LEAST_ARGUMENT) + len(more):
        return f"{outer}<{middle_cut(telling, room - len(more))}{more}>{rest}"
    return f"{outer}<{ELLIPSIS}>{rest}"


def _unwrapped(text: str) -> str:
    """``f<gpu_kernel_impl<work>>`` becomes ``f<work>``: the wrapper is the same for every elementwise kernel."""
    found = _IMPLEMENTATION.search(text)
    if not found:
        return text
    depth = 1
    for at in range(found.end(), len(text)):
        depth += (text[at] == "<") - (text[at] == ">" and text[at - 1] != "-")
        if depth == 0:
            return text[: found.start()] + text[found.end() : at] + text[at + 1 :]
    return text


def _split(arguments: str) -> list[str]:
    """Split template arguments at the commas of their own level."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(arguments):
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth == 0:
            parts.append(arguments[start:at].strip())
            start = at + 1
    return [*parts, arguments[start:].strip()]


def middle_cut(text: str, width: int) -> str:
    """``text`` cut in the middle to ``width`` characters: both ends of a name tell more than its middle."""
    if len(text) <= width:
        return text
    keep = max(width - len(ELLIPSIS), 2)
    tail = keep * 2 // 5
    return f"{text[: keep - tail]}{ELLIPSIS}{text[len(text) - tail :]}"


def _without_parameters(text: str) -> str:
    """Cut a C++ parameter list: the first ``(`` outside template arguments that follows a name directly."""
    depth = 0
    at = 0
    while at < len(text):
        if text.startswith(_ANONYMOUS, at):
            at += len(_ANONYMOUS)
            continue
        character = text[at]
        if character == "<":
            depth += 1
        elif character == ">" and text[at - 1] != "-":
            depth -= 1
        elif character == "(" and depth == 0 and at and (text[at - 1].isalnum() or text[at - 1] in "_>"):
            return text[:at]
        at += 1
    return text


def _template_depth(text: str) -> int:
    depth = deepest = 0
    for at, character in enumerate(text):
        if character == "<":
            depth += 1
            deepest = max(deepest, depth)
        elif character == ">" and text[at - 1] != "-":
            depth -= 1
            if depth < 0:
                return 0
    # Brackets that do not match are operators; such a name is only cut in the middle.
    return deepest if depth == 0 else 0


def _collapsed(text: str, level: int) -> str:
    """Replace the template arguments that are ``level`` deep by an ellipsis."""
    out: list[str] = []
    depth = 0
    for at, character in enumerate(text):
        if character == ">" and text[at - 1] != "-":
            depth -= 1
        if depth < level:
            out.append(character)
        if character == "<":
            depth += 1
            if depth == level:
                out.append(ELLIPSIS)
    return "".join(out)
