"""Record attention, matrix products, gaps and copies on a GPU, with what the frameworks say they chose.

Usage: ``python sample_traces/make_gpu.py FOLDER [--framework torch|jax] [--only TEXT] [--check]``.

Writes a trace per case and ``gpu-truth.json``: what was asked for, and what PyTorch itself says about it
(``torch._fused_sdp_choice``, ``can_use_*_attention``). ``--check`` compares the traces in a folder with that table, as
``traceview check-dispatch`` and ``explain`` read them, and exits 1 if anything differs. ``--device cpu`` is a dry run
with tiny sizes. Made to take less than four minutes on one GPU.

One framework a process: run it once for each, into the same folder.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_prepared import Prepared

TRUTH: Final = "gpu-truth.json"
SCHEMA: Final = "traceview.gpu-truth/1"
MOST_BYTES: Final = 1_000_000
STEPS: Final = 3


def main(arguments: list[str]) -> int:
    """Record, or check."""
    parser = argparse.ArgumentParser(description="Record GPU sample traces with a truth table, or check them.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--framework", choices=("torch", "jax"), default="torch")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--only", metavar="TEXT", action="append", help="cases with this in their name")
    parser.add_argument("--check", action="store_true", help="compare the traces of the folder with its table")
    options = parser.parse_args(arguments)
    if options.check:
        from gpu_check import check_folder

        return check_folder(options.folder / TRUTH)
    why = why_not(options.framework, options.device)
    if why:
        print(f"make_gpu: {why}", file=sys.stderr)
        return 2
    options.folder.mkdir(parents=True, exist_ok=True)
    record(options)
    return 0


def why_not(framework: str, device: str) -> str:
    """Why nothing can be recorded here; empty if it can."""
    try:
        if framework == "torch":
            import torch

            found = device == "cpu" or torch.cuda.is_available()
        else:
            if device == "cpu":
                os.environ["JAX_PLATFORMS"] = "cpu"
            import jax

            found = device == "cpu" or jax.default_backend() == "gpu"
    except ImportError as error:
        return f"{framework} cannot be imported: {error}."
    return "" if found else f"{framework} finds no GPU here; --device cpu is a dry run."


def record(options: argparse.Namespace) -> None:
    """Record every case, and write the table anew after each: what was recorded stays if a later case fails."""
    path = options.folder / TRUTH
    table = read_table(path) if path.exists() else {"schema": SCHEMA, "cases": []}
    begin = time.monotonic()
    for case in cases(options):
        suffix = ".json.gz" if options.framework == "torch" else ".xplane.pb"
        row = {
            "name": case.name, "framework": options.framework, "device": options.device, "kind": case.kind,
            "trace": case.name + suffix, "steps": STEPS, "asked": case.asked, "says": case.says, "failed": None,
        }  # fmt: skip
        try:
            row["recorded"] = recorded(case, options.framework, options.folder / row["trace"])
        except Exception as error:  # noqa: BLE001 - a case that this machine cannot run is a result, and others follow
            row["failed"] = f"{type(error).__name__}: {str(error).splitlines()[0][:200]}" if str(error) else repr(error)
        table["cases"] = [*(one for one in table["cases"] if one["name"] != case.name), row]
        path.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
        became = row["failed"] or f"{row['recorded']['bytes']:,} bytes"
        print(f"{time.monotonic() - begin:6.1f} s  {case.name}: {became}", flush=True)


def cases(options: argparse.Namespace) -> Iterator[Prepared]:
    """The cases that are possible here, each made when its turn comes."""
    if options.framework == "torch":
        from gpu_torch_cases import prepared
    else:
        from gpu_jax_cases import prepared
    for name, make in prepared(options.device):
        if options.only and not any(text in name for text in options.only):
            continue
        try:
            case = make()
        except Exception as error:  # noqa: BLE001 - see above
            print(f"left out: {name}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
            continue
        if case is not None:
            yield case


def recorded(case: Prepared, framework: str, path: Path) -> dict[str, Any]:
    """Record one case; versions, GPUs and size of what was written."""
    from traceview.capture import profile_jax, profile_torch

    contract = {"case": case.name, **{name: value for name, value in case.asked.items() if isinstance(value, str)}}
    with warnings.catch_warnings(), case.setting():
        warnings.simplefilter("ignore")
        if framework == "torch":
            timeline = profile_torch(case.call, path=path, steps=STEPS, contract=contract)
        else:
            timeline = profile_jax(case.call, path=path, steps=STEPS, sync_steps=True, contract=contract)
    size = path.stat().st_size
    if size > MOST_BYTES:
        print(f"{path.name} has {size:,} bytes, more than {MOST_BYTES:,}.", file=sys.stderr)
    info = timeline.runs[0].capture
    if info is None:
        raise RuntimeError("the trace holds no conditions")
    return {"versions": dict(info.versions), "gpus": list(info.gpus), "bytes": size}


def read_table(path: Path) -> dict[str, Any]:
    """The truth table of a folder."""
    table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if table.get("schema") != SCHEMA:
        raise SystemExit(f"make_gpu: {path} is no table of this script.")
    return table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
