"""``profile_dispatch``: record a block with the PyTorch profiler and judge it at once."""

from __future__ import annotations

import os
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Self, TypeVar

from traceview.errors import TraceviewError
from traceview.pytest_plugin.asserting import calling_place

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    import pytest

    from traceview.gate import CheckResult
    from traceview.pytest_plugin.asserting import AssertDispatch
    from traceview.pytest_plugin.settings import Expect, Place

_Arguments = ParamSpec("_Arguments")
_Returned = TypeVar("_Returned")


class ProfileDispatch:
    """The fixture's value: call it for something to record with.

    Args:
        assert_dispatch: Judges what was recorded.
        request: Of the test.
    """

    def __init__(self, assert_dispatch: AssertDispatch, request: pytest.FixtureRequest) -> None:
        self.assert_dispatch = assert_dispatch
        self._request = request
        self._recordings = 0

    def __call__(
        self,
        expect: Expect | None = None,
        *,
        inconclusive: Literal["fail", "warn"] | None = None,
        with_stack: bool = False,
    ) -> Recording:
        """Something to record with, as a context manager or around a function.

        PyTorch is imported when a recording starts. Its version, and that of cuDNN, are those of the running process,
        whatever the expectations and the marker say.

        Args:
            expect: As for ``assert_dispatch``.
            inconclusive: As for ``assert_dispatch``.
            with_stack: Record Python call stacks too, so that findings name the line that asked. Slower.
        """
        return Recording(self, calling_place(), {"expect": expect, "inconclusive": inconclusive}, with_stack=with_stack)

    def new_path(self) -> str:
        """Where the next recording goes."""
        self._recordings += 1
        folder = self._request.getfixturevalue("tmp_path")
        return os.path.join(folder, f"dispatch-{self._recordings}.pt.trace.json")


class Recording:
    """Records what runs inside a ``with`` block, and judges it at the end; not if the block itself fails.

    Args:
        fixture: Whose recording it is.
        place: Where the test asked for it.
        given: What it is held to.
        with_stack: Record Python call stacks.

    Attributes:
        path: The trace of the last recording, ``None`` before.
        result: What the last check found, ``None`` before.
    """

    def __init__(self, fixture: ProfileDispatch, place: Place, given: dict[str, Any], *, with_stack: bool) -> None:
        self._fixture = fixture
        self._place = place
        self._given = given
        self._with_stack = with_stack
        self._torch: Any = None
        self._profiler: Any = None
        self.path: str | None = None
        self.result: CheckResult | None = None

    def __enter__(self) -> Self:
        __tracebackhide__ = True
        reason = None
        try:
            self._start()
        except TraceviewError as error:
            reason = str(error)
        if reason is not None:
            self._fixture.assert_dispatch.cannot_run(reason)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        __tracebackhide__ = True
        profiler, self._profiler = self._profiler, None
        try:
            if kind is None and self._torch.cuda.is_available():
                # Kernels still in flight would be missing from the trace.
                self._torch.cuda.synchronize()
        finally:
            profiler.stop()
        if kind is not None:
            return
        self.path = self._fixture.new_path()
        profiler.export_chrome_trace(self.path)
        running = {"torch": str(self._torch.__version__), "cudnn": _cudnn_version(self._torch)}
        self.result = self._fixture.assert_dispatch.judge(self.path, self._place, {**self._given, **running})

    def __call__(self, function: Callable[_Arguments, _Returned]) -> Callable[_Arguments, _Returned]:
        """``function``, recorded and judged at each call."""

        @wraps(function)
        def recorded(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Returned:
            __tracebackhide__ = True
            with self:
                return function(*args, **kwargs)

        return recorded

    def _start(self) -> None:
        if self._profiler is not None:
            raise TraceviewError("profiling", why="this recording is running already.", next_step="Make a second one.")
        self._torch = _torch()
        profiler = self._torch.profiler
        activities = [profiler.ProfilerActivity.CPU]
        if self._torch.cuda.is_available():
            activities.append(profiler.ProfilerActivity.CUDA)
        if self._torch.autograd._profiler_enabled():  # noqa: SLF001 - a second one would end the first without a word
            raise TraceviewError(
                "profiling",
                why="the PyTorch profiler is running already, and only one can.",
                next_step="Is this block inside another one that is profiled?",
            )
        started = profiler.profile(activities=activities, record_shapes=True, with_stack=self._with_stack)
        started.start()
        self._profiler = started


def _torch() -> Any:
    """PyTorch, which only this needs.

    Raises:
        TraceviewError: it is not installed or cannot be imported.
    """
    try:
        # By name: traceview runs without the frameworks it explains, and its import contracts hold it to that.
        torch = import_module("torch")
        import_module("torch.profiler")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise TraceviewError("no-torch", why=f"PyTorch cannot be imported: {error}.") from None
        raise TraceviewError(
            "no-torch",
            why="profile_dispatch needs PyTorch, which is not installed here.",
            next_step="Install it (pip install torch), or give assert_dispatch a trace recorded elsewhere.",
        ) from None
    except (ImportError, OSError) as error:
        raise TraceviewError("no-torch", why=f"PyTorch cannot be imported: {error}.") from None
    return torch


def _cudnn_version(torch: Any) -> str | None:
    """The version of cuDNN that runs, ``None`` without a CUDA device; 91002 is 9.10.2, 8907 is 8.9.7."""
    if not torch.cuda.is_available() or torch.version.cuda is None:
        return None
    try:
        number = torch.backends.cudnn.version()
    except RuntimeError:  # Built for another version than it found.
        return None
    if not number:
        return None
    per_major = 10_000 if number >= 90_000 else 1_000
    major, rest = divmod(int(number), per_major)
    return f"{major}.{rest // 100}.{rest % 100}"
