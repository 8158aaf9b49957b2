"""What recordings of PyTorch and of JAX have in common: where they go, how many steps they have, their timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from traceview.capture import documents
from traceview.capture.steady import WarmUp
from traceview.errors import TraceviewError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from traceview.capture_info import CaptureInfo
    from traceview.timeline import Timeline


class Recording:
    """A recording of steps, some of them warm-up.

    Attributes:
        path: The trace.
        info: What is written down about the recording; ``None`` before the end.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        warmup: int,
        steps: int | None,
        sync_steps: bool,
        contract: Mapping[str, Any] | None,
    ) -> None:
        self.path = documents.checked_path(path)
        self.info: CaptureInfo | None = None
        self._contract = documents.checked_contract(contract)
        self._warmup = warmup
        self._steps = steps
        self._sync_steps = sync_steps
        self._before = WarmUp(0, None)
        self._done = 0
        self._timeline: Timeline | None = None

    @property
    def timeline(self) -> Timeline:
        """The trace, loaded.

        Raises:
            TraceviewError: nothing was recorded yet.
        """
        if self.info is None:
            raise TraceviewError("not-recorded", where=self.path, why="nothing is recorded yet.")
        if self._timeline is None:
            from traceview.loading import load

            self._timeline = load(self.path)
        return self._timeline

    @property
    def _complete(self) -> bool:
        """Every step that was asked for is done."""
        return self._steps is not None and self._done >= self._warmup + self._steps

    def _no_steps(self, what: str) -> TraceviewError:
        """That ``what`` ended within the warm-up."""
        return TraceviewError(
            "no-steps",
            where=self.path,
            why=f"the {what} ended after {self._done} of {self._warmup} warm-up steps, so there is no trace.",
            next_step="Call step() at the end of every step, or ask for less warm-up.",
        )
