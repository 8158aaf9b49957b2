"""The settings of JAX that decide how a program is compiled, and how much is compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from types import TracebackType

    from traceview.capture_info import Setting

_NAMES: Final = {
    "default_matmul_precision": "jax_default_matmul_precision",
    "enable_x64": "jax_enable_x64",
    "disable_jit": "jax_disable_jit",
}
"""Setting to the attribute of ``jax.config``. Flags of XLA come from the environment and are not read."""

_COMPILED: Final = "/jax/core/compile/backend_compile_duration"
"""The event of one compilation by XLA (``jax.monitoring``, jax 0.10)."""


def read_settings(jax: Any) -> dict[str, Setting]:
    """The settings as they are now; what this release does not have is left out."""
    found: dict[str, Setting] = {}
    for name, attribute in _NAMES.items():
        value = getattr(jax.config, attribute, None)
        if isinstance(value, bool | int | str):
            found[name] = value
    found["default_matmul_precision"] = str(found.get("default_matmul_precision", "default"))
    found["backend"] = str(jax.default_backend())
    return found


class CompileCounter:
    """Counts the compilations while it is entered."""

    def __init__(self, jax: Any) -> None:
        self._monitoring = jax.monitoring
        self.count = 0

    def __enter__(self) -> Self:
        self._monitoring.register_event_duration_secs_listener(self._heard)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stop = getattr(self._monitoring, "unregister_event_duration_listener", None)
        if stop is not None:
            stop(self._heard)

    def _heard(self, event: str, *_: object, **__: object) -> None:
        if event == _COMPILED:
            self.count += 1
