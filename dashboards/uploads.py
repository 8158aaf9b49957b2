"""Uploaded files: written to disk at once, known to one session, gone when it ends."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from typing import TYPE_CHECKING, Final

from traceview.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

MOST_UPLOAD_MB: Final = 1024
"""An upload passes through memory as a whole; larger files are given by their path."""

FOLDER_VARIABLE: Final = "TRACEVIEW_DASHBOARD_UPLOADS"
"""Folder for uploads that whoever started the server removes even if the server is killed."""

_UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f]" if os.name != "nt" else r'[\x00-\x1f\x7f<>:"|?*]')
"""What a file of this system cannot be called, or what would be obeyed where its name is shown."""

_MOST_BYTES: Final = 200
"""Of one part of a name; file systems take 255, and a folder with many of the same name makes some longer."""


def upload_root() -> str:
    """The folder of all uploads of this server, for this user alone."""
    given = os.environ.get(FOLDER_VARIABLE)
    if given and os.path.isdir(given):
        return given
    made = tempfile.mkdtemp(prefix="traceview-uploads-")
    os.environ[FOLDER_VARIABLE] = made
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


class Uploads:
    """The files that one session has uploaded."""

    def __init__(self) -> None:
        self.folders: dict[str, str] = {}
        """Folder of each upload, by trace id."""

    def write(self, files: Sequence[tuple[str, BinaryIO]]) -> tuple[str, list[str]]:
        """Write files that were uploaded together into a folder of their own.

        Args:
            files: Name as the browser gives it, which may hold folders, and content.

        Returns:
            The folder, and the path of each file, in order.

        Raises:
            UsageError: the disk does not take them.
        """
        folder = tempfile.mkdtemp(dir=upload_root())
        paths = []
        try:
            for name, content in files:
                path = os.path.join(folder, *safe_parts(name))
                os.makedirs(os.path.dirname(path), exist_ok=True)
                while os.path.exists(path):
                    path = f"{path}_"
                with open(path, "xb") as file:
                    shutil.copyfileobj(content, file)
                paths.append(path)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise UsageError(
                "cannot-store",
                why=f"the upload cannot be written to disk: {error.strerror}.",
                next_step="Free space in the temporary folder, or give the path of the file instead.",
            ) from None
        return folder, paths

    def keep(self, trace_id: str, folder: str) -> None:
        """Remember which trace a folder holds; an earlier upload of the same content is not needed any more."""
        if trace_id in self.folders:
            self.remove(folder)
            return
        self.folders[trace_id] = folder

    def forget(self, trace_id: str) -> None:
        """Remove the upload that is a trace; nothing if this session did not upload it."""
        folder = self.folders.pop(trace_id, None)
        if folder is not None:
            self.remove(folder)

    def remove(self, folder: str) -> None:
        """Remove an upload that is no trace."""
        shutil.rmtree(folder, ignore_errors=True)

    def clear(self) -> None:
        """Remove all of them."""
        for folder in self.folders.values():
            shutil.rmtree(folder, ignore_errors=True)
        self.folders.clear()


def is_upload(path: str) -> bool:
    """Whether a path lies in the folder of uploads."""
    root = os.environ.get(FOLDER_VARIABLE)
    return root is not None and os.path.abspath(path).startswith(os.path.abspath(root) + os.sep)


def without_folders(text: str) -> str:
    """``text`` without the folders of uploads in it: they mean nothing to a reader."""
    root = os.environ.get(FOLDER_VARIABLE)
    return re.sub(re.escape(root + os.sep) + r"[^/\\\s]+[/\\]", "", text) if root else text


def safe_parts(name: str) -> list[str]:
    """The parts of a path from a browser that cannot lead out of the folder it is put in."""
    parts = [_UNSAFE.sub("_", part).lstrip(".") for part in re.split(r"[/\\]", name)]
    return [_cut(part) for part in parts if part.strip(". ")] or ["trace"]


def _cut(part: str) -> str:
    """The end of a long name: its ending says what it is."""
    return part.encode(errors="replace")[-_MOST_BYTES:].decode(errors="ignore")
