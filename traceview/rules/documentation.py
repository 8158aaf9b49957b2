"""The documentation of a rule, taken apart: its docstring has fixed headings and indented text below each."""

from __future__ import annotations

import textwrap

from traceview.rules.base import HEADINGS


def sections(doc: str) -> dict[str, str]:
    """Text under each heading of a rule's docstring, without its indentation; ``""`` has what stands above them."""
    found: dict[str, list[str]] = {"": []}
    heading = ""
    for line in doc.splitlines():
        if line in HEADINGS:
            heading = line
            found[heading] = []
        else:
            found[heading].append(line)
    return {name: textwrap.dedent("\n".join(lines)).strip() for name, lines in found.items()}


def markdown(doc: str) -> str:
    """A rule's docstring as Markdown."""
    parts = [f"**{name}.** {text}" if name else text for name, text in sections(doc).items() if text]
    return "\n\n".join(parts).replace("``", "`")
