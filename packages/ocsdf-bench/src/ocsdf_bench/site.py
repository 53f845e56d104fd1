"""Static site of several stores: an index to sort and filter, a page per data set and per detector.

Every page is self-contained: no request leaves it. Names come from stores that others may have written, so
they are escaped by the templates and never become part of a path as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ocsdf_bench.detail import HOME, Store, dataset_file, dataset_page, detector_file, detector_page, slug
from ocsdf_bench.grid import Key, Results
from ocsdf_bench.leaderboard.quality import mean_over
from ocsdf_bench.leaderboard.reading import THREATS, is_pixels, method_note, radius_text
from ocsdf_bench.leaderboard.structure import percent
from ocsdf_bench.page import render_leaderboard, render_page
from ocsdf_bench.plot import pictures
from ocsdf_bench.table import read_leaderboard


@dataclass(frozen=True)
class Entry:
    """One row of the index: a detector under one suite, protocol, threat and radius."""

    detector: str
    href: str
    note: str
    suite: str
    protocol: str
    measure: str
    threat: str
    radius: str
    mean: str
    value: float
    rank: float
    n_sets: int
    n_missing: int


def build_site(directories: Sequence[Path], out: Path) -> tuple[Path, ...]:
    """Write the site of the stores in ``directories`` to ``out`` and return its pages, the index first.

    Score histograms are drawn where the scores are on this machine. Raises ValueError where a store is empty.
    """
    stores = [_store(Path(directory)) for directory in directories]
    if not stores:
        raise ValueError("`directories` of build_site must name at least one store; got none.")
    sections = [section.results for store in stores for section in store.leaderboard.sections]
    pages = {HOME: _index(stores, sections)}
    for store in stores:
        pages[store.page] = render_leaderboard(store.leaderboard, home=HOME)
    for name in sorted({block.dataset for results in sections for block in results.blocks}):
        pages[dataset_file(name)] = dataset_page(name, stores)
    for name in sorted({method.detector for results in sections for method in results.methods}):
        pages[detector_file(name)] = detector_page(name, sections)
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    for name, text in pages.items():
        (out / name).write_text(text, encoding="utf-8")
    return tuple(out / name for name in pages)


def _store(directory: Path) -> Store:
    return Store(directory, read_leaderboard(directory), f"leaderboard-{slug(directory.resolve().name)}.html")


def _index(stores: Sequence[Store], sections: Sequence[Results]) -> str:
    entries = [entry for results in sections for entry in _entries(results)]
    filters = {
        name: list(dict.fromkeys(str(getattr(entry, name)) for entry in entries))
        for name in ("suite", "protocol", "threat", "radius")
    }
    figures = [
        (results, [p for p in pictures(results) if p.name.startswith(("certified", "critical"))])
        for results in sections
    ]
    datasets = sorted({block.dataset for results in sections for block in results.blocks})
    detectors = sorted({m.detector for results in sections for m in results.methods}, key=str.lower)
    return render_page(
        "index.html.j2",
        title="Anomaly detectors: clean, attacked, certified",
        entries=entries,
        filters=filters,
        figures=figures,
        stores=[(store.page, store.leaderboard.title, _counts(store)) for store in stores],
        datasets=[(name, dataset_file(name)) for name in datasets],
        detectors=[(name, detector_file(name)) for name in detectors],
    )


def _counts(store: Store) -> str:
    runs = [run for section in store.leaderboard.sections for run in section.results.runs]
    failed = sum(run.status != "ok" for run in runs)
    return f"{len(runs)} runs, {failed} without a result"


def _entries(results: Results) -> Iterator[Entry]:
    yield from _entries_of(results, Key("auroc"), "AUROC", "", "clean")
    for key in results.keys("certified_auroc"):
        if key.n_test is None:
            radius = radius_text(key.radius or 0.0, is_pixels(results))
            yield from _entries_of(results, key, "certified AUROC", THREATS[key.threat], radius)


def _entries_of(results: Results, key: Key, measure: str, threat: str, radius: str) -> Iterator[Entry]:
    grid = results.grid(key).filled()
    ranks = grid.average_ranks()
    for j, method in enumerate(grid.methods):
        mean, std = mean_over(results, key, grid.blocks, method)
        n_sets = sum(bool(results.values(key, block, method)) for block in grid.blocks)
        yield Entry(
            detector=method.label,
            href=detector_file(method.detector),
            note=method_note(results, method),
            suite=results.suite,
            protocol=results.protocol,
            measure=measure,
            threat=threat,
            radius=radius,
            mean=percent(mean, std),
            value=mean,
            rank=float(ranks[j]),
            n_sets=n_sets,
            n_missing=len(grid.blocks) - n_sets,
        )
