"""ADBench's 47 classical sets by number and name (Han et al., NeurIPS 2022), with the counts it prints.

Twenty of them are registered with the ODDS sets already, under the paper's names; ``dataset`` finds ours from
ADBench's. The other 27 are registered here. Nobody published a checksum of those, but they are taken at one
commit of ADBench, whose hash is a checksum of all its files: a file must have the id that git gives it there,
and the printed rows, anomalies and features. Where git can not be asked, it is held to the sha256 it had at
first sight, with a warning.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources

from ocsdf_bench.dataset import DATASETS, Dataset
from ocsdf_bench.datasets.odds import load_table

_NOTE = (
    "no checksum is published: a file must have ADBench's counts, and the id that git gives it at ADBench's "
    "commit; where git can not be asked, the sha256 it had at first sight, which is kept in the cache"
)


@dataclass(frozen=True)
class Classical:
    """One classical set: ADBench's number and name (``1_ALOI``), and ours (``aloi``)."""

    number: int
    adbench: str
    name: str

    @property
    def stem(self) -> str:
        """ADBench's name of the file and of the rows of its results."""
        return f"{self.number}_{self.adbench}"


@cache
def classical() -> tuple[Classical, ...]:
    """The 47 sets in ADBench's order.

    >>> classical()[0].stem, len(classical())
    ('1_ALOI', 47)
    """
    return tuple(Classical(int(row["number"]), row["adbench"], row["name"]) for row in _rows())


@cache
def _rows() -> tuple[dict[str, str], ...]:
    text = (resources.files("ocsdf_bench.datasets") / "adbench.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


def _dataset(row: Mapping[str, str]) -> Dataset:
    file = f"{row['number']}_{row['adbench']}.npz"
    return Dataset(
        name=row["name"],
        load=partial(load_table, {**row, "file": file, "digest": ""}),
        kind="table",
        n_normal=int(row["n_normal"]),
        n_anomaly=int(row["n_anomaly"]),
        n_features=int(row["n_features"]),
        source=f"ADBench (Han et al., NeurIPS 2022), {file}; {row['category'].lower()}",
        licence="not stated for the set; ADBench itself is BSD-2-Clause",
        needs_download=True,
        family=row["family"],
        note=_NOTE,
    )


for _row in _rows():
    if _row["name"] not in DATASETS:
        DATASETS.add(_dataset(_row))
