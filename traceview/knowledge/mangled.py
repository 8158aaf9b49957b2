"""A readable form of Itanium-mangled kernel names, as far as signatures need it.

Profilers keep a name mangled when their demangler gave up, which is common for long CK and CUTLASS templates. The
names of namespaces, functions and template arguments are spelled out in a mangled name with their length in front; this
module lists them in order. It is no demangler: qualifiers, most builtin types and back references are left out.

Grammar: https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling (``<source-name> ::= <length> <identifier>``).
"""

from __future__ import annotations

import re
from typing import Final

_LONGEST_NAME: Final = 100_000


_BUILTIN_TYPES: Final = (("DF16b", "bfloat16_t"), ("DF16_", "_Float16"), ("Dh", "_Float16"))
"""Low-precision builtin types worth naming: they are the precision of many ROCm kernels."""

_SOURCE_NAME: Final = re.compile(r"([0-9]{1,4})([A-Za-z_])")
_SKIPPED: Final = re.compile(r"S[0-9A-Z]*_|T[0-9A-Z]*_|L[a-z]n?[0-9]+E")
"""Back references, template parameters and integer literals: their digits are not lengths."""


def expand_mangled(name: str) -> str:
    """The identifiers of a mangled name: the nested name first, then the template arguments in angle brackets.

    ``_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdI…`` becomes ``ck_tile::kentry<Rmsnorm2dFwd, …>``. A name that is not
    mangled is returned as it is.

    Args:
        name: a symbol name that starts with ``_Z``.
    """
    if not name.startswith("_Z") or len(name) > _LONGEST_NAME:
        return name
    nested: list[str] = []
    arguments: list[str] = []
    at, in_arguments = 2, False
    while at < len(name):
        words = arguments if in_arguments else nested
        if skipped := _SKIPPED.match(name, at):
            at = skipped.end()
            continue
        if found := _SOURCE_NAME.match(name, at):
            start = found.start(2)
            identifier = name[start : start + int(found[1])]
            at = start + len(identifier)
            # `E` after a number is the end of an enumerator, not an identifier of one letter.
            if identifier not in ("", "E") and not identifier.startswith("_GLOBAL__N_"):
                words.append(identifier)
            continue
        builtin = next((word for code, word in _BUILTIN_TYPES if in_arguments and name.startswith(code, at)), None)
        if builtin is not None:
            words.append(builtin)
            at += 2 if builtin == "_Float16" and name.startswith("Dh", at) else 5
            continue
        if name[at] == "I" and nested:
            in_arguments = True
        elif name[at] == "E" and nested and not in_arguments:
            break
        at += 1
    if not nested:
        return name
    readable = "::".join(nested)
    return f"{readable}<{', '.join(arguments)}>" if arguments else readable
