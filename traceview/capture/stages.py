"""Mark a stage of the program, for whichever profiler records."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar, cast

from traceview.capture.driving import driven_asyncgen, driven_awaitable, driven_generator
from traceview.capture.frameworks import jax_module, nvtx_module, torch_module
from traceview.capture_info import MARK_PREFIX
from traceview.errors import TraceviewError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

_Function = TypeVar("_Function", bound="Callable[..., Any]")
Marker = Literal["torch", "nvtx", "jax"]

_NSYS: Final = "NVTX_INJECTION64_PATH"
"""Set in every process that Nsight Systems or Nsight Compute watches: somebody listens to NVTX ranges."""

_modules: Final = sys.modules
_under_nsys: Final = _NSYS in os.environ


class stage:  # noqa: N801 - used like a function, as contextlib's classes are
    """A named part of the program: ``with stage("denoise"):`` or ``@stage("denoise")``.

    One name marks it at once for the PyTorch profiler (``record_function``), for Nsight Systems (NVTX) and for the JAX
    profiler (``TraceAnnotation``; ``named_scope`` while JAX traces a function, so that the compiled ops carry it).
    Of these only what the program has imported is used, and nothing is marked while nothing records. Marks nest:
    ``attention`` inside ``denoise`` is the stage ``denoise/attention``.

    A decorated coroutine or generator is marked while its own code runs, not while it waits for others: each stretch
    is one range. In code that ``torch.compile`` compiles a mark has no effect and breaks no graph.

    Args:
        name: The stage; ``/`` between a stage and a part of it.
        using: Mark for exactly these, importing them if need be: ``"torch"``, ``"nvtx"``, ``"jax"``.

    Raises:
        UsageError: the name is empty.
        TraceviewError: one of ``using`` is not installed.
    """

    __slots__ = ("_asked", "_open", "name")

    def __init__(self, name: str, *, using: Iterable[Marker] = ()) -> None:
        if not name.strip("/ "):
            raise UsageError("no-stage-name", why="a stage needs a name.", next_step='Write stage("denoise").')
        self.name = name
        self._open: list[tuple[Any, ...]] | None = None
        self._asked = tuple(using) if using else ()
        for one in self._asked:
            _IMPORTS[one]()

    def __enter__(self) -> Self:
        torch = _modules.get("torch")
        if torch is not None:
            try:
                if torch.compiler.is_compiling():
                    return self
                recording = torch.autograd.profiler._is_profiler_enabled or torch.autograd._profiler_enabled()  # noqa: SLF001 - no public way
            except AttributeError:  # It is being imported, or older than torch.compiler.
                recording = "torch.autograd.profiler" in _modules
        else:
            recording = False
        jax = _modules.get("jax")
        if jax is not None and not _jax_listens(jax):
            jax = None
        if recording or jax is not None or _nvtx_listens():
            ranges = self._ranges(torch if recording else None, jax)
            if self._open is None:
                self._open = []
            self._open.append(ranges)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._open:  # Not what was entered while nothing recorded.
            for one in reversed(self._open.pop()):
                one.__exit__(kind, error, trace)

    def __call__(self, function: _Function) -> _Function:
        """``function`` with every call marked."""
        name, using = self.name, self._asked
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def coroutine(*args: Any, **kwargs: Any) -> Any:
                return await driven_awaitable(function(*args, **kwargs), lambda: stage(name, using=using))

            return cast("_Function", coroutine)
        if inspect.isasyncgenfunction(function):

            @functools.wraps(function)
            def asyncgen(*args: Any, **kwargs: Any) -> Any:
                return driven_asyncgen(function(*args, **kwargs), lambda: stage(name, using=using))

            return cast("_Function", asyncgen)
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def generator(*args: Any, **kwargs: Any) -> Any:
                return driven_generator(function(*args, **kwargs), lambda: stage(name, using=using))

            return cast("_Function", generator)

        @functools.wraps(function)
        def plain(*args: Any, **kwargs: Any) -> Any:
            with stage(name, using=using):
                return function(*args, **kwargs)

        return cast("_Function", plain)

    def _ranges(self, torch: Any, jax: Any) -> tuple[Any, ...]:
        """The ranges of all that listen, entered."""
        asked = self._asked
        found: list[Any] = []
        if torch is not None and (not asked or "torch" in asked):
            found.append(torch.autograd.profiler.record_function(MARK_PREFIX + self.name))
        if jax is not None and (not asked or "jax" in asked):
            found += _jax_ranges(jax, self.name)
        if _nvtx_listens() and (not asked or "nvtx" in asked):
            found += _nvtx_ranges(MARK_PREFIX + self.name)
        for one in found:
            one.__enter__()
        return tuple(found)


def _jax_listens(jax: Any) -> bool:
    """The JAX profiler records, or a function is being traced whose ops are to carry the name."""
    try:
        return bool(jax.profiler.TraceAnnotation.is_enabled()) or not _at_top_level()
    except AttributeError:  # It is being imported.
        return False


def _at_top_level() -> bool:
    """Nothing is being traced now."""
    if not _clean:
        _clean.append(getattr(_modules.get("jax._src.core"), "trace_state_clean", None) or (lambda: True))
    return bool(_clean[0]())


_clean: Final[list[Callable[[], object]]] = []
"""JAX's own answer to that, once it was looked up: a mark costs little only if it looks up little."""


def _jax_ranges(jax: Any, name: str) -> list[Any]:
    """A range on the host; while a function is traced scopes instead, as its time then is that of compiling."""
    if _at_top_level():
        return [jax.profiler.TraceAnnotation(MARK_PREFIX + name)]
    # "/" separates the scopes of an op, so each part is a scope of its own.
    return [jax.named_scope(MARK_PREFIX + part.strip()) for part in name.split("/") if part.strip()]


def _nvtx_listens() -> bool:
    """A tool takes NVTX ranges: one is attached to this process, as far as can be told."""
    nvtx = _modules.get("nvtx")
    return _under_nsys or (nvtx is not None and _attached(nvtx))


@functools.cache
def _attached(nvtx: Any) -> bool:
    """The package hands out a domain that does nothing where no tool is attached to the process (nvtx 0.2)."""
    try:
        return type(nvtx.get_domain("traceview")).__name__ != "DummyDomain"
    except AttributeError:  # It is being imported, or no NVTX package.
        return False


def _nvtx_ranges(mark: str) -> list[Any]:
    nvtx = _modules.get("nvtx")
    if nvtx is None and _under_nsys:
        nvtx = _nvtx_or_none()
    if nvtx is not None and hasattr(nvtx, "push_range"):
        return [_NvtxRange(nvtx.push_range, nvtx.pop_range, mark)]
    torch = _modules.get("torch") if _under_nsys else None
    if torch is not None and torch.version.cuda is not None:
        return [_NvtxRange(torch.cuda.nvtx.range_push, torch.cuda.nvtx.range_pop, mark)]
    return []


@functools.cache
def _nvtx_or_none() -> Any:
    try:
        return nvtx_module("stage")
    except TraceviewError:
        return None


class _NvtxRange:
    __slots__ = ("_mark", "_pop", "_push")

    def __init__(self, push: Callable[[str], object], pop: Callable[[], object], mark: str) -> None:
        self._push = push
        self._pop = pop
        self._mark = mark

    def __enter__(self) -> None:
        self._push(self._mark)

    def __exit__(self, *_: object) -> None:
        self._pop()


_IMPORTS: Final = {
    "torch": lambda: torch_module("stage"),
    "nvtx": lambda: nvtx_module("stage"),
    "jax": lambda: jax_module("stage"),
}
