"""The meaning of single JSON values in a Kineto file: exact times, whole numbers, labels, text with bad escapes.

Both readers use these functions, so that a value means the same in either.
"""

from __future__ import annotations

import json
import re
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from typing import Final

INT64_MAX: Final = (1 << 63) - 1
LABEL_LIMIT: Final = -(1 << 61)
"""Whole numbers below this are kept as labels, so that they cannot be mistaken for an index of one."""

_WHOLE: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,19})")
_DECIMAL: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_LENIENT: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?(?P<exponent>[eE][+-]?[0-9]+)?", re.ASCII
)
_SPLIT_SIGN: Final = re.compile(r"(-?[0-9]+)\.(-[0-9]{1,3})")
_MAX_DIGITS: Final = 400
_PYTHON_FRAME: Final = re.compile(r"\.pyw?\([0-9]+\): ")
_SIMPLE_ESCAPE_RESULT: Final = re.compile("[\b\f\n\r\t]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def decimal_us_to_ns(text: str) -> int | None:
    """Microseconds as decimal text to exact whole nanoseconds, half away from zero; None if not in the int64 range.

    >>> decimal_us_to_ns("1712195495519689.047")
    1712195495519689047
    """
    if len(text) > _MAX_DIGITS or not _DECIMAL.fullmatch(text):
        return None
    try:
        exact = Decimal(text)
        if exact.adjusted() > 18:
            return None
        if exact.adjusted() < -12:
            return 0
        with localcontext() as context:
            context.prec = _MAX_DIGITS + 16
            ns = int((exact * 1000).to_integral_value(rounding=ROUND_HALF_UP))
    except InvalidOperation:
        return None
    return ns if -INT64_MAX <= ns <= INT64_MAX else None


def split_sign_to_ns(text: str) -> int | None:
    """The nanoseconds that a writer meant by ``0.-01``: it printed whole microseconds and the rest separately.

    A C++ writer that prints ``ns / 1000`` and ``ns % 1000`` gives both parts the sign of a negative number.
    """
    match = _SPLIT_SIGN.fullmatch(text)
    if match is None or len(match[1]) > 16:
        return None
    return int(match[1]) * 1000 + int(match[2])


def whole_number(text: str) -> int | None:
    """The whole number that ``text`` is, if it is one that fits int64, in its shortest form.

    >>> whole_number("25738"), whole_number("007"), whole_number("1e3")
    (25738, None, None)
    """
    if not _WHOLE.fullmatch(text):
        return None
    value = int(text)
    return value if -INT64_MAX - 1 <= value <= INT64_MAX else None


def is_json_number(text: str) -> bool:
    """Whether ``text`` is a JSON number."""
    return _DECIMAL.fullmatch(text) is not None


def decode_string(raw: str) -> tuple[str, str | None]:
    r"""The text between the quotes of a JSON string as the writer meant it.

    Older writers did not escape the backslashes of Windows paths. Such text is kept as it stands.
    ``torch\nn\functional.py(8): f`` would even decode, but a line feed in the name of a Python frame is never meant.

    Args:
        raw: What stands between the quotes.

    Returns:
        The text, and the kind of repair it took or None.
    """
    if "\\" not in raw:
        return without_surrogates(raw)
    try:
        text = json.loads(f'"{raw}"', strict=False)
    except ValueError:
        return without_surrogates(raw)[0], "repaired-backslash"
    if _PYTHON_FRAME.search(raw) and _SIMPLE_ESCAPE_RESULT.search(text) and not _SIMPLE_ESCAPE_RESULT.search(raw):
        return without_surrogates(raw)[0], "repaired-backslash"
    return without_surrogates(text)


def without_surrogates(text: str) -> tuple[str, str | None]:
    """A string that UTF-8 can hold."""
    if text.isascii() or not _SURROGATE.search(text):
        return text, None
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text), "repaired-surrogate"


def lenient_number(text: str) -> str | None:
    """The JSON number that ``text`` means although it is none (``007``, ``+5``, ``.5``, ``5.``), or None."""
    match = _LENIENT.fullmatch(text)
    if match is None or not (match["whole"] or match["part"]):
        return None
    sign = "-" if match["sign"] == "-" else ""
    whole = match["whole"].lstrip("0") or "0"
    part = f".{match['part']}" if match["part"] else ""
    return f"{sign}{whole}{part}{match['exponent'] or ''}"
