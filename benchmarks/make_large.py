"""Build a large, valid Kineto trace by repeating the events of a small one.

Every repetition is shifted in time and gets ids of its own (correlation, External id, Python id, flow id, ...), so
that events of different repetitions never belong together. Names repeat, as they do in a real training run; text that
repeats is flattering to every reader that interns strings, and to gzip.

    python benchmarks/make_large.py trace.json.gz big.json --mb 200
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from decimal import Decimal
from pathlib import Path

_SHIFTED = re.compile(
    r'"(ts|id|External id|external id|correlation|Python id|Python parent id|Ev Idx|Record function id'
    r'|Sequence number)"(\s*:\s*)([0-9]+(?:\.[0-9]+)?)(?=[\s,}])'
)
_EVENTS = re.compile(r'"traceEvents"\s*:\s*\[')


def load_text(path: Path) -> str:
    """The text of a trace."""
    data = path.read_bytes()
    return (gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data).decode()


def split_events(text: str) -> tuple[str, list[str], str]:
    """The text before the first event, that of each event, and that behind the last one."""
    found = _EVENTS.search(text)
    if found is None:
        raise SystemExit("the file has no traceEvents")
    decoder = json.JSONDecoder(strict=False)
    events = []
    at = text.index("{", found.end())
    head = text[: found.end()]
    while True:
        end = decoder.raw_decode(text, at)[1]
        events.append(text[at:end])
        rest = text[end:].lstrip() if end + 200 > len(text) else text[end : end + 200].lstrip()
        if not rest.startswith(","):
            return head, events, text[end:]
        at = text.index("{", end)


def templates(events: list[str]) -> tuple[list[list[str]], Decimal, int]:
    """Each event as pieces of text; every second one is a number to shift, as ``t:...`` (time) or ``i:...`` (id).

    Returns:
        The pieces; the time that one repetition takes, microseconds; and how many ids it takes.
    """
    times = []
    top = 0
    out = []
    for text in events:
        pieces = []
        at = 0
        for match in _SHIFTED.finditer(text):
            number = match[3]
            if match[1] == "ts":
                times.append(Decimal(number))
            else:
                top = max(top, int(number))
            pieces += [text[at : match.start(3)], f"{'t' if match[1] == 'ts' else 'i'}:{number}"]
            at = match.end(3)
        out.append([*pieces, text[at:]])
    positive = [time for time in times if time > 0]
    return out, max(positive) - min(positive) + 1000, top + 1


def write_large(source: Path, target: Path, size: int) -> int:
    """Write ``target`` with about ``size`` bytes, in the layout of ``source``; returns the number of events."""
    head, events, tail = split_events(load_text(source))
    if '"rank"' not in head + tail:
        # HolisticTraceAnalysis wants to know the rank.
        head = head.replace("{", '{\n  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 1},', 1)
    pieces, span, ids = templates(events)
    is_metadata = ['"ph": "M"' in text or '"ph":"M"' in text for text in events]
    written = count = repetition = 0
    with target.open("w", encoding="utf-8") as file:
        written += file.write(head + "\n")
        while written < size:
            for event, once in zip(pieces, is_metadata, strict=True):
                if once and repetition:
                    continue
                text = ",\n" if count else ""
                for k, part in enumerate(event):
                    text += _shifted(part, span * repetition, ids * repetition) if k % 2 else part
                written += file.write(text)
                count += 1
                if written >= size:
                    break
            repetition += 1
        file.write("\n" + tail.lstrip())
    return count


def _shifted(part: str, time: Decimal, ids: int) -> str:
    kind, number = part.split(":")
    return str(Decimal(number) + time) if kind == "t" else str(int(number) + ids)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--mb", type=int, default=200, help="size in units of 1,000,000 bytes")
    options = parser.parse_args()
    count = write_large(options.source, options.target, options.mb * 1_000_000)
    print(f"{count} events, {options.target.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
