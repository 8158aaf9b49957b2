"""The fast reader of Kineto JSON: blocks of text in, columns out, on two threads and in bounded memory."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from .block import BLANKS, BlockResult, decode_text, read_block
from .blocks import BLOCK_BYTES, BlockStream
from .columns import Knowledge
from .head import is_trace_head, no_events_error, read_head, read_tail
from .pieces import Assembly
from .reference import read_reference
from .source import Source
from .tally import Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from .raw import RawTrace

__all__ = ["read", "read_reference"]

_MAX_OPEN_CHARS: Final = 8 << 20
_MAX_TAIL_BYTES: Final = 256 << 20


def read(
    path: Path,
    *,
    progress: Callable[[float], None] | None = None,
    threads: int = 2,
    block_bytes: int = BLOCK_BYTES,
) -> RawTrace:
    """Read a Kineto trace file.

    Everything that is whole is read; what had to be repaired or given up is counted by kind, see
    :data:`~.tally.KINDS`.

    Args:
        path: A ``.json`` or ``.json.gz`` file; which of them it is, is told by its content.
        progress: Called with the share of the file read so far, 0 to 1.
        threads: Blocks that are parsed at the same time.
        block_bytes: Size of the blocks of text.

    Raises:
        UnreadableTraceError: The file cannot be opened, inflates without end, or holds nothing of a trace.
    """
    source = Source(path)
    try:
        return _read(path, source, BlockStream(source, block_bytes), progress, threads)
    finally:
        source.close()


def _read(
    path: Path, source: Source, stream: BlockStream, progress: Callable[[float], None] | None, threads: int
) -> RawTrace:
    tally, assembly = Tally(), Assembly()
    if not stream.start():
        head = read_head(decode_text(stream.head, tally), tally)
        if not is_trace_head(head):
            raise no_events_error(path, empty=not stream.head.strip())
        closed = stream.head.rstrip().endswith(b"}")
        damage = source.why_damaged(whole=closed)
        return assembly.finish(head, tally, truncated=source.truncated or not closed, damage=damage)
    head = {} if stream.list_root else read_head(decode_text(stream.head, tally), tally)
    knowledge = Knowledge()
    open_text = ""
    tail: str | None = None
    results = _parsed_blocks(stream.blocks(), knowledge, threads)
    for block, result in results:
        if progress is not None and source.size:
            progress(min(1.0, source.consumed / source.size))
        if open_text:
            # The cut before this block was in the middle of an event.
            joined = b"".join((BLANKS, open_text.encode(errors="replace"), b",", block[len(BLANKS) :]))
            result = read_block(joined, knowledge)
        tally.merge(result.tally)
        assembly.append(result.piece, tally)
        open_text = result.open_text
        if len(open_text) > _MAX_OPEN_CHARS:
            tally.add("lost-event", open_text[:400])
            open_text = ""
        if result.tail is not None:
            tail = result.tail + _rest(results, tally)
            break
    closed = False
    if open_text:
        tally.add("lost-cut", open_text[:400])
    if tail is not None:
        members, closed = read_tail(tail, tally, list_root=stream.list_root)
        head.update(members)
    damage = source.why_damaged(whole=closed)
    return assembly.finish(head, tally, truncated=source.truncated or not closed, damage=damage)


def _rest(results: Iterable[tuple[bytes, BlockResult]], tally: Tally) -> str:
    """The text of all blocks that are left."""
    parts: list[bytes] = []
    size = 0
    for block, _ in results:
        size += len(block)
        if size <= _MAX_TAIL_BYTES:
            parts.append(block[len(BLANKS) : -len(BLANKS)])
    if size > _MAX_TAIL_BYTES:
        tally.add("lost-metadata", "metadata behind the events are too long")
    return "".join("," + decode_text(part, tally) for part in parts)


def _parsed_blocks(blocks: Iterator[bytes], knowledge: Knowledge, threads: int) -> Iterator[tuple[bytes, BlockResult]]:
    """Each block with its result, in file order; few blocks are in memory at a time."""
    first = next(blocks, None)
    if first is None:
        return
    # The first block teaches the keys, so it is worth having it done before the others start.
    yield first, read_block(first, knowledge)
    second = next(blocks, None)
    if second is None:
        return
    if threads < 2:
        yield second, read_block(second, knowledge)
        for block in blocks:
            yield block, read_block(block, knowledge)
        return
    from concurrent.futures import Future, ThreadPoolExecutor

    waiting: deque[tuple[bytes, Future[BlockResult]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        waiting.append((second, pool.submit(read_block, second, knowledge)))
        for block in blocks:
            waiting.append((block, pool.submit(read_block, block, knowledge)))
            if len(waiting) >= threads:
                done, future = waiting.popleft()
                yield done, future.result()
        while waiting:
            done, future = waiting.popleft()
            yield done, future.result()
