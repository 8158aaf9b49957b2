"""The table of the samples in ``README.md``, written from ``catalogue.toml``."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
README: Final = HERE / "README.md"
BEGIN: Final = "<!-- begin generated: samples -->\n"
END: Final = "<!-- end generated: samples -->\n"


def note_of(file: str) -> str:
    """Path of the note beside a sample file."""
    return re.sub(r"(\.json(\.gz)?|\.sqlite|\.xplane\.pb)$", ".md", file)


def table(catalogue: dict[str, Any]) -> str:
    """One row for each sample, then one for each pair."""
    rows = ["| sample | kind | shows |", "|---|---|---|"]
    for one in catalogue["sample"]:
        files = one["files"]
        kind = "authored" if all("-authored" in file for file in files) else "recorded"
        first, *rest = (note_of(file) for file in files)
        links = ", ".join(
            [f"[{one['name']}]({first})", *(f"[{Path(note).name.split('.')[0]}]({note})" for note in rest)]
        )
        rows.append(f"| {links} | {kind}, {one['format']}, {one['device']} | **{one['title']}.** {one['story']} |")
    rows += ["", "| before | after | what changed |", "|---|---|---|"]
    rows += [f"| {one['before']} | {one['after']} | {one['story']} |" for one in catalogue["pair"]]
    return "\n".join(rows) + "\n"


def page() -> str:
    """The page with its table as it should be."""
    text = README.read_text(encoding="utf-8")
    catalogue = tomllib.loads((HERE / "catalogue.toml").read_text(encoding="utf-8"))
    start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    return text[:start] + table(catalogue) + text[end:]


def write() -> Path:
    """Bring the page up to date."""
    README.write_text(page(), encoding="utf-8")
    return README
