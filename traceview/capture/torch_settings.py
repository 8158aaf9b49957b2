"""The switches of PyTorch that decide which kernel runs, and whether they stay the same while a trace is recorded."""

from __future__ import annotations

import functools
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from traceview.capture_info import Setting

_SWITCHES: Final = {
    "sdpa.flash": "_get_flash_sdp_enabled",
    "sdpa.efficient": "_get_mem_efficient_sdp_enabled",
    "sdpa.cudnn": "_get_cudnn_sdp_enabled",
    "sdpa.math": "_get_math_sdp_enabled",
}
"""Setting to the function of ``torch._C`` that tells it (read in torch 2.13; older releases have some of them)."""

_BACKENDS: Final = ("math", "flash", "efficient", "cudnn", "overrideable")
"""``torch.nn.attention.SDPBackend`` by number."""

_SETTERS: Final = (
    ("torch.nn.attention", "_sdpa_kernel"),
    ("torch.backends.cuda", "enable_flash_sdp"),
    ("torch.backends.cuda", "enable_mem_efficient_sdp"),
    ("torch.backends.cuda", "enable_cudnn_sdp"),
    ("torch.backends.cuda", "enable_math_sdp"),
)
"""What programs change the switches through; ``sdpa_kernel`` calls the first."""


def read_settings(torch: Any) -> dict[str, Setting]:
    """The settings as they are now; what this release does not have is left out."""
    found: dict[str, Setting] = dict(_attention(torch))
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    readers: dict[str, Callable[[], Any]] = {
        "float32_matmul_precision": torch.get_float32_matmul_precision,
        "matmul_allow_tf32": lambda: matmul.allow_tf32,
        "cudnn_allow_tf32": lambda: cudnn.allow_tf32,
        "cudnn_enabled": lambda: cudnn.enabled,
        "cudnn_benchmark": lambda: cudnn.benchmark,
        "cudnn_deterministic": lambda: cudnn.deterministic,
        "deterministic": torch.are_deterministic_algorithms_enabled,
        "grad": torch.is_grad_enabled,
    }
    if getattr(torch.version, "hip", None):
        readers["rocm_attention_library"] = lambda: _short(torch.backends.cuda.preferred_rocm_fa_library())
    return found | {name: value for name, reader in readers.items() if (value := _read(reader)) is not None}


def _attention(torch: Any) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    for name, function in _SWITCHES.items():
        value = _read(getattr(torch._C, function, None))  # noqa: SLF001 - the public ones are not in every release
        if isinstance(value, bool):
            found[name] = value
    order = _read(getattr(torch._C, "_get_sdp_priority_order", None))  # noqa: SLF001 - there is no public one
    if isinstance(order, list) and all(isinstance(at, int) and 0 <= at < len(_BACKENDS) for at in order):
        found["sdpa.priority"] = tuple(_BACKENDS[at] for at in order)
    built = _read(getattr(torch.backends.cuda, "is_flash_attention_available", None))
    if isinstance(built, bool):
        found["sdpa.flash_built"] = built
    attention = sys.modules.get("torch.nn.attention")
    current = getattr(attention, "current_flash_attention_impl", None)
    if current is not None:
        fa3 = _read(getattr(torch._C, "_get_fa3_sdp_enabled", None))  # noqa: SLF001 - there is no public one
        found["sdpa.flash_impl"] = "FA3" if fa3 else str(_read(current) or "default")
    return found


def _read(reader: Callable[[], Any] | None) -> Any:
    """A setting, ``None`` where it cannot be read: some raise where two ways of setting them were mixed."""
    if reader is None:
        return None
    try:
        return reader()
    except (RuntimeError, AttributeError, TypeError, ValueError):
        return None


def _short(value: object) -> str:
    """``_ROCmFABackend.AOTriton`` is ``aotriton``."""
    return str(value).rsplit(".", maxsplit=1)[-1].lower()


class SettingsWatch:
    """Reads the settings at the start and notices which of them change until it is left.

    The switches of attention are usually changed for a few calls and set back, so that start and end look the same.
    The functions through which programs do that are therefore watched; they do what they did before.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._originals: list[tuple[Any, str, Any]] = []
        self._changed: set[str] = set()
        self.settings: dict[str, Setting] = {}

    def __enter__(self) -> Self:
        for module_name, name in _SETTERS:
            try:
                module = import_module(module_name)
            except ImportError:  # torch.nn.attention came with torch 2.3.
                continue
            original = getattr(module, name, None)
            if original is not None:
                self._originals.append((module, name, original))
                setattr(module, name, self._watched(original))
        self.settings = read_settings(self._torch)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._originals:
            module, name, original = self._originals.pop()
            # Somebody else may have replaced it meanwhile.
            if getattr(getattr(module, name, None), "__wrapped__", None) is original:
                setattr(module, name, original)

    def restart(self) -> None:
        """Forget what was before: what counts is what holds from now on."""
        self._changed.clear()
        self.settings = read_settings(self._torch)

    def changed(self) -> tuple[str, ...]:
        """The settings that did not stay what they were."""
        self._compare(read_settings(self._torch))
        return tuple(sorted(self._changed))

    def _watched(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def setter(*args: Any, **kwargs: Any) -> Any:
            try:
                return original(*args, **kwargs)
            finally:
                self._compare(_attention(self._torch))

        return setter

    def _compare(self, now: dict[str, Setting]) -> None:
        self._changed.update(name for name, value in now.items() if self.settings.get(name, value) != value)
