"""Conditions on dtypes, flags, dropout and the device."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from traceview.eligibility.facts import HALF, RECORDED_BY, Answer, Facts, Truth, missing, no, yes
from traceview.eligibility.worlds import possible_orders
from traceview.knowledge import sdpa
from traceview.knowledge.releases import Version, parse_version, version_text

if TYPE_CHECKING:
    from collections.abc import Mapping

_AMD_LISTED: Final = re.compile(r"\bMI(2\d\d|3[0-3]\d)", re.IGNORECASE)
"""AMD parts for which every release with these backends has kernels: MI200 and MI300 series."""


def always(facts: Facts, params: Mapping[str, Any]) -> Answer:
    """Holds wherever the scope does."""
    return yes("")


def never_recorded(facts: Facts, params: Mapping[str, Any]) -> Answer:
    """A fact that no trace holds; with param ``only_with_mask`` it does not matter without a mask."""
    if params.get("only_with_mask") and facts.call.mask is None and facts.call.mask_known:
        return no("no mask")
    return missing("a setting that no trace records")


_WORDS: Final = {
    "sdpa.flash": "the switch of flash attention",
    "sdpa.efficient": "the switch of memory-efficient attention",
    "sdpa.cudnn": "the switch of cuDNN attention",
    "sdpa.math": "the switch of the math path",
    "sdpa.flash_built": "flash attention in this build",
    "sdpa.flash_impl": "the implementation of flash attention",
    "deterministic": "deterministic algorithms",
    "rocm_attention_library": "the preferred attention library",
}
"""Settings in words."""


def recorded_setting(facts: Facts, params: Mapping[str, Any]) -> Answer:
    """A setting of the program, known only where ``traceview.capture`` recorded it.

    Params: ``setting`` is its name; ``refuses`` the value that refuses the backend, any other allows it; or
    ``harmless`` the values that allow it, any other leaves it open. With ``ordered`` the order in which the backends
    are tried must be the default, too. Without ``setting`` nothing is ever recorded.
    """
    name = params.get("setting")
    capture = facts.capture
    if name is None or capture is None or capture.settings.get(name) is None:
        return missing("a setting that no trace records")
    words = _WORDS.get(name, name)
    value = capture.settings[name]
    if name in capture.changed:
        return missing(f"{words} was changed while the trace was recorded, {RECORDED_BY}")
    told = f"{words} is {_shown(value)}, {RECORDED_BY}"
    if _chosen_earlier(facts):
        return missing(f"{told}, but compiled code chose its backend when it was compiled")
    if "harmless" in params:
        known = value in params["harmless"]
        return Answer(Truth.NO, told, by_capture=True) if known else missing(told)
    if value == params["refuses"]:
        return Answer(Truth.YES, told, by_capture=True)
    if params.get("ordered") and not _in_default_order(facts, name.removeprefix("sdpa.")):
        return missing(f"{told}, but the order in which backends are tried may have been set")
    return Answer(Truth.NO, told, by_capture=True)


def _chosen_earlier(facts: Facts) -> bool:
    """The op of one backend was called directly, as compiled code does: the choice is older than the recording."""
    signature = sdpa.signature_of(facts.call.op)
    return signature is not None and signature.backend is not None


_AT_START: Final = ("flash", "efficient", "math", "cudnn", "overrideable")
"""The order that PyTorch starts with (``_get_sdp_priority_order()`` of 2.13, live); some GPUs get another one later."""


def _in_default_order(facts: Facts, backend: str) -> bool:
    """Nothing was put before a backend: the recorded order is a default one, or it is first in that of the start.

    Releases that record no order cannot change theirs.
    """
    capture = facts.capture
    recorded = capture.settings.get("sdpa.priority") if capture is not None else None
    if capture is None or not isinstance(recorded, tuple):
        return True
    if "sdpa.priority" in capture.changed:
        return False
    if recorded == _AT_START and recorded.index(backend) <= recorded.index("math"):
        return True
    return any(tuple(name for name in recorded if name in order) == order for order in possible_orders(facts))


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def dtype_not_in(facts: Facts, params: Mapping[str, Any]) -> Answer:
    """A dtype outside of param ``allowed`` (``allowed_below_sm80`` before Ampere), or not one dtype for all three."""
    call = facts.call
    recorded = {name: getattr(call, name).dtype for name in ("query", "key", "value")}
    known = {name: dtype for name, dtype in recorded.items() if dtype is not None}
    if len(set(known.values())) > 1:
        return yes(", ".join(f"{name} is {dtype}" for name, dtype in known.items()))
    allowed = set(params["allowed"])
    older = set(params.get("allowed_below_sm80", allowed)) if facts.platform == "cuda" else allowed
    for dtype in known.values():
        if dtype in params.get("with_fa3", ()) and (facts.sm is None or facts.sm >= 90):
            return missing(f"whether FlashAttention 3 is active ({dtype})")
        if dtype not in allowed | older:
            return yes(
                f"query, key and value are {_told(facts, dtype)}"
                if len(known) == 3
                else f"{next(iter(known))} is {dtype}"
            )
        if (dtype in allowed) != (dtype in older):
            if facts.sm is None:
                return missing(f"compute capability of the GPU ({dtype})")
            if dtype not in (older if facts.sm < 80 else allowed):
                return yes(f"query, key and value are {_told(facts, dtype)} on sm{facts.sm}")
    if len(known) < 3:
        return missing(f"dtype of {', '.join(name for name, dtype in recorded.items() if dtype is None)}")
    return no(f"query, key and value are {_told(facts, call.query.dtype)}")


def half_inputs(facts: Facts, params: Mapping[str, Any]) -> Answer:
    """Query is float16 or bfloat16."""
    dtype = facts.call.query.dtype
    if dtype is None:
        return missing("dtype of query")
    told = f"query is {_told(facts, dtype)}"
    return yes(told) if dtype in HALF else no(told)


def _told(facts: Facts, dtype: str | None) -> str:
    """A dtype, and how it is known if it is not recorded."""
    return f"{dtype}, inferred from kernel names" if facts.call.dtype_by_kernels else str(dtype)


def mask_given(facts: Facts, params: Mapping[str, Any]) -> Answer:
    """There is an attention mask."""
    call = facts.call
    if not call.mask_known:
        return missing("whether a mask was given")
    if call.mask is None:
        return no("no mask")
    dims = " × ".join(str(size) for size in call.mask.dims) if call.mask.dims else "dims not recorded"
    return yes(f"a mask was given ({dims}, {call.mask.dtype or 'dtype not recorded'})")


def mask_dtype_differs(facts: Facts, params: Mapping[str, Any]) -> Answer:
    """The mask is neither boolean nor of the dtype of query."""
    call = facts.call
    if call.mask is None:
        return no("no mask") if call.mask_known else missing("whether a mask was given")
    if call.mask.dtype == "bool":
        return no("the mask is boolean")
    if call.mask.dtype is None or call.query.dtype is None:
        return missing("dtype of the mask and of query")
    if call.mask.dtype == call.query.dtype:
        return no(f"the mask is {call.mask.dtype} like query")
    return yes(f"the mask is {call.mask.dtype}, query is {call.query.dtype}")


def dropout_given(facts: Facts, params: Mapping[str, Any]) -> Answer:
    """Dropout is above zero."""
    p = facts.call.dropout_p
    if p is None:
        return missing("dropout_p")
    return yes(f"dropout_p is {p:g}") if p > 0 else no("dropout_p is 0")


def dropout_not_in_steps(facts: Facts, params: Mapping[str, Any]) -> Answer:
    """Dropout is not a multiple of 1/16."""
    p = facts.call.dropout_p
    if p is None:
        return missing("dropout_p")
    return no(f"dropout_p is {p:g}") if (p * 16).is_integer() else yes(f"dropout_p is {p:g}, not a multiple of 1/16")


def _cudnn_between(facts: Facts, params: Mapping[str, Any], text: str) -> Answer:
    """Whether the cuDNN version lies strictly between params ``above`` and ``below``."""
    if facts.cudnn is None:
        return missing(f"cuDNN version ({text})")
    above, below = (_bound(params.get(key)) for key in ("above", "below"))
    version = (*facts.cudnn, 0, 0)[:3]
    inside = (above is None or version > above) and (below is None or version < below)
    text = f"{text}, cuDNN {version_text(facts.cudnn)}"
    return yes(text) if inside else no(text)


def _bound(text: str | None) -> Version | None:
    return None if text is None else parse_version(text)


def dropout_with_cudnn(facts: Facts, params: Mapping[str, Any]) -> Answer:
    """Dropout with a cuDNN version between params ``above`` and ``below``."""
    answer = dropout_given(facts, params)
    return _cudnn_between(facts, params, answer.text) if answer.truth == "yes" else answer


def one_query_with_cudnn(facts: Facts, params: Mapping[str, Any]) -> Answer:
    """A single query with a cuDNN version between params ``above`` and ``below``, but not 9.24.1 and its patches."""
    queries = facts.call.query.dim(-2)
    if queries is None:
        return missing("dims of query")
    if queries != 1:
        return no(f"{queries} queries")
    if facts.cudnn is not None and (9, 24, 0) < (*facts.cudnn, 0, 0)[:3] < (9, 25, 0):
        return no(f"1 query, cuDNN {version_text(facts.cudnn)}")
    return _cudnn_between(facts, params, "1 query")


def keys_64_of_128(facts: Facts, params: Mapping[str, Any]) -> Answer:
    """Training without the causal flag when the number of keys is 64 modulo 128, cuDNN below param ``below``."""
    keys = facts.call.key.dim(-2)
    if keys is None:
        return missing("dims of key")
    if keys % 128 != 64 or facts.call.is_causal or facts.call.training is False:
        return no(f"{keys} keys")
    if facts.call.is_causal is None or facts.call.training is None:
        return missing(f"whether a gradient was asked for ({keys} keys)")
    return _cudnn_between(facts, params, f"{keys} keys in training")


def outside_arch(facts: Facts, params: Mapping[str, Any]) -> Answer:
    """The GPU is outside of the compute capabilities ``low`` to ``high``; ``amd`` for AMD parts."""
    if params.get("amd"):
        return _amd_without_kernels(facts)
    if facts.sm is None:
        return missing("compute capability of the GPU")
    if facts.sm < params["low"]:
        return yes(f"sm{facts.sm} is older than sm{params['low']}")
    if facts.sm > params.get("high", facts.sm):
        return yes(f"sm{facts.sm} is newer than sm{params['high']}")
    if facts.sm > params.get("open_above", facts.sm):
        return missing(f"whether this release knows sm{facts.sm}")
    return no(f"sm{facts.sm}")


def _amd_without_kernels(facts: Facts) -> Answer:
    if facts.device.name and _AMD_LISTED.search(facts.device.name):
        return no(facts.device.name)
    return missing("whether the AOTriton of this build has kernels for the GPU")


def experimental_amd(facts: Facts, params: Mapping[str, Any]) -> Answer:
    """An AMD part that AOTriton lists as experimental, without the switch for those."""
    if facts.device.name and _AMD_LISTED.search(facts.device.name):
        return no(facts.device.name)
    return missing("whether AOTriton lists the GPU as experimental, and its switch")
