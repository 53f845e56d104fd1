"""What a person sees while a suite runs."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

if TYPE_CHECKING:
    from ocsdf_bench.store import Run

STYLES = {"ok": "green", "failed": "red", "timeout": "yellow", "oom": "yellow", "skipped": "dim"}


class SuiteProgress:
    """A bar with the time left; one line a run where the output is no terminal (CI), and for each
    run that is not ok.
    """

    def __init__(self, name: str, n_runs: int, console: Console) -> None:
        self.console, self.n_runs, self.n_done = console, n_runs, 0
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task(name, total=n_runs)

    def __enter__(self) -> SuiteProgress:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def __call__(self, run: Run) -> None:
        from rich.markup import escape

        self.n_done += 1
        spec = run.spec
        where = f"{spec.dataset}{f' ({spec.normal_class})' if spec.normal_class else ''}"
        name = escape(f"{where} · {spec.detector} · seed {spec.seed}")
        if run.status != "ok":
            style = STYLES[run.status]
            self._bar.console.print(
                f"[{style}]{run.status}[/] {name}: {escape(run.reason)}", highlight=False, soft_wrap=True
            )
        elif not self.console.is_terminal:
            auroc = next(m.value for m in run.metrics if m.metric == "auroc")
            self.console.print(
                f"{self.n_done}/{self.n_runs} {name}: AUROC {100 * auroc:.1f}",
                highlight=False,
                soft_wrap=True,
            )
        self._bar.update(self._task, advance=1, description=name)
