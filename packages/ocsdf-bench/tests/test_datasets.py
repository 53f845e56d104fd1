"""The contract of every data set: its card tells the truth, and a load is the same twice."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from ocsdf_bench.card import card
from ocsdf_bench.dataset import DATASETS, Data, Dataset, DataUnavailableError
from ocsdf_bench.source import MirrorOrDownload

# Other test modules of one process add data sets of their own.
OURS = [d for d in DATASETS if getattr(d.load, "func", d.load).__module__.startswith("ocsdf_bench.")]
EMBEDDED = [dataset for dataset in OURS if not dataset.needs_download]
MIRRORED = [dataset for dataset in OURS if dataset.needs_download]

# The paper's two tables: (normals, anomalies, features).
PAPER = {
    "breastw": (444, 239, 9),
    "cardio": (1655, 176, 21),
    "glass": (205, 9, 9),
    "http": (565287, 2211, 3),
    "ionosphere": (225, 126, 33),
    "lymphography": (142, 6, 18),
    "mammography": (10923, 260, 6),
    "musk": (2965, 97, 166),
    "optdigits": (5066, 150, 64),
    "pima": (500, 268, 8),
    "satimage-2": (5732, 71, 36),
    "shuttle": (45586, 3511, 9),
    "smtp": (95126, 30, 3),
    "speech": (3625, 61, 400),
    "thyroid": (3679, 93, 6),
    "vertebral": (210, 30, 6),
    "vowels": (1406, 50, 12),
    "wbc": (357, 21, 30),
    "wine": (119, 10, 13),
    "arrhythmia": (386, 66, 274),
}

# A change of these is a change of the data: then the set needs a new name.
CHECKSUMS = {
    "sk-wine": "73463e23be23da4169e6e865b31dbf8169f632bf07f2a122154db1cdf9b24ee6",
    "sk-breast-cancer": "aab4aa0a75f76843c24472dfebd99ef9dda43ea0858b97e6a61270437792c1c9",
    "sk-digits": "4a398b34155fa97db4b17ad79526abf1b180b7bc50444d5be6f26044c40d4219",
    "toy-one-blob": "d414d0b69dff59a1652de1d323f464dace939213f79c9e0c141574abc0ef9b57",
    "toy-two-circles": "be8cd45f852edfdfd6afde07ece5427f5d9cc20a72bc5ebcd8c3cdf07c891e4e",
    "toy-two-blobs": "88baffe5b224e7cd4e80dd3b29e87258aed994ada31b159b42c1d277cf7b64fb",
    "toy-blob-and-cloud": "e07325c605515d4e53219afb810057a72c4995874bb04434a6f14174cd88f055",
    "toy-two-moons": "814de6293752b48516f9d1bec5883a874f3837bc41f882783b4ebbfec4c2dea5",
}


def _by_name(dataset: Dataset) -> str:
    return dataset.name


@pytest.fixture
def source(tmp_path: Path) -> MirrorOrDownload:
    """The mirror of OCSDF_DATA if any, no network, and an empty cache."""
    return MirrorOrDownload(offline=True, cache=tmp_path)


def _mirror() -> str:
    folder = os.environ.get("OCSDF_DATA")
    if not folder:
        pytest.skip("needs the mirror of real data; set OCSDF_DATA to its folder")
    return folder


def _check(dataset: Dataset, data: Data) -> None:
    parts = [(data.X, data.y)]
    if data.X_test is not None and data.y_test is not None:
        parts.append((data.X_test, data.y_test))
    for X, y in parts:
        assert np.isfinite(X).all()
        assert X.shape == (len(y), *data.X.shape[1:])
        assert int(np.prod(X.shape[1:])) == dataset.n_features
        assert y.dtype.kind == "i"
        assert set(np.unique(y)) == set(range(len(dataset.classes) or 2))
        if data.domain is not None:
            assert (data.domain[0], data.domain[1]) == (X.min(), X.max())
    counts = Counter(np.concatenate([y for _, y in parts]).tolist())
    if not dataset.classes:
        assert (counts[0], counts[1]) == (dataset.n_normal, dataset.n_anomaly)
    else:
        assert dataset.n_anomaly == 0
        # A mirror may hold a part of the images; then the load says so.
        assert counts.total() == dataset.n_normal or f"{len(data.X):,}" in data.note


@pytest.mark.parametrize("dataset", EMBEDDED, ids=_by_name)
def test_an_embedded_set_is_as_its_card_says(dataset: Dataset, source: MirrorOrDownload) -> None:
    _check(dataset, dataset.load(source))


@pytest.mark.parametrize("dataset", EMBEDDED, ids=_by_name)
def test_an_embedded_set_has_the_checksum_of_every_machine(
    dataset: Dataset, source: MirrorOrDownload
) -> None:
    assert dataset.load(source).checksum == CHECKSUMS[dataset.name]
    assert dataset.load(source).checksum == CHECKSUMS[dataset.name]


@pytest.mark.data
@pytest.mark.parametrize("dataset", MIRRORED, ids=_by_name)
def test_a_set_of_the_mirror_is_as_its_card_says_and_loads_twice_the_same(
    dataset: Dataset, source: MirrorOrDownload
) -> None:
    _mirror()
    try:
        first, second = dataset.load(source), dataset.load(source)
    except DataUnavailableError as error:
        pytest.skip(str(error))
    _check(dataset, first)
    assert first.checksum == second.checksum
    assert np.array_equal(first.X, second.X)


@pytest.mark.parametrize("dataset", MIRRORED, ids=_by_name)
def test_a_set_that_is_not_there_says_where_to_get_it_and_where_to_put_it(
    dataset: Dataset, tmp_path: Path
) -> None:
    nowhere = MirrorOrDownload(data_dir=tmp_path / "mirror", offline=True, cache=tmp_path / "cache")
    with pytest.raises(
        DataUnavailableError, match=r"^data file '.*'.*; get https://.* put it in .*--data DIR"
    ):
        dataset.load(nowhere)


@pytest.mark.parametrize("name", PAPER)
def test_the_papers_sets_have_the_papers_counts(name: str) -> None:
    dataset = DATASETS[name]
    assert (dataset.n_normal, dataset.n_anomaly, dataset.n_features) == PAPER[name]


@pytest.mark.parametrize("dataset", OURS, ids=_by_name)
def test_a_card_without_a_load_is_complete(dataset: Dataset) -> None:
    known = card(dataset)
    assert known["source"]
    assert known["licence"]
    assert dataset.name == dataset.name.lower()
    json.dumps(known)


def test_a_card_counts_duplicates_constant_columns_and_labels() -> None:
    X = np.array([[1, 2], [1, 2], [1, 3], [1, 2]], np.uint8)
    data = Data.of(X, np.array([0, 0, 0, 1]))
    shown = card(DATASETS["sk-wine"], data)
    expected = {
        "duplicates": 2,
        "constant_columns": 1,
        "labels": {0: 3, 1: 1},
        "dtype": "uint8",
        "shape": [4, 2],
    }
    assert expected.items() <= shown.items()
    json.dumps(shown)


@pytest.mark.data
def test_cards_of_the_mirror_know_the_traps_of_the_files(source: MirrorOrDownload) -> None:
    _mirror()

    def facts(name: str) -> tuple[int, int, str]:
        shown = card(DATASETS[name], DATASETS[name].load(source))
        return shown["duplicates"], shown["constant_columns"], shown["dtype"]

    assert facts("breastw") == (234, 0, "uint8")
    assert facts("optdigits") == (18, 2, "float64")
    assert facts("arrhythmia") == (0, 17, "float64")
    assert facts("shuttle") == (0, 0, "int16")


def test_sets_of_one_origin_share_a_family() -> None:
    families = {dataset.name: dataset.family for dataset in OURS}
    assert (
        len({families[name] for name in ("breastw", "wbc", "wdbc", "wbc-adbench", "sk-breast-cancer")}) == 1
    )
    assert families["http"] == families["smtp"] != ""
    assert families["glass"] == families["glass-adbench"] != families["ionosphere"]


def test_downsampling_keeps_every_normal_and_the_order_of_the_rows(source: MirrorOrDownload) -> None:
    from sklearn.datasets import load_wine

    X, y = load_wine(return_X_y=True)
    data = DATASETS["sk-wine"].load(source)
    assert np.array_equal(data.X[data.y == 0], X[y != 0])
    rows = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in data.X[data.y == 1]]
    assert rows == sorted(rows)
    assert set(y[rows]) == {0}


def test_toy_anomalies_surround_the_normals(source: MirrorOrDownload) -> None:
    data = DATASETS["toy-two-moons"].load(source)
    normal, anomaly = data.X[data.y == 0], data.X[data.y == 1]
    assert (np.abs(anomaly).max(axis=0) > np.abs(normal).max(axis=0)).all()


def _shown(*arguments: str) -> Any:
    from ocsdf_bench.cli import app

    return CliRunner().invoke(app, ["list", *arguments], env={"COLUMNS": "300", "OCSDF_DATA": ""})


def test_the_command_line_shows_a_card_in_full() -> None:
    found = _shown("datasets", "--card", "sk-wine")
    assert found.exit_code == 0
    assert CHECKSUMS["sk-wine"] in found.output
    assert "0: 119, 1: 10" in found.output


def test_the_card_of_a_set_that_is_not_here_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OCSDF_CACHE", str(tmp_path))
    found = _shown("datasets", "--card", "speech", "--offline")
    assert found.exit_code == 0
    assert "3,625" in found.output
    assert "downloads are off" in found.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("datasets", "--card", "wien"), "Did you mean 'wine'"),
        (("detectors", "--card", "wine"), "needs the kind"),
    ],
)
def test_a_card_of_no_data_set_is_refused(arguments: tuple[str, ...], message: str) -> None:
    found = _shown(*arguments)
    assert found.exit_code != 0
    assert message in found.output


PAGE = Path(__file__).parents[3] / "docs" / "data.md"


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not part of the installed package")
@pytest.mark.parametrize("dataset", OURS, ids=_by_name)
def test_the_page_on_data_says_what_the_card_says(dataset: Dataset) -> None:
    counts = [f"{dataset.n_normal:,}"] + ([] if dataset.classes else [f"{dataset.n_anomaly:,}"])
    line = " | ".join(["", dataset.name, *counts, f"{dataset.n_features:,}", ""]).strip()
    assert line in PAGE.read_text(encoding="utf-8")


def test_the_example_of_the_page_registers_a_set() -> None:
    if not PAGE.exists():
        pytest.skip("the documentation is not part of the installed package")
    example = PAGE.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    added: dict[str, Dataset] = {}
    exec(
        example.replace("DATASETS.add(", "added.setdefault('set', "), {"added": added}
    )  # not into the registry
    _check(added["set"], added["set"].load(MirrorOrDownload(offline=True)))
