"""What is registered, as tables to read."""

from __future__ import annotations

from rich.table import Table

from ocsdf_bench.attack import ATTACKS
from ocsdf_bench.card import card as facts
from ocsdf_bench.dataset import DATASETS, DataCorruptError, DataUnavailableError, Source
from ocsdf_bench.detector import DETECTORS
from ocsdf_bench.protocol import PROTOCOLS

KINDS = ("detectors", "datasets", "attacks", "protocols", "tables")


def listing(kind: str) -> Table:
    """Table of all entries of one of KINDS."""
    columns, rows = {
        "detectors": _detectors,
        "datasets": _datasets,
        "attacks": _attacks,
        "protocols": _protocols,
        "tables": _tables,
    }[kind]()
    table = Table(*columns)
    for row in rows:
        table.add_row(*row)
    return table


def data_card(name: str, source: Source) -> Table:
    """Card of one data set; where its files are not at hand, what is known without them, and why."""
    dataset = DATASETS[name]
    try:
        shown = facts(dataset, dataset.load(source))
    except (DataUnavailableError, DataCorruptError) as error:
        shown = facts(dataset) | {"not loaded": str(error)}
    table = Table("fact", "value", show_header=False)
    table.columns[1].overflow = "fold"  # an address or a checksum is of use only in full
    for key, value in shown.items():
        if value not in ("", []):
            table.add_row(key.replace("_", " "), _text(value))
    return table


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {count:,}" for key, count in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int | float) else str(value)


Rows = tuple[tuple[str, ...], list[tuple[str, ...]]]


def _detectors() -> Rows:
    rows: list[tuple[str, ...]] = []
    for info in sorted(DETECTORS, key=lambda entry: entry.name.lower()):
        notes = [f"at most {info.row_cap} rows"] if info.row_cap else []
        notes += ["transductive"] if info.transductive else []
        notes += [f"extra {info.extra}"] if info.extra else []
        rows.append((info.name, "yes" if info.deterministic else "no", ", ".join(notes), info.source))
    return ("detector", "deterministic", "notes", "source"), rows


def _datasets() -> Rows:
    rows: list[tuple[str, ...]] = []
    for card in DATASETS:
        shape = f"{card.n_normal} + {card.n_anomaly}, {card.n_features}"
        rows.append((card.name, card.kind, shape, "yes" if card.needs_download else "no", card.source))
    return ("data set", "kind", "normals + anomalies, features", "download", "source"), rows


def _attacks() -> Rows:
    rows: list[tuple[str, ...]] = [
        (card.name, card.needs or "the score only", card.source) for card in ATTACKS
    ]
    return ("attack", "needs", "source"), rows


def _protocols() -> Rows:
    rows: list[tuple[str, ...]] = []
    for card in PROTOCOLS.values():
        what = (card.rows.__doc__ or "").strip().splitlines()
        rows.append((card.name, card.scaling, "yes" if card.seeded else "no", what[0] if what else ""))
    return ("protocol", "scaling", "rows depend on the seed", "what"), rows


def _tables() -> Rows:
    from ocsdf_bench.table import FORMATS

    return ("table",), [(form.name,) for form in FORMATS]
