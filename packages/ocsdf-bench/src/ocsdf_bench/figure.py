"""How every figure looks, and how it becomes a file or a part of a page."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette, without black (the text's colour) and yellow (too light on white).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
INK = "#1b1f24"  # becomes the page's text colour where a figure is put into a page
STYLE: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.color": "#808080",
    "legend.frameon": False,
    "svg.fonttype": "path",
    "text.parse_math": False,  # a dollar in a name is a dollar
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
}


@contextmanager
def canvas(width: float, height: float) -> Iterator[tuple[Figure, Any]]:
    """A figure with one axes, in the style of all of them; sizes in inches."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure, figure.add_subplot()


def shorten(text: str, limit: int = 34) -> str:
    """One line that fits beside an axis or above a column.

    Of a detector's parameters the last are kept: those that tell variants apart come late in the alphabet.

    >>> shorten("OCSDF (full_rows=4000, margin=0.2, recipe=paper)")
    'OCSDF (…margin=0.2, recipe=paper)'
    """
    text = " ".join(text.split())
    if len(text) <= limit:
        return text
    name, _, inside = text.removesuffix(")").partition(" (")
    for start in re.finditer(r", (?=\w+=)", inside):
        kept = f"{name} (…{inside[start.end() :]})"
        if len(kept) <= limit:
            return kept
    return f"{name} (…)" if inside and len(name) + 4 <= limit else text[: limit - 1] + "…"


def save_png(figure: Figure, path: Path) -> Path:
    """Write ``figure`` at 200 dots per inch; the same figure gives the same bytes."""
    from matplotlib import rc_context

    with rc_context(STYLE):
        figure.savefig(path, dpi=200, metadata={"Software": None})
    return path


def to_svg(figure: Figure, name: str) -> str:
    """An ``<svg>`` element for a page: text in the page's colour, no background, ids salted by ``name``."""
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context({**STYLE, "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :].replace(INK, "currentColor")
