"""Conditions on dims and strides: head sizes, head counts, batch, lengths, contiguity, mask shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from traceview.eligibility.facts import HALF, Answer, Facts, missing, no, yes
from traceview.knowledge.releases import parse_version, version_text

if TYPE_CHECKING:
    from collections.abc import Mapping


def _triple(facts: Facts, index: int) -> tuple[int, int, int] | None:
    """One dimension of query, key and value, or ``None`` if any of them is not recorded."""
    call = facts.call
    sizes = (call.query.dim(index), call.key.dim(index), call.value.dim(index))
    return None if None in sizes else sizes  # type: ignore[return-value]


def _dims_missing(facts: Facts) -> Answer:
    call = facts.call
    parts = [name for name in ("query", "key", "value") if getattr(call, name).dims is None]
    return missing(f"dims of {', '.join(parts) or 'query, key and value'}")


def nested_inputs(facts: Facts, params: Mapping[str, Any]) -> Answer:
    """Nested tensors; PyTorch does not record their dims, so recorded dims mean dense inputs."""
    call = facts.call
    if all(tensor.dims is not None for tensor in (call.query, call.key, call.value)):
        return no("query, key and value have recorded dims, so they are not nested")
    return missing("dims of query, key and value (PyTorch records none for nested tensors)")


def rank_not_4(facts: Facts, params: Mapping[str, Any]) -> Answer:
    """Query, key or value is not four-dimensional."""
    call = facts.call
    ranks = [len(t.dims) for t in (call.query, call.key, call.value) if t.dims is not None]
    if any(rank != 4 for rank in ranks):
        if params.get("rank_3_open") and set(ranks) == {3} and len(ranks) == 3:
            return missing("whether this release adds the batch dimension by itself")
        return yes(f"{ranks[0]} dimensions" if len(set(ranks)) == 1 else f"ranks {ranks}")
    return no("four dimensions") if len(ranks) == 3 else _dims_missing(facts)


def head_dims_flash(facts: Facts, params: Mapping[str, Any]) -> Answer:
    """Head sizes differ, are too large or not a multiple; params ``max``, ``multiple_of``, ``open_above``."""
    sizes = _triple(facts, -1)
    if sizes is None:
        return _dims_missing(facts)
    if len(set(sizes)) > 1:
        return yes(f"head sizes of query, key and value are {sizes[0]}, {sizes[1]}, {sizes[2]}")
    size = sizes[0]
    if "max" in params and size > params["max"]:
        return yes(f"head size {size} is above {params['max']}")
    if size % params.get("multiple_of", 1):
        return yes(f"head size {size} is not a multiple of {params['multiple_of']}")
    if size > params.get("open_above", size):
        return missing(f"{params['depends_on']} (head size {size})")
    return no(f"head size {size}")


def head_dims_efficient(facts: Facts, params: Mapping[str, Any]) -> Answer:
    """Head sizes of query and key differ, or one is not aligned for the GPU, or too large (ROCm)."""
    sizes = _triple(facts, -1)
    if sizes is None:
        return _dims_missing(facts)
    query, key, value = sizes
    if query != key:
        return yes(f"head sizes of query and key are {query} and {key}")
    if query != value and params.get("same_value"):
        return yes(f"head sizes of key and value are {key} and {value}")
    largest = max(query, value)
    if "max" in params and largest > params["max"]:
        return yes(f"head size {largest} is above {params['max']}")
    if "align" in params:
        answer = _unaligned(facts, (query, value), params["align"])
        if answer is not None:
            return answer
    if largest > params.get("open_above", largest) or (query != value and params.get("same_value_open")):
        return missing(f"the AOTriton version of the build (head sizes {query} and {value})")
    return no(f"head sizes {query} and {value}")


def _unaligned(facts: Facts, sizes: tuple[int, int], align: str) -> Answer | None:
    """The answer if alignment decides or cannot be told, ``None`` if the sizes are aligned."""
    dtype = facts.call.query.dtype
    if any(size == 0 for size in sizes):
        return yes("a head size is 0")
    # Largest first: what is aligned to 8 is aligned to whatever the GPU needs.
    if all(size % 8 == 0 for size in sizes):
        return None
    if dtype is None:
        return missing("dtype of query (it sets the alignment)")
    half = dtype in HALF
    if align == "dtype":
        need = 8 if half else 4
    elif facts.device.major is None:
        return missing("compute capability of the GPU (it sets the alignment)")
    elif facts.device.major >= 8:
        need = 8 if half else 4
    elif facts.device.major == 7:
        need = 8 if half else 1
    else:
        need = 1
    bad = next((size for size in sizes if size % need), None)
    return None if bad is None else yes(f"head size {bad} is not a multiple of {need} ({dtype})")


def head_dims_cudnn(facts: Facts, params: Mapping[str, Any]) -> Answer:
    """Head sizes are no multiples of 8, or too large.

    Params: ``max``; above ``open_above`` only on the GPUs ``sm_for_more`` with cuDNN ``cudnn_for_more`` or newer.
    """
    sizes = _triple(facts, -1)
    if sizes is None:
        return _dims_missing(facts)
    query, _, value = sizes
    largest = max(query, value)
    for size in (query, value):
        if size % 8:
            return yes(f"head size {size} is not a multiple of 8")
    if largest > params["max"]:
        return yes(f"head size {largest} is above {params['max']}")
    if largest <= params.get("open_above", params["max"]):
        return no(f"head sizes {query} and {value}")
    devices, need = params.get("sm_for_more"), parse_version(params["cudnn_for_more"])
    if devices is not None and facts.sm is not None and facts.sm not in devices:
        return yes(f"head size {largest} is above {params['open_above']} on sm{facts.sm}")
    if facts.cudnn is not None and need is not None and facts.cudnn < need:
        return yes(f"head size {largest} is above {params['open_above']} with cuDNN {version_text(facts.cudnn)}")
    return missing(f"what the cuDNN of this build takes (head sizes {query} and {value})")


def training_head_dim(facts: Facts, params: Mapping[str, Any]) -> Answer:
    """Head size above a limit while training; params ``above``, ``free_above_without_dropout``."""
    size = facts.call.query.dim(-1)
    if size is None:
        return _dims_missing(facts)
    if size <= params["above"]:
        return no(f"head size {size} is not above {params['above']}")
    free = params.get("free_above_without_dropout")
    if free is not None and size > free:
        if facts.call.dropout_p == 0:
            return no(f"head size {size} without dropout")
        if facts.call.dropout_p is None:
            return missing("dropout_p, and whether a gradient was asked for")
    if facts.call.training is None:
        return missing(f"whether a gradient was asked for (head size {size})")
    return yes(f"head size {size} in training") if facts.call.training else no("no gradient was asked for")


def heads_differ(facts: Facts, params: Mapping[str, Any]) -> Answer:
    """Head counts that the backend cannot map; params ``grouped`` (how enable_gqa maps them), ``one_key_head_open``."""
    if not _may_be_batched(facts):
        return no("not batch × heads × tokens × head size")
    sizes = _triple(facts, -3)
    if sizes is None:
        return _dims_missing(facts)
    query, key, value = sizes
    text = f"{query} query heads, {key} key heads, {value} value heads"
    if query == key == value:
        return no(f"{query} heads each")
    grouped = params.get("grouped")
    mapped = grouped is not None and _divides(key, query) and _divides(value, query)
    mapped = mapped and (grouped == "each" or key == value)
    if mapped and facts.call.enable_gqa:
        return no(f"{text}, enable_gqa=True")
    if params.get("one_key_head_open") and key == value == 1:
        return missing(f"whether this release broadcasts a single key head ({text})")
    if mapped and facts.call.enable_gqa is None:
        return missing(f"enable_gqa ({text})")
    return yes(f"{text}, enable_gqa=False" if mapped else text)


def _may_be_batched(facts: Facts) -> bool:
    """Whether no recorded rank contradicts batch × heads × tokens × head size."""
    call = facts.call
    return all(tensor.dims is None or len(tensor.dims) == 4 for tensor in (call.query, call.key, call.value))


def _divides(part: int, whole: int) -> bool:
    return part > 0 and whole % part == 0


def grouped_heads(facts: Facts, params: Mapping[str, Any]) -> Answer:
    """Fewer key heads than query heads under ``enable_gqa``."""
    if not _may_be_batched(facts):
        return no("not batch × heads × tokens × head size")
    sizes = _triple(facts, -3)
    if sizes is None:
        return _dims_missing(facts)
    query, key, value = sizes
    if query == key == value:
        return no(f"{query} heads each")
    if facts.call.enable_gqa is None:
        return missing(f"enable_gqa ({query} query heads, {key} key heads)")
    if facts.call.enable_gqa:
        return yes(f"enable_gqa=True with {query} query heads and {key} key heads")
    return no("enable_gqa is not set")


def batch_differs(facts: Facts, params: Mapping[str, Any]) -> Answer:
    """Batch sizes differ. Without a batch dimension there is nothing to compare."""
    if not _may_be_batched(facts):
        return no("not batch × heads × tokens × head size")
    sizes = _triple(facts, 0)
    if sizes is None:
        return _dims_missing(facts)
    if len(set(sizes)) > 1:
        return yes(f"batch sizes of query, key and value are {sizes[0]}, {sizes[1]}, {sizes[2]}")
    return no(f"batch size {sizes[0]}")


def _lengths(facts: Facts) -> tuple[int, int] | None:
    queries, keys = facts.call.query.dim(-2), facts.call.key.dim(-2)
    return None if queries is None or keys is None else (queries, keys)


def causal_non_square(facts: Facts, params: Mapping[str, Any]) -> Answer:
    """The causal flag with unequal lengths."""
    if facts.call.is_causal is False:
        return no("is_causal=False")
    lengths = _lengths(facts)
    if lengths is None:
        return _dims_missing(facts)
    queries, keys = lengths
    if queries == keys:
        return no(f"{queries} queries and as many keys")
    if facts.call.is_causal is None:
        return missing(f"is_causal ({queries} queries, {keys} keys)")
    return yes(f"is_causal=True with {queries} queries and {keys} keys")


def zero_length(facts: Facts, params: Mapping[str, Any]) -> Answer:
    """No query or no key."""
    lengths = _lengths(facts)
    if lengths is None:
        return _dims_missing(facts)
    if 0 in lengths:
        return yes(f"{lengths[0]} queries and {lengths[1]} keys")
    return no(f"{lengths[0]} queries and {lengths[1]} keys")


def one_token(facts: Facts, params: Mapping[str, Any]) -> Answer:
    """A single key, or a single query with dropout; with param ``either`` a single query too."""
    lengths = _lengths(facts)
    if lengths is None:
        return _dims_missing(facts)
    queries, keys = lengths
    if keys == 1:
        return yes("1 key")
    if queries != 1:
        return no(f"{queries} queries and {keys} keys")
    if params.get("either"):
        return yes("1 query")
    if facts.call.dropout_p is None:
        return missing("dropout_p (1 query)")
    return yes("1 query with dropout") if facts.call.dropout_p else no("1 query without dropout")


def size_above(facts: Facts, params: Mapping[str, Any]) -> Answer:
    """Batch or head count of query above param ``max``."""
    if facts.call.query.dims is None:
        return _dims_missing(facts)
    for name, size in zip(("batch size", "head count"), facts.call.query.dims[:2], strict=False):
        if size > params["max"]:
            return yes(f"{name} {size} is above {params['max']}")
    return no("batch size and head count are within the limit")


def last_stride_not_1(facts: Facts, params: Mapping[str, Any]) -> Answer:
    """A last dimension that is not contiguous; params ``head_dim_1_is_free`` and ``mask`` (the mask counts too)."""
    call = facts.call
    unknown = []
    if not (params.get("head_dim_1_is_free") and call.query.dim(-1) == 1):
        for name in ("query", "key", "value"):
            stride = getattr(call, name).last_stride
            if stride is None:
                unknown.append(name)
            elif stride != 1:
                return yes(f"stride of the last dimension of {name} is {stride}")
    if params.get("mask"):
        if call.mask is not None and call.mask.last_stride is not None:
            if call.mask.last_stride != 1:
                return yes(f"stride of the last dimension of the mask is {call.mask.last_stride}")
        elif call.mask is not None or not call.mask_known:
            unknown.append("mask")
    return missing(f"strides of {', '.join(unknown)}") if unknown else no("last dimensions are contiguous")


def mask_shape(facts: Facts, params: Mapping[str, Any]) -> Answer:
    """A mask that does not broadcast to batch × heads × queries × keys from two or four dimensions."""
    call = facts.call
    if call.mask is None:
        return no("no mask") if call.mask_known else missing("whether a mask was given")
    mask, lengths = call.mask.dims, _lengths(facts)
    if mask is None or lengths is None or call.query.dims is None or len(call.query.dims) < 3:
        return missing("dims of the mask, query and key")
    text = " × ".join(str(size) for size in mask)
    if len(mask) < 2 or mask[-2] not in (1, lengths[0]) or mask[-1] not in (1, lengths[1]):
        return yes(f"mask of {text} for {lengths[0]} queries and {lengths[1]} keys")
    if len(mask) == 2:
        return no(f"mask of {text}")
    if len(call.query.dims) == 3 and params.get("unbatched_open"):
        return missing("whether this release adds the batch dimension by itself")
    if len(mask) != 4:
        return yes(f"mask of {len(mask)} dimensions")
    if mask[0] not in (1, call.query.dims[0]) or mask[1] not in (1, call.query.dims[1]):
        return yes(f"mask of {text} for batch {call.query.dims[0]} and {call.query.dims[1]} heads")
    return no(f"mask of {text}")
