"""Pages of the site about one data set or one detector."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ocsdf_bench.grid import Block, Key, Method, Results
from ocsdf_bench.leaderboard import Cell, Column, Leaderboard, Row, Table
from ocsdf_bench.leaderboard.flags import red_flags
from ocsdf_bench.leaderboard.quality import mean_over
from ocsdf_bench.leaderboard.reading import (
    THREATS,
    dataset_card,
    detector_info,
    is_pixels,
    method_note,
    missing_cell,
    radius_text,
    radius_unit,
)
from ocsdf_bench.leaderboard.structure import percent, significant, text_cell
from ocsdf_bench.page import render_page
from ocsdf_bench.plot import Picture, dataset_pictures

HOME = "index.html"


@dataclass(frozen=True)
class Store:
    """A store, its leaderboard and the page of the site that shows it whole."""

    directory: Path
    leaderboard: Leaderboard
    page: str


def slug(name: str) -> str:
    """A file name's part that no other name has and that holds nothing to act on.

    Examples
    --------
    >>> slug("KNN"), slug("../x").startswith("x-")
    ('KNN', True)
    """
    kept = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:40]
    return kept if kept == name else f"{kept}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def dataset_file(name: str) -> str:
    return f"dataset-{slug(name)}.html"


def detector_file(name: str) -> str:
    return f"detector-{slug(name)}.html"


def dataset_page(name: str, stores: Sequence[Store]) -> str:
    parts: list[tuple[str, list[Table], list[Picture]]] = []
    for store in stores:
        for section in store.leaderboard.sections:
            blocks = [block for block in section.results.blocks if block.dataset == name]
            if blocks:
                tables = [_block_table(section.results, block) for block in blocks]
                drawn = dataset_pictures(section.results, name, store.directory)
                parts.append((f"{section.results.suite}, {section.results.protocol}", tables, list(drawn)))
    return render_page("detail.html.j2", title=name, facts=_dataset_facts(name), parts=parts, home=HOME)


def _dataset_facts(name: str) -> list[tuple[str, str]]:
    card = dataset_card(name)
    if card is None:
        return [("data card", "not installed where this site was built")]
    facts: dict[str, Any] = {
        "kind": card.kind,
        "normals": f"{card.n_normal:,}",
        "anomalies": f"{card.n_anomaly:,}",
        "features": card.n_features,
        "classes": ", ".join(card.classes),
        "family": card.family,
        "source": card.source,
        "licence": card.licence,
        "note": card.note,
    }
    return [(title, str(value)) for title, value in facts.items() if value not in ("", "0")]


def _measures(
    results: Results, blocks: Sequence[Block], methods: Sequence[Method]
) -> list[tuple[Column, Key]]:
    """Columns of a table: clean metrics, then certified AUROC by threat and radius, where one row has it."""
    found = [(Column("AUROC"), Key("auroc")), (Column("average precision"), Key("average_precision"))]
    found.append((Column("FPR at 95 % TPR"), Key("fpr_at_95_tpr")))
    for key in results.keys("certified_auroc"):
        values = (mean_over(results, key, (block,), method)[0] for block in blocks for method in methods)
        if key.n_test is None and any(value == value for value in values):
            radius = radius_text(key.radius or 0.0, is_pixels(results))
            found.append((Column(f"certified AUROC at {radius}", THREATS[key.threat]), key))
    return found


def _block_table(results: Results, block: Block) -> Table:
    measures = _measures(results, (block,), results.methods)
    rows = []
    for method in results.methods:
        if (block, method) in results.cells:
            head = Cell(method.label, href=detector_file(method.detector))
            note = text_cell(method_note(results, method))
            rows.append(Row((head, note, *_detail_cells(results, block, method, measures))))
    columns = (
        Column("detector", numeric=False),
        Column("note", numeric=False),
        *(column for column, _ in measures),
        Column("fit, seconds"),
        Column("flags, reasons", numeric=False),
    )
    caption = f"Percent, mean ± standard deviation over seeds. Radius: {radius_unit(results)}."
    return Table(f"block-{slug(block.label)}", block.label, caption, columns, tuple(rows))


def _detail_cells(
    results: Results, block: Block, method: Method, measures: list[tuple[Column, Key]]
) -> Iterator[Cell]:
    for _, key in measures:
        mean, std = mean_over(results, key, (block,), method)
        yield missing_cell(results, block, method) if mean != mean else Cell(percent(mean, std), mean)
    runs = results.cells[block, method]
    seconds = [run.fit_seconds for run in runs if run.fit_seconds is not None]
    longest = max(seconds, default=None)
    yield Cell(significant(longest), longest)
    flags = list(red_flags(results, block, method, runs))
    reasons = [run.reason for run in runs if run.status != "ok"]
    yield text_cell("; ".join(dict.fromkeys([*flags, *reasons])), "warn" if flags or reasons else "")


def detector_page(name: str, sections: Sequence[Results]) -> str:
    parts: list[tuple[str, list[Table], list[Picture]]] = []
    for results in sections:
        methods = [method for method in results.methods if method.detector == name]
        if methods:
            tables = [_method_table(results, method) for method in methods]
            parts.append((f"{results.suite}, {results.protocol}", tables, []))
    return render_page("detail.html.j2", title=name, facts=_detector_facts(name), parts=parts, home=HOME)


def _detector_facts(name: str) -> list[tuple[str, str]]:
    info = detector_info(name)
    if info is None:
        return [("detector", "not installed where this site was built, or a choice made with labels")]
    facts = {
        "source": info.source,
        "random": "no" if info.deterministic else "yes",
        "transductive": "yes: a row's score depends on the rows scored with it"
        if info.transductive
        else "no",
        "row cap": f"{info.row_cap:,}" if info.row_cap else "",
        "extra": info.extra,
    }
    return [(title, value) for title, value in facts.items() if value]


def _method_table(results: Results, method: Method) -> Table:
    measures = _measures(results, results.blocks, (method,))
    rows = []
    for block in results.blocks:
        if (block, method) in results.cells:
            head = Cell(block.label, href=dataset_file(block.dataset))
            rows.append(Row((head, *_detail_cells(results, block, method, measures))))
    columns = (
        Column("data set", numeric=False),
        *(column for column, _ in measures),
        Column("fit, seconds"),
        Column("flags, reasons", numeric=False),
    )
    note = method_note(results, method)
    caption = (
        f"Parameters as the suite wrote them: {method.params}.{f' {note.capitalize()}.' if note else ''}"
    )
    return Table(f"method-{slug(method.label)}", method.label, caption, columns, tuple(rows))
