"""Write TOML for people: quoted texts, comments that cannot break out, files that are replaced whole."""

from __future__ import annotations

import json
import os
import re
import stat
import tempfile
from contextlib import suppress
from typing import TYPE_CHECKING

from traceview.errors import TraceviewError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def quoted(text: str) -> str:
    """A TOML basic string."""
    # JSON escapes are TOML escapes, but TOML also wants DEL escaped; what a lone surrogate stood for is lost.
    body = json.dumps(text, ensure_ascii=False)
    return _UNSAFE.sub(lambda found: "?" if found[0] >= "\ud800" else f"\\u{ord(found[0]):04x}", body)


def listed(texts: Sequence[str]) -> str:
    """One text, or an array of several."""
    return quoted(texts[0]) if len(texts) == 1 else f"[{', '.join(quoted(text) for text in texts)}]"


def comment(text: str, width: int = 110) -> list[str]:
    """Comment lines; names in a trace are whatever its author wrote, so control characters and line ends go."""
    import textwrap

    clean = "".join(character if character.isprintable() else "?" for character in text)
    return [f"# {line}" for line in textwrap.wrap(clean, width - 2, break_on_hyphens=False)] or ["#"]


def accept_lines(
    *, rule: str | None, expectation: str | None, where: str | None, reason: str, expires: date | None
) -> list[str]:
    """One ``[[accept]]``."""
    return [
        "[[accept]]",
        *([f"rule = {quoted(rule)}"] if rule else []),
        *([f"expectation = {quoted(expectation)}"] if expectation else []),
        *([f"where = {quoted(where)}"] if where else []),
        f"reason = {quoted(reason)}",
        f"expires = {expires.isoformat() if expires else quoted('never')}",
    ]


def refuse_existing(path: str) -> None:
    """Raise if there is a file of that name.

    Raises:
        TraceviewError: there is.
    """
    if os.path.lexists(path):
        raise TraceviewError(
            "exists", where=path, why="there is such a file already.", next_step="Choose another name, or add --force."
        )


def write_file(path: str, text: str, *, replace: bool) -> None:
    """Write a file whole or not at all.

    Args:
        path: Where to.
        text: What.
        replace: Whether a file of that name may be replaced.

    Raises:
        TraceviewError: there is such a file already, or it cannot be written.
    """
    if not replace:
        refuse_existing(path)
    if os.path.isdir(path):
        raise TraceviewError("is-a-folder", where=path, why="this is a folder.", next_step="Name a file in it.")
    # A link stays a link: what it points to is replaced.
    target = os.path.realpath(path)
    temporary = ""
    try:
        mode = stat.S_IMODE(os.stat(target).st_mode) if os.path.exists(target) else 0o666 & ~_umask()
        handle, temporary = tempfile.mkstemp(prefix=".traceview-", dir=os.path.dirname(target))
        with open(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except (OSError, ValueError) as error:
        with suppress(OSError):
            os.unlink(temporary)
        reason = getattr(error, "strerror", None) or str(error)
        raise TraceviewError(
            "cannot-write",
            where=path,
            why=f"cannot be written ({reason}).",
            next_step="Check the folder and its permissions.",
        ) from None


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
