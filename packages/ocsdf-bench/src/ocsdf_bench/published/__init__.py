"""Figures that others printed: the OCSDF paper's tables and PyOD's documentation, as facts with a source."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

PAPER = "Béthune, Novello et al., ICML 2023 (arXiv:2303.01978)"
PYOD = "PyOD documentation, benchmark of 17 sets (60/40 split, mean of 10 trials)"

BEST_OF_TABLE = "best of the table"
COLUMNS = (
    "source", "protocol", "dataset", "normal_class", "detector", "metric", "radius_over_255", "value", "std",
    "note",
)  # fmt: skip

NOTES = {
    "unsupervised": (
        "The published OCSDF column is the best of four margins, chosen with labels. The paper took its "
        "baselines from ADBench, which scores a 30 % split where the paper scores the training rows, and "
        "whose wbc is a 9-feature set while the paper's OCSDF row is the 30-feature one."
    ),
    "one-class": "The published OCSDF column is the best of four margins, chosen with labels.",
    "one-versus-rest": (
        "The paper scores the official test sets; radii are l2, k/255 of the [0, 1] pixel range; both normals"
        " and anomalies move."
    ),
}


@dataclass(frozen=True)
class Published:
    """One printed figure. ``mean`` and ``std`` are fractions (but ranks and seconds); ``radius`` is in
    [0, 1]-pixel units; ``normal_class`` "mean" is the average over the classes."""

    source: str
    protocol: str
    dataset: str
    normal_class: str
    detector: str
    metric: str
    radius: float | None
    mean: float
    std: float | None
    note: str


@cache
def published(protocol: str, metric: str = "auroc") -> tuple[Published, ...]:
    """Every printed figure of one protocol ("unsupervised", "one-class", "one-versus-rest", "pyod-docs").

    Examples
    --------
    >>> [p.mean for p in published("one-class") if p.dataset == "thyroid"]
    [0.983]
    """
    return tuple(p for p in _all() if p.protocol == protocol and p.metric == metric)


@cache
def _all() -> tuple[Published, ...]:
    found: list[Published] = []
    for name, source in (("ocsdf_paper.csv", PAPER), ("pyod_docs.csv", PYOD)):
        lines = files(__package__).joinpath(name).read_text(encoding="utf-8").splitlines()
        found += [_parse(row, source) for row in csv.DictReader(lines)]
    return tuple(found)


def read_published(path: Path) -> tuple[Published, ...]:
    """Figures beside a store, with their sources; none where there is no such file.

    Raises
    ------
    ValueError
        Where the file is not one that `write_published` wrote.
    """
    if not path.is_file():
        return ()
    try:
        rows = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
        return tuple(_parse(row, row["source"]) for row in rows)
    except (KeyError, ValueError, TypeError) as error:
        raise ValueError(
            f"published.csv must have the columns {', '.join(COLUMNS)} and numbers; got {error!r}."
        ) from error


def write_published(path: Path, figures: Iterable[Published]) -> None:
    """Write ``figures`` as `read_published` reads them, percent with four decimals."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for p in figures:
            scale = _scale(p.metric)
            radius = "" if p.radius is None else f"{255 * p.radius:g}"
            std = "" if p.std is None else round(scale * p.std, 4)
            names = (p.source, p.protocol, p.dataset, p.normal_class, p.detector, p.metric, radius)
            writer.writerow([*names, round(scale * p.mean, 4), std, p.note])


def _scale(metric: str) -> float:
    """Fractions are printed in percent; ranks and seconds are not."""
    return 1.0 if metric in ("rank", "fit_seconds", "score_seconds") else 100.0


def _parse(row: dict[str, str], source: str) -> Published:
    # Percent with at most four decimals: six digits of the fraction are exact.
    scale = _scale(row["metric"])
    return Published(
        source=source,
        protocol=row["protocol"],
        dataset=row["dataset"],
        normal_class=row["normal_class"],
        detector=row["detector"],
        metric=row["metric"],
        radius=float(row["radius_over_255"]) / 255 if row["radius_over_255"] else None,
        mean=round(float(row["value"]) / scale, 6),
        std=round(float(row["std"]) / scale, 6) if row["std"] else None,
        note=row["note"],
    )
