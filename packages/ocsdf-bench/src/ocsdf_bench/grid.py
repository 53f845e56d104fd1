"""One metric as a grid: data sets down, detectors across, mean and spread over seeds in each cell.

Tables, figures, the ranking and the site all read their numbers from a `Grid`, so they cannot disagree.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ocsdf_bench.figure import shorten
from ocsdf_bench.protocol import PROTOCOLS
from ocsdf_bench.published import Published
from ocsdf_bench.ranking import average_ranks
from ocsdf_bench.store import Run
from ocsdf_bench.suite import canonical

Seeds = dict[int, float]
LABEL = 48  # characters of a column's name


@dataclass(frozen=True)
class Key:
    """Which number of a run: metric, radius, threat; ``n_test`` where it is of a sample of the test rows."""

    metric: str
    radius: float | None = None
    threat: str = ""
    n_test: int | None = None

    @property
    def lower_is_better(self) -> bool:
        return "fpr" in self.metric


@dataclass(frozen=True)
class Block:
    """A row: a data set, or one normal class of it."""

    dataset: str
    normal_class: str = ""

    @property
    def label(self) -> str:
        return f"{self.dataset} / {self.normal_class}" if self.normal_class else self.dataset


@dataclass(frozen=True)
class Method:
    """A column: a detector with its parameters (canonical JSON).

    role : "main" (one per detector; these are ranked against each other), "variant" (other parameters of a
    detector) or "chosen" (something was chosen with labels). base : the detector a column stands for.
    label : its name in tables and figures; long parameters are cut where what is left is no other column's
    name. The table of detectors has them whole.
    """

    detector: str
    params: str
    role: str
    base: str
    label: str


def _name(detector: str, params: str) -> str:
    inside = params[1:-1].replace('"', "").replace(":", "=").replace(",", ", ")
    return f"{detector} ({inside})" if inside else detector


@dataclass(frozen=True)
class Grid:
    """``mean`` and ``std`` (n_blocks, n_methods), fractions; NaN = no result (std: fewer than 2 seeds).

    ``n_seeds`` counts the seeds behind each mean.
    """

    key: Key
    blocks: tuple[Block, ...]
    methods: tuple[Method, ...]
    mean: np.ndarray
    std: np.ndarray
    n_seeds: np.ndarray

    @property
    def score(self) -> np.ndarray:
        """The mean with the sign that makes higher better."""
        return -self.mean if self.key.lower_is_better else self.mean

    @property
    def ranked(self) -> tuple[int, ...]:
        """Columns ranked against each other: the main ones, or every column where no two bases compete."""
        main = tuple(i for i, m in enumerate(self.methods) if m.role == "main")
        return main if len(main) > 1 else tuple(range(len(self.methods)))

    def column_means(self) -> np.ndarray:
        """Mean of each column over the blocks it has, (n_methods,)."""
        return _nanmean(self.mean)

    def average_ranks(self) -> np.ndarray:
        """Average rank (1 = best) of each column. A column that is not ranked gets the rank it would have
        if it stood in the place of its base, so variants of one detector do not push the others down."""
        found = np.full(len(self.methods), np.nan)
        ranked = list(self.ranked)
        if ranked:
            found[ranked] = average_ranks(self.score[:, ranked])
        for i, method in enumerate(self.methods):
            if i not in ranked:
                others = [j for j in ranked if self.methods[j].base != method.base]
                found[i] = average_ranks(self.score[:, [*others, i]])[-1]
        return found

    def only(self, methods: Iterable[Method]) -> Grid:
        """The grid with these columns, in their order."""
        index = [self.methods.index(m) for m in methods]
        return Grid(
            self.key,
            self.blocks,
            tuple(self.methods[i] for i in index),
            *(values[:, index] for values in (self.mean, self.std, self.n_seeds)),
        )

    def filled(self) -> Grid:
        """The grid without rows and columns that have no value at all."""
        rows = np.flatnonzero(~np.isnan(self.mean).all(axis=1))
        columns = np.flatnonzero(~np.isnan(self.mean).all(axis=0))
        cut = np.ix_(rows, columns)
        return Grid(
            self.key,
            tuple(self.blocks[i] for i in rows),
            tuple(self.methods[i] for i in columns),
            *(values[cut] for values in (self.mean, self.std, self.n_seeds)),
        )


def _nanmean(values: np.ndarray) -> np.ndarray:
    present = ~np.isnan(values)
    count = present.sum(axis=0)
    total = np.where(present, values, 0.0).sum(axis=0)
    return np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)


def natural(text: str) -> list[tuple[int, float, str]]:
    """Sort key that puts "class 2" before "class 10", "margin=0.05" before "margin=0.2", and ignores case."""
    parts = re.split(r"(\d+(?:\.\d+)?)", text.lower())  # a number at every odd place
    return [(1, float(part), "") if i % 2 else (0, 0.0, part) for i, part in enumerate(parts)]


@dataclass(frozen=True)
class Results:
    """The runs of one suite under one protocol; of two runs of one key the later one counts. ``printed`` :
    figures that others published and somebody put beside the store."""

    suite: str
    protocol: str
    runs: tuple[Run, ...]
    printed: tuple[Published, ...] = ()

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        found = {self.block(run) for run in self.runs}
        return tuple(sorted(found, key=lambda b: (natural(b.dataset), natural(b.normal_class))))

    @cached_property
    def methods(self) -> tuple[Method, ...]:
        """OCSDF first, the other main columns by average rank of AUROC, then variants, then chosen ones."""
        methods = self._unordered
        grid = self._grid(Key("auroc"), methods)
        rank = dict(zip(methods, grid.average_ranks(), strict=True))
        place = {"main": 0, "variant": 1, "chosen": 2}

        def order(m: Method) -> tuple:
            r = rank[m] if rank[m] == rank[m] else np.inf
            return (place[m.role], m.detector != "OCSDF", r if m.role == "main" else 0.0, natural(m.label))

        return tuple(sorted(methods, key=order))

    @cached_property
    def _unordered(self) -> tuple[Method, ...]:
        seen: dict[str, set[str]] = defaultdict(set)
        chosen: dict[tuple[str, str], str] = {}
        for run in self.runs:
            params = canonical(run.spec.params)
            if is_chosen(run):
                chosen[run.spec.detector, params] = run.spec.built
            else:
                seen[run.spec.detector].add(params)
        found = [(d, p, "chosen", base) for (d, p), base in chosen.items()]
        for detector, variants in seen.items():
            main = min(variants, key=lambda p: (p != "{}", natural(p)))
            found += [(detector, p, "main" if p == main else "variant", detector) for p in variants]
        whole = [detector if role == "chosen" else _name(detector, p) for detector, p, role, _ in found]
        short = [shorten(w, LABEL) if w != d else d for w, (d, *_) in zip(whole, found, strict=True)]
        labels = [s if short.count(s) == 1 else name for s, name in zip(short, whole, strict=True)]
        methods = [Method(*parts, label) for parts, label in zip(found, labels, strict=True)]
        return tuple(sorted(methods, key=lambda m: natural(m.label)))

    @cached_property
    def _method_of(self) -> dict[tuple[str, str], Method]:
        return {(m.detector, m.params): m for m in self._unordered}

    def block(self, run: Run) -> Block:
        return Block(run.spec.dataset, run.spec.normal_class)

    def method(self, run: Run) -> Method:
        return self._method_of[run.spec.detector, canonical(run.spec.params)]

    @cached_property
    def cells(self) -> dict[tuple[Block, Method], tuple[Run, ...]]:
        """Every run of a cell, whatever its status, by seed."""
        found: dict[tuple[Block, Method], list[Run]] = defaultdict(list)
        for run in self.runs:
            found[self.block(run), self.method(run)].append(run)
        return {cell: tuple(sorted(runs, key=lambda r: r.spec.seed)) for cell, runs in found.items()}

    @cached_property
    def _values(self) -> dict[Key, dict[tuple[Block, Method], Seeds]]:
        found: dict[Key, dict[tuple[Block, Method], Seeds]] = defaultdict(lambda: defaultdict(dict))
        for cell, runs in self.cells.items():
            for run in runs:
                for m in run.metrics if run.status == "ok" else ():
                    if m.value is not None and m.value == m.value:
                        found[Key(m.metric, m.radius, m.threat, m.n_test)][cell][run.spec.seed] = m.value
        return found

    def keys(self, metric: str) -> tuple[Key, ...]:
        """Every key of one metric that some run has, by threat and radius."""
        found = [key for key in self._values if key.metric == metric]
        return tuple(sorted(found, key=lambda k: (k.threat, k.n_test or 0, k.radius or 0.0)))

    def metrics(self) -> tuple[str, ...]:
        return tuple(sorted({key.metric for key in self._values}))

    def values(self, key: Key, block: Block, method: Method) -> Seeds:
        """Value by seed of one cell; empty where there is none."""
        return dict(self._values[key].get((block, method), {})) if key in self._values else {}

    def grid(self, key: Key) -> Grid:
        return self._grid(key, self.methods)

    def _grid(self, key: Key, methods: Sequence[Method]) -> Grid:
        shape = (len(self.blocks), len(methods))
        mean, std, n_seeds = np.full(shape, np.nan), np.full(shape, np.nan), np.zeros(shape, dtype=int)
        for i, block in enumerate(self.blocks):
            for j, method in enumerate(methods):
                seeds = list(self.values(key, block, method).values())
                n_seeds[i, j] = len(seeds)
                mean[i, j] = np.mean(seeds) if seeds else np.nan
                std[i, j] = np.std(seeds, ddof=1) if len(seeds) > 1 else np.nan
        return Grid(key, self.blocks, tuple(methods), mean, std, n_seeds)


def is_chosen(run: Run) -> bool:
    """Whether something of the run was chosen with labels: what was fitted is not what the suite wrote."""
    spec = run.spec
    return spec.detector != spec.built or canonical(spec.params) != canonical(spec.build_params)


def split_results(runs: Iterable[Run], printed: tuple[Published, ...] = ()) -> tuple[Results, ...]:
    """Runs by suite and protocol, protocols in their usual order; of two runs of one key the later counts."""
    latest = {run.spec.key: run for run in runs}
    groups: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for key in sorted(latest, key=lambda k: [natural(str(part)) for part in k]):
        groups[latest[key].spec.suite, latest[key].spec.protocol].append(latest[key])
    known = list(PROTOCOLS)
    order = sorted(
        groups, key=lambda g: (natural(g[0]), known.index(g[1]) if g[1] in known else len(known), g[1])
    )
    return tuple(
        Results(suite, protocol, tuple(groups[suite, protocol]), _under(protocol, printed))
        for suite, protocol in order
    )


def _under(protocol: str, printed: tuple[Published, ...]) -> tuple[Published, ...]:
    return tuple(figure for figure in printed if figure.protocol == protocol)
