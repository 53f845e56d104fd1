"""One line on stderr that says how far a training is."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from ocsdf._train import History


class Progress:
    """Context manager whose ``show`` redraws the line at most ten times a second."""

    def __init__(self, title: str, total: int, *, enabled: bool) -> None:
        self._title, self._total, self._enabled = title, total, enabled
        self._start = self._last = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._enabled:
            sys.stderr.write("\n")

    def show(self, update: int, history: History) -> None:
        """Draw the state after ``update`` updates."""
        now = time.monotonic()
        if not self._enabled or (now - self._last < 0.1 and update < self._total):
            return
        self._last = now
        filled = 30 * update // self._total
        left = (now - self._start) / update * (self._total - update)
        loss = f" loss {history.loss[-1]:.3g} inside {history.inside[-1]:.0%}" if history.loss else ""
        bar = "#" * filled + "." * (30 - filled)
        sys.stderr.write(f"\r{self._title} [{bar}] {update}/{self._total} {left:.0f} s left{loss}")
        sys.stderr.flush()
