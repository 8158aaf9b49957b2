"""Which slices of a track need a track beside it: a viewer draws only slices that nest, and drops the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def assign(tracks: NDArray[np.int64], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int32]:
    """The lane of each slice, 0 for the track itself: within a lane of a track all slices nest or follow each other.

    Args:
        tracks: Of each slice, any number.
        starts: Ascending; of slices that start together the longer comes first.
        ends: Of each slice; one that ends where it starts is an instant and fits everywhere.
    """
    lanes: list[int] = []
    open_ends: dict[int, list[list[int]]] = {}
    for track, start, end in zip(tracks.tolist(), starts.tolist(), ends.tolist(), strict=True):
        if start == end:
            lanes.append(0)
            continue
        of_track = open_ends.get(track)
        if of_track is None:
            open_ends[track] = [[end]]
            lanes.append(0)
            continue
        for at, stack in enumerate(of_track):
            while stack and stack[-1] <= start:
                stack.pop()
            if not stack or end <= stack[-1]:
                stack.append(end)
                lanes.append(at)
                break
        else:
            lanes.append(len(of_track))
            of_track.append([end])
    return np.array(lanes, np.int32)
