"""How far a mean AUROC over classes may be off because its test images are a sample."""

from __future__ import annotations

import numpy as np

from ocsdf_bench.grid import Block, Key, Method, Results
from ocsdf_bench.leaderboard.quality import mean_over
from ocsdf_bench.leaderboard.reading import THREATS, is_pixels, radius_text
from ocsdf_bench.leaderboard.structure import Cell, Column, Row, Table, percent, text_cell


def standard_error(auroc: float, n_normal: int, n_anomaly: int) -> float:
    """Of an AUROC over the drawing of its test rows; rather too large than too small.

    Source: Hanley and McNeil, "The meaning and use of the area under a receiver operating characteristic
    (ROC) curve", Radiology 143 (1982). Its exponential model suits one order of the classes or the other;
    the larger of both errors is taken.

    Examples
    --------
    >>> round(standard_error(0.8, 50, 50), 4)
    0.0445
    """
    q = (auroc / (2 - auroc) - auroc**2, 2 * auroc**2 / (1 + auroc) - auroc**2)
    excess = max((n_anomaly - 1) * a + (n_normal - 1) * b for a, b in (q, q[::-1]))
    return float(np.sqrt((auroc * (1 - auroc) + excess) / (n_normal * n_anomaly)))


def standard_error_table(results: Results) -> Table | None:
    """Mean over classes ± its standard error, clean and certified, per data set of images and detector."""
    keys = [k for k in results.keys("certified_auroc") if k.n_test is None and k.threat == "both"]
    rows = [
        row
        for dataset in dict.fromkeys(block.dataset for block in results.blocks if block.normal_class)
        for method in results.methods
        if (row := _row(results, dataset, method, [Key("auroc"), *keys])) is not None
    ]
    if not rows:
        return None
    pixels = is_pixels(results)
    titles = ["clean", *(f"radius {radius_text(key.radius or 0.0, pixels)}" for key in keys)]
    names = (Column("data set", numeric=False), Column("detector", numeric=False))
    caption = (
        "AUROC in percent, clean and certified, mean over classes ± the standard error that comes from the "
        "number of test images, by the formula of Hanley and McNeil (1982) for each class. The classes share "
        "their images, which the mean's error leaves out; detectors see the same images, so that differences "
        f"between them are surer than their errors. Threat: {THREATS['both']}."
    )
    return Table("standard-error", "Standard errors", caption, (*names, *map(Column, titles)), tuple(rows))


def _row(results: Results, dataset: str, method: Method, keys: list[Key]) -> Row | None:
    blocks = [b for b in results.blocks if b.dataset == dataset and results.values(keys[0], b, method)]
    counts = {block: found for block in blocks if (found := _counts(results, block)) is not None}
    if not blocks or len(counts) < len(blocks):
        return None
    cells = [_cell(results, key, counts, method) for key in keys]
    return Row((text_cell(dataset), text_cell(method.label), *cells))


def _cell(results: Results, key: Key, counts: dict[Block, tuple[int, int]], method: Method) -> Cell:
    mean, _ = mean_over(results, key, tuple(counts), method)
    if mean != mean:
        return Cell("–", None, "missing")
    means = [float(np.mean(list(results.values(key, block, method).values()))) for block in counts]
    errors = [standard_error(m, *c) for m, c in zip(means, counts.values(), strict=True)]
    return Cell(percent(mean, float(np.linalg.norm(errors)) / len(counts)), mean)


def _counts(results: Results, block: Block) -> tuple[int, int] | None:
    """Normals and anomalies among the test rows of a class, which are the same for every detector."""
    for method in results.methods:
        for run in results.cells.get((block, method), ()):
            if run.n_test is not None and run.n_anomaly is not None:
                return run.n_test - run.n_anomaly, run.n_anomaly
    return None
