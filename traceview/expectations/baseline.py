"""The baseline: known findings and violations in a file of their own, written only when asked to."""

from __future__ import annotations

import os
import re
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final

from traceview.expectations.accepting import covers_finding, covers_result, is_current
from traceview.expectations.model import ExpectationResult, Verdict
from traceview.expectations.reading import read_baseline
from traceview.expectations.writing import accept_lines, write_file
from traceview.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.expectations.model import Accept

DEFAULT_DAYS: Final = 90
"""How long something new is accepted if nothing else is said."""

_HEAD: Final = (
    "# Known findings and violations that do not count for now. Each needs a reason and a last day.",
    "# Written by `traceview check-dispatch --update-baseline`; edit it freely.",
    "schema = 1",
)

_TEXT: Final = re.compile(r"\"{3}.*?\"{3}|'{3}.*?'{3}|\"(?:\\.|[^\"\\])*\"|'[^'\n]*'", re.DOTALL)
"""A text in TOML, which may hold what looks like a comment."""

_OWN_COMMENTS: Final = frozenset(_HEAD)


def read_or_start(path: str) -> tuple[Accept, ...]:
    """A baseline that is about to be updated: a file that is not there yet is empty."""
    return read_baseline(path) if os.path.lexists(path) else ()


def has_own_comments(path: str) -> bool:
    """Whether the file holds comments that somebody wrote into it: writing it anew keeps none of them."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
    except FileNotFoundError:
        return False
    without_texts = _TEXT.sub("", text)
    return any("#" in line and line.strip() not in _OWN_COMMENTS for line in without_texts.splitlines())


def last_day(expires: date | str | None, today: date) -> date | None:
    """What a user asked for: a date, ``"never"`` (``None``), or nothing (:data:`DEFAULT_DAYS` from today)."""
    if isinstance(expires, date):
        return expires
    return None if expires == "never" else today + timedelta(days=DEFAULT_DAYS)


def updated(
    kept: Sequence[Accept],
    findings: Sequence[Finding],
    results: Sequence[ExpectationResult],
    *,
    reason: str,
    expires: date | None,
    today: date,
) -> str:
    """The text of a baseline.

    Entries that have not expired stay as they are, with their reason, also those that this trace does not need. Expired
    ones go. Errors and violated expectations that nothing covers are added.

    Args:
        kept: The baseline as it is.
        findings: Findings as the check left them: what is accepted already is no error any more.
        results: Results of the check.
        reason: Why the new ones are accepted.
        expires: Their last day, ``None`` for never.
        today: Entries that ended before have expired.
    """
    current = [one for one in kept if is_current(one, today)]
    entries = [
        accept_lines(
            rule=one.rule, expectation=one.expectation, where=one.where, reason=one.reason, expires=one.expires
        )
        for one in current
    ]
    entries += [
        accept_lines(rule=one.code, expectation=None, where=one.where, reason=reason, expires=expires)
        for one in findings
        if one.severity is Severity.ERROR and not any(covers_finding(known, one) for known in current)
    ]
    entries += [
        accept_lines(rule=None, expectation=one.text, where=None, reason=reason, expires=expires)
        for one in results
        if one.counts is Verdict.FAIL and not any(covers_result(known, one) for known in current)
    ]
    unique = list(dict.fromkeys(tuple(entry) for entry in entries))
    return "\n\n".join(["\n".join(_HEAD), *("\n".join(entry) for entry in unique)]) + "\n"


def write_baseline(path: str, text: str) -> None:
    """Replace the file."""
    write_file(path, text, replace=True)
