"""Read ``dispatch.toml`` and baselines.

Nothing is guessed and nothing is skipped: an unknown key or word is an error with the nearest known one, and all errors
of a file are said at once, each with its line.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from traceview.attention import Attribution
from traceview.expectations.circumstances import bounds, can_hold
from traceview.expectations.limits import LIMITS
from traceview.expectations.lines import places_of
from traceview.expectations.model import Accept, Context, Expect, Expectations, Forbid, Limit, Policy, Wanted, When
from traceview.expectations.tables import Problems, Table, parse, toml_values
from traceview.expectations.versions import is_version
from traceview.expectations.vocabulary import (
    FAMILIES,
    all_implementations,
    implementations,
    nearest,
    precisions,
    providers,
)
from traceview.knowledge.dtypes import FLOATING
from traceview.rules.catalogue import RULES, find_rule
from traceview.stages import StagePattern

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA: Final = 1
_GLOB: Final = frozenset("*?[")
_BRACKETS: Final = re.compile(r"\[!?+\]?+[^\]]*+\]")
"""What ``fnmatch`` takes for a set of characters."""
_DIRECTIONS: Final = ("forward", "backward")
_ARCHITECTURE: Final = re.compile(r"(sm|gfx)[\d*?\[]|[*?\[]")


def read_expectations(path: str) -> Expectations:
    """Read a file of expectations.

    Raises:
        ExpectationsError: the file cannot be read, is not TOML, or says something that is not known.
    """
    problems, top = _open(path, if_missing="write one with `traceview init-expectations TRACE -o FILE`")
    return _expectations(problems, top)


def expectations_of(document: Mapping[Any, Any], *, path: str, line: int) -> Expectations:
    """Take expectations that are written in Python, as a dict of the same shape as a file.

    Args:
        document: What ``tomllib`` would make of the file. ``schema`` may be left out.
        path: File in which the dict stands; every message and every result names it.
        line: Its line there.

    Raises:
        ExpectationsError: it says something that is not known, or holds what TOML cannot.
    """
    problems = Problems(path)
    values = toml_values(document, line, problems)
    problems.raise_if_any()
    values.setdefault("schema", SCHEMA)
    top = Table(values, places_of(values, line), "", problems)
    _check_schema(problems, top)
    return _expectations(problems, top)


def _expectations(problems: Problems, top: Table) -> Expectations:
    policy = top.text("policy", known=tuple(Policy))
    context = _context(top.table("context"))
    expects = tuple(_expect(table) for table in top.tables("expect"))
    forbids = tuple(_forbid(table) for table in top.tables("forbid"))
    limits = _limits(top.table("limits"))
    accepts = tuple(_accept(table) for table in top.tables("accept"))
    stages = _stages(top.table("stages"))
    top.no_more()
    if policy == Policy.NONE and not any(top.has(key) for key in ("expect", "forbid", "limits")):
        top.problem(
            'policy = "none" and nothing stated: nothing could ever fail. Add [[expect]], [[forbid]] or [limits].',
            "policy",
        )
    problems.raise_if_any()
    return Expectations(
        path=problems.path,
        policy=Policy(policy or Policy.BUILTIN),
        context=context,
        expects=expects,
        forbids=forbids,
        limits=limits,
        accepts=accepts,
        stages=stages,
    )


def read_baseline(path: str) -> tuple[Accept, ...]:
    """Read a baseline: a file of ``[[accept]]`` tables alone.

    Raises:
        ExpectationsError: as for :func:`read_expectations`.
    """
    problems, top = _open(path, if_missing="add --update-baseline REASON to write one")
    accepts = tuple(_accept(table) for table in top.tables("accept"))
    for key in ("policy", "context", "expect", "forbid", "limits", "stages"):
        if top.has(key):
            top.problem(f"a baseline holds only [[accept]]: {key} belongs to the file of --expect.", key)
            top.skip(key)
    top.no_more()
    problems.raise_if_any()
    return accepts


def _open(path: str, *, if_missing: str) -> tuple[Problems, Table]:
    document, place = parse(path, if_missing=if_missing)
    problems = Problems(path)
    top = Table(document, place, "", problems)
    _check_schema(problems, top)
    return problems, top


def _check_schema(problems: Problems, top: Table) -> None:
    schema = top.count("schema", least=1)
    if not top.has("schema"):
        problems.add(1, f"schema is missing. Write schema = {SCHEMA} on the first line.")
    elif schema not in (None, SCHEMA):
        top.problem(f"schema {schema} is not known: this version reads {SCHEMA}. Update traceview.", "schema")


def _context(table: Table | None) -> Context:
    if table is None:
        return Context()
    values: dict[str, Any] = {key: table.text(key) for key in ("torch", "cudnn", "cuda", "gpu", "notes")}
    for key in ("torch", "cudnn", "cuda"):
        if values[key] is not None and not is_version(values[key]):
            table.problem(f'{key} must be a version such as "2.9" or "2.9.1", not "{values[key][:40]}".', key)
    table.no_more()
    return Context(**values)


def _wanted(table: Table) -> Wanted:
    op = table.text("op")
    if op is not None:
        _check_op(table, op)
    stage = table.text("stage")
    _check_glob(table, "op", op)
    _check_glob(table, "stage", stage)
    return Wanted(
        op=op,
        stage=stage,
        direction=table.text("direction", known=_DIRECTIONS),
        implementation=_implementation(table, op),
        provider=table.texts("provider", providers()),
        tensor_core=table.flag("tensor_core"),
        precision=table.texts("precision", precisions()),
    )


def _implementation(table: Table, op: str | None) -> tuple[str, ...]:
    known = implementations(op) if op in FAMILIES else all_implementations()
    if known:
        return table.texts("implementation", known)
    table.skip("implementation")
    if table.has("implementation"):
        table.problem(f"no implementations of {op} are told apart, so none can be asked for.", "implementation")
    return ()


def _check_op(table: Table, op: str) -> None:
    """A word that is nearly a family is a typing error: an op of that name hardly exists."""
    if op in FAMILIES or "::" in op or _GLOB & set(op):
        return
    near = nearest(op, FAMILIES)
    if near:
        table.problem(f'op cannot be "{op[:60]}". Did you mean "{near}"? An op is written as aten::{op[:40]}.', "op")
    elif op in {"unknown", *Attribution}:
        table.problem(f'op cannot be "{op}". Families: {", ".join(FAMILIES)}.', "op")


def _check_glob(table: Table, key: str, glob: str | None) -> None:
    """A bracket that nothing closes means itself, which hardly anybody wants."""
    if glob is not None and "[" in _BRACKETS.sub("", glob):
        table.problem(
            f'{key} = "{glob[:60]}" has "[" without "]". Close it, or write "[[]" for the character itself.', key
        )


def _when(table: Table | None) -> tuple[When, tuple[str, ...]]:
    """For which traces, and for which types of inputs."""
    if table is None:
        return When(), ()
    versions = {key: table.text(key) for key in ("torch", "cudnn", "cuda")}
    for key, text in versions.items():
        if text is None:
            continue
        found = bounds(text)
        if found is None:
            table.problem(f'{key} must be a version or comparisons, "2.9" or ">=2.9, <2.11", not "{text[:40]}".', key)
        elif not can_hold(found):
            table.problem(f'{key} = "{text[:40]}" can never hold: no version is all that.', key)
    arch = tuple(name.lower().replace("sm_", "sm") for name in table.globs("arch"))
    gpu = table.globs("gpu")
    for at, name in enumerate(arch):
        if not _ARCHITECTURE.match(name):
            table.problem(
                f'arch cannot be "{name[:40]}": write "sm90", "gfx942", or a glob such as "sm9*". '
                'A product is gpu = "*H100*".',
                "arch",
                at,
            )
    for key, names in (("arch", arch), ("gpu", gpu)):
        for name in names:
            _check_glob(table, key, name)
    when = When(**versions, arch=arch, gpu=gpu)
    dtype = table.texts("dtype", FLOATING)
    table.no_more()
    if not table.values:
        table.problem("when is empty. Add torch, cudnn, cuda, arch, gpu or dtype, or remove it.")
    return when, dtype


def _expect(table: Table) -> Expect:
    wanted = _wanted(table)
    min_share = table.share("min_share", zero=False)
    min_count = table.count("min_count", least=1)
    when, dtype = _when(table.table("when"))
    table.no_more()
    if not table.has("op"):
        table.problem('[[expect]] needs op: a family such as "attention", an op name, or a glob of op names.')
    asked = [key for key in ("implementation", "provider", "tensor_core", "precision") if table.has(key)]
    if not asked and table.has("min_share"):
        table.problem("min_share is a share of the work that has some property: add implementation, …", "min_share")
    elif not asked and not table.has("min_count"):
        table.problem(
            "[[expect]] says nothing to check. Add implementation, provider, tensor_core, precision or min_count."
        )
    return Expect(table.line, replace(wanted, dtype=dtype), 1.0 if min_share is None else min_share, min_count, when)


def _forbid(table: Table) -> Forbid:
    wanted = _wanted(table)
    kernel = table.text("kernel")
    _check_glob(table, "kernel", kernel)
    rule = _rule(table)
    when, dtype = _when(table.table("when"))
    table.no_more()
    others = [
        key
        for key in ("op", "implementation", "provider", "tensor_core", "precision", "kernel", "direction", "stage")
        if table.has(key)
    ]
    if table.has("rule") and others:
        table.problem(f"rule stands alone: a finding cannot be narrowed by {others[0]}.", others[0])
    elif table.has("rule") and dtype:
        table.problem("rule stands alone: a finding cannot be narrowed by dtype.", "when")
    elif not table.has("rule") and not set(others) - {"direction", "stage"}:
        table.problem("[[forbid]] needs implementation, op, kernel, provider, tensor_core, precision or rule.")
    return Forbid(table.line, replace(wanted, dtype=dtype), kernel, rule, when)


def _rule(table: Table) -> str | None:
    text = table.text("rule")
    if text is None:
        return None
    rule = find_rule(text)
    if rule is None:
        codes = [name for one in RULES for name in (one.code, one.name)]
        near = nearest(text, codes)
        hint = f'Did you mean "{near}"?' if near else f"Rules: {', '.join(one.code for one in RULES)}."
        table.problem(f'there is no rule "{text[:60]}". {hint}', "rule")
        return None
    return rule.code


def _limits(table: Table | None) -> tuple[Limit, ...]:
    if table is None:
        return ()
    found = []
    for key, limit in LIMITS.items():
        if limit.words:
            word = table.text(key, known=limit.words)
            if word is not None:
                found.append(Limit(table.place.at(key), key, limit.words.index(word), word))
            continue
        most = table.share(key, zero=True) if limit.is_share else table.count(key, least=0)
        if most is not None:
            found.append(Limit(table.place.at(key), key, most))
    table.no_more()
    if not table.values:
        table.problem("[limits] is empty. Add a limit or remove it.")
    return tuple(sorted(found, key=lambda limit: limit.line))


def _stages(table: Table | None) -> tuple[StagePattern, ...]:
    if table is None:
        return ()
    found = []
    for stage in table.values:
        pattern = table.text(stage)
        one = StagePattern(stage, pattern or "")
        wrong = one.problem() if pattern else None
        if wrong:
            table.problem(f"{stage[:60] or 'an empty key'}: {wrong}.", stage)
        found.append(one)
    if not table.values:
        table.problem('[stages] is empty. Add a stage, e.g. denoise = "transformer|dit", or remove it.')
    return tuple(found)


def _accept(table: Table) -> Accept:
    rule = _rule(table)
    expectation = table.text("expectation")
    where = table.text("where")
    reason = table.text("reason")
    expires = table.day("expires")
    table.no_more()
    if table.has("rule") == table.has("expectation"):
        table.problem("[[accept]] needs either rule or expectation, to say what is accepted.")
    if table.has("expectation") and table.has("where"):
        table.problem("where narrows a rule; an expectation has no place of its own.", "where")
    if not table.has("reason"):
        table.problem("[[accept]] needs reason: why is this accepted?")
    if not table.has("expires"):
        table.problem('[[accept]] needs expires: a date such as 2027-06-30, or "never".')
    return Accept(
        path=table.problems.path,
        line=table.line,
        rule=rule,
        expectation=expectation,
        where=where,
        reason=reason or "",
        expires=expires if isinstance(expires, date) else None,
    )
