"""How names, radii and missing cells read, for every table."""

from __future__ import annotations

from ocsdf_bench.dataset import DATASETS, Dataset
from ocsdf_bench.detector import DETECTORS, DetectorInfo
from ocsdf_bench.grid import Block, Key, Method, Results
from ocsdf_bench.leaderboard.structure import Cell, Column
from ocsdf_bench.registry import UnknownNameError

THREATS = {
    "both": "anomalies and normals move",
    "anomalies": "anomalies move",
    "normals": "normals move",
    "": "",
}


def detector_info(name: str) -> DetectorInfo | None:
    """Card of a detector, None for one that is not installed here (a third party's results)."""
    try:
        return DETECTORS[name]
    except UnknownNameError:
        return None


def dataset_card(name: str) -> Dataset | None:
    """Card of a data set, None for one that is not installed here."""
    try:
        return DATASETS[name]
    except UnknownNameError:
        return None


def is_pixels(results: Results) -> bool:
    """Whether radii are in units of the [0, 1] pixel range."""
    cards = [dataset_card(block.dataset) for block in results.blocks]
    return any(card is not None and card.kind == "image" for card in cards)


def radius_unit(results: Results) -> str:
    if is_pixels(results):
        return "l2 norm in units of the [0, 1] pixel range"
    if results.protocol.startswith("adbench"):
        return "l2 norm in min-max units (1 = a feature's range on the training rows)"
    return "l2 norm in standardised units (1 = a feature's standard deviation on the training rows)"


def radius_text(radius: float, pixels: bool) -> str:
    """A radius as it was meant: k/255 for images.

    >>> radius_text(0.1412, pixels=True), radius_text(0.25, pixels=False)
    ('36/255', '0.25')
    """
    k = 255 * radius
    # Suites write k/255 with four digits, which moves k by at most 0.013.
    return f"{round(k)}/255" if pixels and abs(k - round(k)) < 0.02 else f"{radius:g}"


def method_column(results: Results, method: Method) -> Column:
    return Column(method.label, method_note(results, method))


def method_note(results: Results, method: Method) -> str:
    runs = [run for (_, m), runs in results.cells.items() if m == method for run in runs]
    reporters = sorted({run.reported_by for run in runs if run.reported_by})
    if reporters:
        return f"reported by {', '.join(reporters)}, recomputed"
    if method.role == "chosen":
        parameters = sorted({k for r in runs for k, v in r.spec.params.items() if isinstance(v, list)})
        return f"{', '.join(parameters) or 'parameters'} chosen with labels"
    info = detector_info(method.detector)
    notes = ["variant"] if method.role == "variant" else []
    return ", ".join(notes + (["transductive"] if info is not None and info.transductive else []))


def missing_cell(results: Results, block: Block, method: Method) -> Cell:
    """Why there is no number: the status of the cell's runs, or a dash where nothing was to be run."""
    statuses = [run.status for run in results.cells.get((block, method), ()) if run.status != "ok"]
    return Cell(statuses[0] if statuses else "–", None, "missing")


def seeds_text(results: Results, key: Key, block: Block, method: Method) -> str:
    """ " (2/3)" where some seeds of a cell have no result, else nothing."""
    n_runs = len(results.cells.get((block, method), ()))
    n_values = len(results.values(key, block, method))
    return f" ({n_values}/{n_runs})" if n_values < n_runs else ""
