"""The forms in which ``check-dispatch`` can be written, by name. Each is a function of the same result."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

    from traceview.errors import ExitCode
    from traceview.gate import CheckResult
    from traceview.render.outcome import Outcome
    from traceview.report import ImportSummary, TraceInfo

DEFAULT_LIMIT: Final = 12
"""Attention rows in the text form if nothing else is asked for."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A check and what its outputs need besides.

    Attributes:
        result: The check.
        trace: Which trace.
        imported: How its import went.
        code: What the program ends with, options considered.
        limit: Most attention rows in the text form.
        root: Folder in which the check ran, to which places in files are relative.
    """

    result: CheckResult
    trace: TraceInfo
    imported: ImportSummary
    code: ExitCode
    limit: int
    root: str = ""


def render(form: str, checked: Checked) -> str:
    """The result in one form; text is 100 columns wide, and without colour unless ``FORCE_COLOR`` is set.

    Args:
        form: One of :data:`FORMATS`.
        checked: What to write.
    """
    return FORMATS[form](checked)


def write(form: str, checked: Checked, out: TextIO) -> None:
    """Write the result; unlike :func:`render`, text takes width and colour from where it goes."""
    if form == "text":
        _write_text(checked, out)
    elif form == "junit":
        from traceview.render.markup import write_markup

        write_markup(render(form, checked), out)
    else:
        out.write(render(form, checked))


def _write_text(checked: Checked, out: TextIO) -> None:
    from traceview.render.dispatch_text import write_check
    from traceview.render.page import Page

    write_check(checked.result, checked.trace, checked.imported, Page(out), code=checked.code, limit=checked.limit)


def plain_text(checked: Checked) -> str:
    """The text form without colour, whatever the environment asks for."""
    from traceview.render.dispatch_text import write_check
    from traceview.render.page import Page

    out = io.StringIO()
    page = Page(out, colour=False)
    write_check(checked.result, checked.trace, checked.imported, page, code=checked.code, limit=checked.limit)
    return out.getvalue()


def _text(checked: Checked) -> str:
    out = io.StringIO()
    _write_text(checked, out)
    return out.getvalue()


def _json(checked: Checked) -> str:
    from traceview.render.documents import check_document, dumps

    return dumps(check_document(checked.result, checked.trace, checked.imported, checked.code)) + "\n"


def _markdown(checked: Checked) -> str:
    from traceview.render.markdown import render_markdown

    return render_markdown(_outcome(checked))


def summary_markdown(checked: Checked, most_bytes: int) -> str:
    """The Markdown form for a job summary, which may be larger than a comment."""
    from traceview.render.markdown import render_markdown

    return render_markdown(_outcome(checked), most_bytes)


def _junit(checked: Checked) -> str:
    from traceview.render.junit import render_junit

    return render_junit(_outcome(checked))


def _sarif(checked: Checked) -> str:
    from traceview.render.sarif import render_sarif

    return render_sarif(_outcome(checked))


def _github(checked: Checked) -> str:
    from traceview.render.github import render_github

    return render_github(_outcome(checked))


def _outcome(checked: Checked) -> Outcome:
    from traceview.render.outcome import outcome

    return outcome(checked.result, checked.trace, checked.imported, checked.code, root=checked.root)


FORMATS: Final[dict[str, Callable[[Checked], str]]] = {
    "text": _text,
    "json": _json,
    "markdown": _markdown,
    "junit": _junit,
    "sarif": _sarif,
    "github": _github,
}
"""Every form and what writes it."""
