"""``traceview cache``: what is kept of traces that were loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from traceview.cli.command import Answer, add_debug_option
from traceview.errors import ExitCode, UsageError

if TYPE_CHECKING:
    import argparse

    from traceview.cache import Cache, Entry

NAME = "cache"
SUMMARY = "Show or clear what is kept of traces that were loaded"
DESCRIPTION = (
    "A trace that took long to load is kept in the user's cache and opens from there as long as its content stays the "
    "same. This shows what is kept, or removes it."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    parser.add_argument(
        "action", nargs="?", choices=("list", "clear", "path"), default="list",
        help="list what is kept (default), clear it, or print the folder",
    )  # fmt: skip
    parser.add_argument("--format", choices=("text", "json"), default="text", help="form of the result (default: text)")
    add_debug_option(parser)


def run(options: argparse.Namespace) -> Answer:
    """Look, or clear."""
    from traceview.cache import Cache
    from traceview.cache_place import user_folder, user_limit

    cache = Cache(user_folder(), limit_bytes=user_limit())
    entries = _entries(cache) if options.action == "list" else None
    cleared = _clear(cache) if options.action == "clear" else None

    def write(out: TextIO) -> None:
        from traceview.render import cached

        if options.format == "json":
            from traceview.render.documents import dumps

            print(dumps(cached.cache_document(cache, entries, cleared)), file=out)
        else:
            out.write(cached.cache_text(cache, entries, cleared))

    return Answer(ExitCode.OK, write)


def _entries(cache: Cache) -> list[Entry]:
    try:
        return cache.entries()
    except OSError as error:
        raise UsageError(
            "cannot-list",
            where=str(cache.folder),
            why=f"cannot be listed: {error.strerror or error}.",
            next_step="The cache needs a folder of yours there, or TRACEVIEW_CACHE_DIR set to another place.",
        ) from None


def _clear(cache: Cache) -> tuple[int, int]:
    try:
        return cache.clear()
    except OSError as error:
        raise UsageError(
            "cannot-clear",
            where=str(cache.folder),
            why=f"cannot be cleared: {error.strerror or error}.",
            next_step="Remove it by hand.",
        ) from None
