"""``check-dispatch`` as SARIF 2.1.0, the exchange format of code scanning.

The document holds no times, so that two checks of equal traces give equal files, and no names of user or machine.
Source of the format: OASIS, Static Analysis Results Interchange Format 2.1.0, errata 01. GitHub takes 25,000 results a
run, shows only results that have a file and a line, and tells alerts of several runs apart by ``partialFingerprints``.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from traceview import __version__
from traceview.render.documents import dumps
from traceview.render.outcome import EXPECTATION, INCONCLUSIVE, Level, remarks, shortened
from traceview.rules.catalogue import RULES
from traceview.rules.documentation import markdown, sections

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from traceview.render.outcome import Outcome, Place, Remark
    from traceview.rules.base import Rule

MOST_RESULTS: Final = 25_000
"""Results that GitHub takes in one run."""

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT: Final = "traceview/v1"
"""Name and version of the way fingerprints are made; a change of the way is a new name."""

_OP: Final = re.compile(r"^[\d,]+ × (?P<op>.*?): ")
_LINE: Final = re.compile(r"\(\d+\)")
_DRIVE: Final = re.compile(r"^[A-Za-z]:/")


def render_sarif(found: Outcome) -> str:
    """The document as text."""
    return dumps(sarif_document(found)) + "\n"


def sarif_document(found: Outcome) -> dict[str, Any]:
    """The document."""
    listed = remarks(found)
    shown = listed[:MOST_RESULTS]
    rules = [*(_catalogued(rule) for rule in RULES), *_OWN_RULES]
    index = {rule["id"]: at for at, rule in enumerate(rules)}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "traceview", "semanticVersion": __version__, "rules": rules}},
                "columnKind": "unicodeCodePoints",
                "invocations": [_invocation(found, len(listed) - len(shown))],
                "artifacts": [
                    {"location": _uri(path), "roles": ["analysisTarget"]}
                    for path in dict.fromkeys(one.replace("\\", "/") for one in found.trace.files)
                ],
                "results": [
                    _result(remark, index, fingerprint)
                    for remark, fingerprint in zip(shown, fingerprints(shown), strict=True)
                ],
                "properties": {"verdict": found.verdict, "summary": shortened(found.summary)},
            }
        ],
    }


def _catalogued(rule: Rule) -> dict[str, Any]:
    parts = sections(rule.doc)
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.summary.replace("``", "`")},
        "fullDescription": {"text": " ".join(parts.get("What it finds", rule.summary).split()).replace("``", "`")},
        "help": {"text": rule.doc.replace("``", "`"), "markdown": markdown(rule.doc)},
        "defaultConfiguration": {"level": _LEVELS[rule.severity.value]},
        "properties": {"tags": ["performance"]},
    }


_LEVELS: Final = {"error": "error", "warning": "warning", "info": "note"}

_OWN_RULES: Final[list[dict[str, Any]]] = [
    {
        "id": EXPECTATION,
        "name": "Expectation",
        "shortDescription": {"text": "The trace does not hold up to an expectation."},
        "fullDescription": {"text": "An expectation, prohibition or limit that the team wrote down is violated."},
        "help": {"text": "Change what runs, or the expectation. The message says what the trace shows."},
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["performance"]},
    },
    {
        "id": INCONCLUSIVE,
        "name": "Inconclusive",
        "shortDescription": {"text": "The trace cannot tell."},
        "fullDescription": {"text": "What is needed to judge was not recorded, was lost or is not recognised."},
        "help": {"text": "Record the trace with device activities and input shapes, without dropped events."},
        "defaultConfiguration": {"level": "warning"},
        "properties": {"tags": ["performance"]},
    },
]


def _invocation(found: Outcome, left_out: int) -> dict[str, Any]:
    notes = [(note.text, "note" if note.trust == "good" else "warning") for note in found.imported.notes]
    notes += [(note, "note") for note in found.notes]
    if left_out:
        notes.append((f"{left_out:,} more results are left out: a run may have {MOST_RESULTS:,}.", "warning"))
    return {
        "executionSuccessful": True,
        "exitCode": found.exit_code,
        "exitCodeDescription": found.verdict,
        "toolExecutionNotifications": [
            {"level": level, "message": {"text": shortened(text)}} for text, level in notes if text
        ],
    }


def _result(remark: Remark, index: dict[str, int], fingerprint: str) -> dict[str, Any]:
    main, *others = remark.places
    result: dict[str, Any] = {
        "ruleId": remark.rule,
        "level": {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "note"}[remark.level],
        # In a message "[text](target)" is a link, also where a name from the trace says so.
        "message": {"text": "\n".join([remark.title, *remark.details]).replace("](", "] (")},
        "locations": [{"physicalLocation": _physical(main)}],
        "partialFingerprints": {FINGERPRINT: fingerprint},
    }
    if remark.rule in index:
        result["ruleIndex"] = index[remark.rule]
    if others:
        result["relatedLocations"] = [
            {"id": at, "physicalLocation": _physical(place)} for at, place in enumerate(others, start=1)
        ]
    if finding := remark.finding:
        if finding.where:
            result["locations"][0]["logicalLocations"] = [{"fullyQualifiedName": shortened(finding.where)}]
        result["properties"] = {
            "cost_ns": finding.cost_ns,
            "confidence": finding.confidence.value,
            "fix": shortened(finding.fix),
            "false_alarm_if": shortened(finding.false_alarm_if),
        }
    if expectation := remark.expectation:
        result["properties"] = {
            "expected": shortened(expectation.text),
            "observed": shortened(expectation.observed),
            "verdict": expectation.verdict,
        }
        if expectation.accepted:
            result["suppressions"] = [{"kind": "external", "justification": shortened(expectation.accepted)}]
    return result


def _physical(place: Place) -> dict[str, Any]:
    # A trace has no line that means anything; without one the result would not be shown.
    return {"artifactLocation": _uri(place.path), "region": {"startLine": place.line or 1}}


def _uri(path: str) -> dict[str, str]:
    """A file as a URI, relative to the root of the sources unless the path is absolute."""
    # Bytes that are no text come in as lone surrogates and go out as the same bytes.
    encoded = quote(path.encode("utf-8", "surrogateescape"), safe="/~")
    if path.startswith("//"):
        return {"uri": f"file:{encoded}"}
    if path.startswith("/"):
        return {"uri": f"file://{encoded}"}
    if _DRIVE.match(path):
        return {"uri": f"file:///{path[0]}:{encoded[len('C%3A') :]}"}
    return {"uri": encoded, "uriBaseId": "%SRCROOT%"}


def fingerprints(listed: Sequence[Remark]) -> list[str]:
    """One per remark, equal for the same remark in another trace of the same program.

    Made of the rule, the ops and the place without line numbers, so neither times nor counts nor edits elsewhere in a
    file change it. Equal remarks of one run are numbered.
    """
    seen: Counter[str] = Counter()
    found = []
    for remark in listed:
        text = "\n".join(_identity(remark))
        digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:32]
        seen[digest] += 1
        found.append(f"{digest}:{seen[digest]}")
    return found


def _identity(remark: Remark) -> Iterable[str]:
    yield remark.rule
    if remark.expectation:
        yield remark.expectation.place.path
        yield remark.expectation.text
    elif finding := remark.finding:
        # One rule can say "proven" of some calls and "inferred" of others at the same place.
        yield finding.confidence.value
        # The order of places and of evidence follows the time they took.
        yield from sorted({_LINE.sub("", part) for part in finding.where.split("; ")})
        yield from sorted({match["op"] for line in finding.evidence if (match := _OP.match(line))})
