"""The predicates that the rulebook names: every function here is a condition on the facts of one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from traceview.eligibility import settings, shapes
from traceview.eligibility.facts import Answer, Facts

Predicate = Callable[[Facts, Mapping[str, Any]], Answer]
"""The facts of one call and the parameters of a scope in, whether the condition holds out."""

PREDICATES: Final[Mapping[str, Predicate]] = {
    function.__name__: function
    for function in (
        settings.always,
        settings.never_recorded,
        settings.recorded_setting,
        settings.dtype_not_in,
        settings.half_inputs,
        settings.mask_given,
        settings.mask_dtype_differs,
        settings.dropout_given,
        settings.dropout_not_in_steps,
        settings.dropout_with_cudnn,
        settings.one_query_with_cudnn,
        settings.keys_64_of_128,
        settings.outside_arch,
        settings.experimental_amd,
        shapes.nested_inputs,
        shapes.rank_not_4,
        shapes.head_dims_flash,
        shapes.head_dims_efficient,
        shapes.head_dims_cudnn,
        shapes.training_head_dim,
        shapes.heads_differ,
        shapes.grouped_heads,
        shapes.batch_differs,
        shapes.causal_non_square,
        shapes.zero_length,
        shapes.one_token,
        shapes.size_above,
        shapes.last_stride_not_1,
        shapes.mask_shape,
    )
}
"""Name in the data file to function."""
