"""Write the sample traces anew.

Usage: ``python sample_traces/make.py [--record] [FOLDER]`` (default: this folder).

Without ``--record`` only what is authored is written, and comes out the same each time. With it the recordings are
made again too, which needs PyTorch and JAX and changes their times.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
if not __package__:  # Started as a script: make the folder importable by its own name.
    sys.path.insert(0, str(HERE.parent))

from sample_traces import index, make_authored, make_xprof  # noqa: E402


def main() -> None:
    """Write everything that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", nargs="?", type=Path, default=HERE)
    parser.add_argument("--record", action="store_true", help="also record the PyTorch and JAX CPU samples again")
    options = parser.parse_args()
    for path in [*make_authored.build(options.folder), *make_xprof.build(options.folder / "xprof")]:
        print(f"{path.stat().st_size:>8}  {path}")
    if options.folder == HERE:
        index.write()
    if options.record:
        from sample_traces import make_jax_cpu, make_torch_cpu

        make_torch_cpu.main(options.folder)
        make_jax_cpu.main(options.folder / "xprof")


if __name__ == "__main__":
    main()
