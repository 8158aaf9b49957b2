"""``profile_dispatch``: record a block with the PyTorch profiler and judge it at once."""

from __future__ import annotations

import json
import os
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Self, TypeVar

from traceview.capture.documents import new_session
from traceview.capture.frameworks import cudnn_version, torch_gpus, torch_module, torch_versions
from traceview.capture.torch_recording import activities, is_recording, synchronise
from traceview.capture.torch_settings import SettingsWatch, read_settings
from traceview.capture_info import KEY, CaptureInfo
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
        self._watch: Any = None
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
        watch, self._watch = self._watch, None
        try:
            if kind is None:
                # Kernels still in flight would be missing from the trace.
                synchronise(self._torch)
                profiler.add_metadata_json(KEY, json.dumps(self._described(watch).document()))
        finally:
            profiler.stop()
            watch.__exit__(None, None, None)
        if kind is not None:
            return
        self.path = self._fixture.new_path()
        profiler.export_chrome_trace(self.path)
        running = {"torch": str(self._torch.__version__), "cudnn": cudnn_version(self._torch)}
        self.result = self._fixture.assert_dispatch.judge(self.path, self._place, {**self._given, **running})

    def __call__(self, function: Callable[_Arguments, _Returned]) -> Callable[_Arguments, _Returned]:
        """``function``, recorded and judged at each call."""

        @wraps(function)
        def recorded(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Returned:
            __tracebackhide__ = True
            with self:
                return function(*args, **kwargs)

        return recorded

    def _described(self, watch: SettingsWatch) -> CaptureInfo:
        """The conditions of the recording, which the verdict may rest on."""
        return CaptureInfo(
            session=new_session(),
            framework="torch",
            versions=torch_versions(self._torch),
            gpus=torch_gpus(self._torch),
            settings=read_settings(self._torch),
            changed=watch.changed(),
        )

    def _start(self) -> None:
        if self._profiler is not None:
            raise TraceviewError("profiling", why="this recording is running already.", next_step="Make a second one.")
        self._torch = torch_module("profile_dispatch", ", or give assert_dispatch a trace recorded elsewhere")
        if is_recording(self._torch):  # A second one would end the first without a word.
            raise TraceviewError(
                "profiling",
                why="the PyTorch profiler is running already, and only one can.",
                next_step="Is this block inside another one that is profiled?",
            )
        started = self._torch.profiler.profile(
            activities=activities(self._torch), record_shapes=True, with_stack=self._with_stack
        )
        self._watch = SettingsWatch(self._torch).__enter__()
        started.start()
        self._profiler = started
