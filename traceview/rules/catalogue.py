"""The list of all rules: grep for a code here to find its file."""

from __future__ import annotations

from typing import Final

from traceview.rules import (
    tv101_attention_unfused,
    tv102_attention_math,
    tv103_attention_unidentified,
    tv104_attention_kernel_older,
    tv105_attention_flash2_long,
    tv106_attention_flex_eager,
    tv107_attention_padded_head,
    tv108_xla_attention_unfused,
    tv110_gemm_older_tile,
    tv111_gemm_low_alignment,
    tv112_gemm_vector_products,
    tv113_gemm_after_dequantise,
    tv114_gemm_fp8_weight_only,
    tv115_conv_layout,
    tv116_conv_generic_kernel,
    tv117_norm_two_pass,
    tv118_unfused_chain,
    tv119_elementwise_strided,
    tv120_optimizer_per_tensor,
    tv121_atomic_scatter,
    tv201_attention_fp32,
    tv202_gemm_fp32_simt,
    tv203_gemm_half_simt,
    tv204_conv_fp32_simt,
    tv205_cast_storm,
    tv206_tensor_cores_unused,
    tv207_xla_highest_precision,
    tv301_recompile,
    tv302_autotune,
    tv303_graph_capture,
    tv304_attention_plan,
    tv305_lazy_loading,
    tv306_guard_overhead,
    tv401_sync_idle,
    tv402_collective_exposed,
    tv403_program_gap,
    tv404_host_late,
    tv501_pageable_copy,
    tv502_repeated_copy,
    tv503_allocator,
    tv504_data_formatting,
    tv901_work_missing,
    tv902_launch_missing,
    tv903_file_incomplete,
    tv904_profiler_lost,
    tv905_graph_under_recorded,
)
from traceview.rules.base import Rule, rule_of

RULES: Final[tuple[Rule, ...]] = tuple(
    rule_of(module)
    for module in (
        tv101_attention_unfused,
        tv102_attention_math,
        tv103_attention_unidentified,
        tv104_attention_kernel_older,
        tv105_attention_flash2_long,
        tv106_attention_flex_eager,
        tv107_attention_padded_head,
        tv108_xla_attention_unfused,
        tv110_gemm_older_tile,
        tv111_gemm_low_alignment,
        tv112_gemm_vector_products,
        tv113_gemm_after_dequantise,
        tv114_gemm_fp8_weight_only,
        tv115_conv_layout,
        tv116_conv_generic_kernel,
        tv117_norm_two_pass,
        tv118_unfused_chain,
        tv119_elementwise_strided,
        tv120_optimizer_per_tensor,
        tv121_atomic_scatter,
        tv201_attention_fp32,
        tv202_gemm_fp32_simt,
        tv203_gemm_half_simt,
        tv204_conv_fp32_simt,
        tv205_cast_storm,
        tv206_tensor_cores_unused,
        tv207_xla_highest_precision,
        tv301_recompile,
        tv302_autotune,
        tv303_graph_capture,
        tv304_attention_plan,
        tv305_lazy_loading,
        tv306_guard_overhead,
        tv401_sync_idle,
        tv402_collective_exposed,
        tv403_program_gap,
        tv404_host_late,
        tv501_pageable_copy,
        tv502_repeated_copy,
        tv503_allocator,
        tv504_data_formatting,
        tv901_work_missing,
        tv902_launch_missing,
        tv903_file_incomplete,
        tv904_profiler_lost,
        tv905_graph_under_recorded,
    )
)
"""All rules, by code."""


def find_rule(code: str) -> Rule | None:
    """The rule with a code or a name, upper or lower case."""
    wanted = code.lower()
    return next((rule for rule in RULES if wanted in (rule.code.lower(), rule.name)), None)
