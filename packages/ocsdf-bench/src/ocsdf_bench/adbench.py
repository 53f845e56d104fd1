"""ADBench's own result files, out of a store and into a leaderboard.

ADBench writes a table a quantity, ``AUCROC_SUFFIX.csv`` and so on: a row a (data set, ratio of labelled
anomalies, seed), a column a detector, an empty cell where a detector failed. Its detectors without labels
have the ratio 0.0, which is the only one that is comparable with detectors here.
"""

from __future__ import annotations

import csv
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

from ocsdf_bench.datasets.adbench import classical
from ocsdf_bench.detail import slug
from ocsdf_bench.grid import Results, split_results
from ocsdf_bench.published import Published
from ocsdf_bench.store import Run

METRICS = {
    "AUCROC": "auroc",
    "AUCPR": "average_precision",
    "Time(fit)": "fit_seconds",
    "Time(inference)": "score_seconds",
}
ORDER = (
    "IForest", "OCSVM", "CBLOF", "COF", "COPOD", "ECOD", "HBOS", "KNN", "LODA", "LOF", "PCA", "SOD",
    "DeepSVDD", "DAGMM",
)  # fmt: skip
_NUMBER = r"(?:np\.\w+\()?([\d.eE+-]+)\)?"  # NumPy 2 prints np.int64(1)
_INDEX = re.compile(rf"\((['\"])(.+)\1, {_NUMBER}, {_NUMBER}\)")


@dataclass(frozen=True)
class Entry:
    """One cell of one of ADBench's files, under ADBench's name of the data set."""

    dataset: str
    ratio: float
    seed: int
    detector: str
    value: float


def write_results(runs: Iterable[Run], directory: Path) -> tuple[Path, ...]:
    """Four files in ADBench's form for each suite and protocol of ``runs``; what has no result is empty."""
    paths: list[Path] = []
    directory.mkdir(parents=True, exist_ok=True)
    for results in split_results(runs):
        suffix = f"{slug(results.suite)}_{slug(results.protocol)}_type(None)_noise(None)_unsupervise"
        for quantity, metric in METRICS.items():
            paths.append(directory / f"{quantity}_{suffix}.csv")
            _write(paths[-1], list(_entries(results, metric)))
    return tuple(paths)


def _entries(results: Results, metric: str) -> Iterator[Entry]:
    stems = {known.name: known.stem for known in classical()}
    for run in results.runs:
        if run.status == "ok":
            value = getattr(run, metric, None)
            value = next((m.value for m in run.metrics if m.metric == metric and m.n_test is None), value)
            block, label = results.block(run), results.method(run).label
            name = stems.get(block.dataset, block.label)
            yield Entry(name, 0.0, run.spec.seed, label, math.nan if value is None else float(value))


def _write(path: Path, entries: list[Entry]) -> None:
    detectors = dict.fromkeys(entry.detector for entry in entries)
    columns = [d for d in ORDER if d in detectors] + [d for d in detectors if d not in ORDER]
    rows: dict[tuple[str, float, int], dict[str, float]] = defaultdict(dict)
    for e in sorted(entries, key=lambda e: (*_place(e.dataset), e.seed)):
        rows[e.dataset, e.ratio, e.seed][e.detector] = e.value
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["", *columns])
        for index, row in rows.items():
            writer.writerow([repr(index), *(_text(row.get(column, math.nan)) for column in columns)])


def _place(dataset: str) -> tuple[int, str]:
    """ADBench's numbering first, then names."""
    number = re.match(r"(\d+)_", dataset)
    return (int(number[1]) if number else 10**6, dataset)


def _text(value: float) -> str:
    return "" if math.isnan(value) else repr(value)


def read_results(path: Path) -> tuple[Entry, ...]:
    """The cells of one file that hold a number.

    Raises
    ------
    ValueError
        With the line, where the file is not one of ADBench's.
    """
    try:
        lines = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"'{path.name}' must be a CSV file of ADBench; got {error}.") from error
    if not lines or len(lines[0]) < 2 or lines[0][0]:
        raise ValueError(f"'{path.name}' must start with an empty cell and the names of detectors.")
    found: list[Entry] = []
    for number, (index, *cells) in enumerate(lines[1:], 2):
        parsed = _INDEX.fullmatch(index)
        if parsed is None or len(cells) != len(lines[0]) - 1:
            raise ValueError(
                f"line {number} of '{path.name}' must be ('data set', ratio of labelled anomalies, seed) and "
                f"{len(lines[0]) - 1} cells; got {index[:80]!r} and {len(cells)} cells."
            )
        try:
            ratio, seed = float(parsed[3]), int(parsed[4])
            found += [
                Entry(parsed[2], ratio, seed, detector, float(cell))
                for detector, cell in zip(lines[0][1:], cells, strict=True)
                if cell and math.isfinite(float(cell))
            ]
        except ValueError as error:
            raise ValueError(f"line {number} of '{path.name}' must hold numbers; got {error}.") from error
    return tuple(found)


@dataclass(frozen=True)
class Imported:
    """Published figures, and what was left out: data sets that are not classical ones, ratios above 0."""

    figures: tuple[Published, ...]
    unknown: tuple[str, ...]
    n_labelled: int


def import_results(folder: Path, source: str, protocol: str = "adbench") -> Imported:
    """Means over seeds of every file of ADBench in ``folder``, as columns that are marked published.

    Raises
    ------
    ValueError
        Where there is no such file, or one is not what it should be.
    """
    names = {known.adbench.lower(): known.name for known in classical()}
    figures: list[Published] = []
    unknown, n_labelled = set[str](), 0
    files = [(q, path) for q in METRICS for path in sorted(folder.glob(f"{q}_*.csv"))]
    if not files:
        raise ValueError(
            f"`FOLDER` of adbench import must hold files such as AUCROC_*.csv; got '{folder}' with none."
        )
    for quantity, path in files:
        cells: dict[tuple[str, str], list[float]] = defaultdict(list)
        for entry in read_results(path):
            name = names.get(re.sub(r"^\d+_", "", entry.dataset).lower())
            if entry.ratio > 0:
                n_labelled += 1
            elif name is None:
                unknown.add(entry.dataset)
            else:
                cells[name, entry.detector].append(entry.value)
        figures += [
            _figure(source, protocol, METRICS[quantity], *cell, values) for cell, values in cells.items()
        ]
    return Imported(tuple(figures), tuple(sorted(unknown)), n_labelled)


def _figure(
    source: str, protocol: str, metric: str, dataset: str, detector: str, values: list[float]
) -> Published:
    std = stdev(values) if len(values) > 1 else None
    return Published(source, protocol, dataset, "", detector, metric, None, mean(values), std, "")
