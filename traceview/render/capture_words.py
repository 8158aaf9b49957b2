"""What ``traceview.capture`` recorded, in a few lines: versions, warm-up, settings and the user's contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traceview.render.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.capture_info import CaptureInfo, Setting

_SDPA: Final = ("flash", "efficient", "cudnn", "math")
"""Backends of attention, in the order in which they are told."""
_USUAL: Final[dict[str, Setting]] = {
    "sdpa.flash_impl": "default", "sdpa.flash_built": True, "matmul_allow_tf32": False, "cudnn_allow_tf32": True,
    "cudnn_enabled": True, "cudnn_benchmark": False, "cudnn_deterministic": False, "deterministic": False,
    "grad": True, "rocm_attention_library": "default", "enable_x64": False, "disable_jit": False,
}  # fmt: skip
"""What a framework starts with (torch 2.13, jax 0.10.2, live); such a value is not told, the JSON has them all."""
_NOT_TOLD: Final = ("sdpa.priority",)
"""Settings that are in the JSON only."""


def capture_facts(info: CaptureInfo) -> list[tuple[str, str]]:
    """Name and value of each line; lines without a value are left out."""
    facts = [
        ("captured", "; ".join(part for part in (_versions(info), _warm_up(info)) if part)),
        ("settings", "; ".join(_settings(info))),
        ("contract", ", ".join(f"{name} {_shown(value)}" for name, value in info.contract.items())),
    ]
    return [(name, value) for name, value in facts if value]


def _versions(info: CaptureInfo) -> str:
    return ", ".join(f"{name} {text}" for name, text in info.versions.items())


def _warm_up(info: CaptureInfo) -> str:
    parts = []
    if info.warmup_calls is not None:
        steady = {True: ", steady", False: ", not steady", None: ""}[info.steady]
        parts.append(f"{counted(info.warmup_calls, 'warm-up call')}{steady}")
    if info.steps is not None:
        parts.append(counted(info.steps, "step"))
    return ", ".join(parts)


def _settings(info: CaptureInfo) -> Iterator[str]:
    """Switches of attention in one part, then every other setting by its name."""
    switches = {name: f"sdpa.{name}" for name in _SDPA if f"sdpa.{name}" in info.settings}
    for state, word in ((True, "on"), (False, "off")):
        names = [name for name, key in switches.items() if info.settings[key] is state and key not in info.changed]
        if names:
            yield f"attention {', '.join(names)} {word}"
    varied = [name for name, key in switches.items() if key in info.changed]
    if varied:
        yield f"attention {', '.join(varied)} changed while recording"
    for key, value in info.settings.items():
        if key in switches.values() or key in _NOT_TOLD or value is None:
            continue
        # A build without CUDA has no flash attention for it, which matters to nobody there.
        usual = key in _USUAL and (_USUAL[key] == value or (key == "sdpa.flash_built" and not info.gpus))
        if usual and key not in info.changed:
            continue
        yield f"{key} {_shown(value)}" + (", changed while recording" if key in info.changed else "")


def _shown(value: Setting) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return " ".join(value)
    return "none" if value is None else str(value)
