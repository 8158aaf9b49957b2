"""A trace whose names try everything that a page could take for more than text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sample_traces.authoring import H100, Tensor, Trace

if TYPE_CHECKING:
    from pathlib import Path

NAME = (
    "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>**bold** "
    "[link](javascript:alert(1)) ![pic](http://example.invalid/x.png) $E=mc^2$ :material/home: :red[red] :smile: `code` "
    "-> http://example.invalid\n# heading\n\n| a | b |"
)
"""HTML, script, emphasis, links, pictures, formulas, icons, colours, emoji, code, arrows, headings and tables."""


def write_hostile(folder: Path) -> Path:
    """A trace in which stage, kernel, op, thread and Python frame have that name."""
    trace = Trace(gpu=H100, note="hostile names")
    main = trace.thread(name=NAME)
    q = Tensor(2, 8, 1024, 64)
    for step in range(3):
        with main.step(step), main.range(NAME):
            with main.op(f"aten::{NAME}", Tensor(64, 64), Tensor(64, 64)):
                main.launch(NAME, us=120)
            with main.op("aten::_scaled_dot_product_attention_math", q, q, q):
                main.launch(f"gemm {NAME}", us=40)
                main.launch("softmax_warp_forward", us=20)
            main.sync()
    return trace.write(folder / "<b>x<b>**y**.json")
