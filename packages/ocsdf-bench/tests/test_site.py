"""The site: whole, escaped, self-contained, every link resolves."""

from __future__ import annotations

import doctest
import html
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from ocsdf_bench import detail
from ocsdf_bench.cli import app
from ocsdf_bench.detail import slug
from ocsdf_bench.site import build_site
from ocsdf_bench.store import Store


@pytest.fixture(scope="module")
def store(tmp_path_factory, invented_runs):
    directory = tmp_path_factory.mktemp("stores") / "invented"
    rng = np.random.default_rng(0)
    with Store(directory) as opened:
        for run in invented_runs:
            scored = run.status == "ok" and run.spec.dataset == "wine" and run.spec.detector == "KNN"
            y = (np.arange(50) < 5).astype(int)
            opened.append(run, {"score": rng.normal(size=50) + y, "y": y} if scored else None)
    return directory


@pytest.fixture(scope="module")
def pages(tmp_path_factory, store):
    paths = build_site([store], tmp_path_factory.mktemp("site"))
    return {path.name: path.read_text(encoding="utf-8") for path in paths}


def test_doctests_of_the_module_hold():
    assert doctest.testmod(detail).failed == 0


def test_there_is_a_page_for_each_data_set_and_each_detector(pages, invented_runs):
    assert next(iter(pages)) == "index.html"
    assert "leaderboard-invented.html" in pages
    for run in invented_runs:
        assert f"dataset-{slug(run.spec.dataset)}.html" in pages
        assert f"detector-{slug(run.spec.detector)}.html" in pages


def test_every_link_resolves(pages):
    for name, text in pages.items():
        for link in re.findall(r'<a href="([^"]*)"', text):
            page, _, anchor = html.unescape(link).partition("#")
            assert (page or name) in pages, (name, link)
            assert not anchor or f'id="{anchor}"' in pages[page or name], (name, link)


def test_no_page_asks_for_anything(pages):
    for name, text in pages.items():
        assert not re.search(r'(src|href|action)="(https?:)?//', text), name
        assert not re.search(
            r"url\(|@import|fetch\(|XMLHttpRequest|<iframe|<link", text.replace("url(#", "")
        ), name
        assert text.count("<script>") == 1, name


def test_a_hostile_name_is_text_everywhere_and_no_path(pages, hostile_name):
    assert html.escape(hostile_name).replace("&#x27;", "&#39;").split("\n")[0] in pages["index.html"]
    for name, text in pages.items():
        assert "<script>alert" not in text, name
        assert re.fullmatch(r"[A-Za-z0-9.-]+", name)


def test_slugs_of_different_names_differ_and_are_safe():
    names = ["KNN", "K N N", "K-N-N", "k/n/n", "../KNN", "", "ä", "a" * 80, "a" * 81]
    slugs = [slug(name) for name in names]
    assert len(set(slugs)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9-]*", text) and len(text) <= 50 for text in slugs)


def test_index_filters_by_suite_protocol_threat_and_radius(pages):
    index = pages["index.html"]
    for name in ("suite", "protocol", "threat", "radius"):
        assert f'<select name="{name}">' in index
        assert f"data-{name}=" in index
    assert '<option value="0.25">' in index


def test_data_set_page_has_its_card_results_and_histogram(pages):
    page = pages["dataset-wine.html"]
    assert "<dt>source</dt>" in page
    assert 'href="detector-KNN.html"' in page
    assert ">Scores, wine</h3>" in page
    assert ">Scores, " not in pages["dataset-glass.html"]


def test_detector_page_has_parameters_reasons_and_flags(pages):
    assert "MemoryError: no room" in pages["detector-COF.html"]
    assert "AUROC under 0.5" in pages["detector-ECOD.html"]
    assert "{&#34;margin&#34;:0.05,&#34;recipe&#34;:&#34;paper&#34;}" in pages["detector-OCSDF.html"]


def test_certified_columns_stand_where_a_row_has_them(pages):
    assert "certified AUROC at 0.25" in pages["detector-OCSDF.html"]
    assert "certified AUROC at" not in pages["detector-ECOD.html"]
    assert "certified AUROC at" not in pages["dataset-speech.html"]


def test_a_long_reason_is_folded_and_whole(tmp_path, invented_run):
    reason = "the file is not on this machine; " + "get it and put it in your mirror; " * 5 + "the end"
    with Store(tmp_path / "store") as opened:
        opened.append(invented_run("KNN", "wine", 0, None, status="skipped", reason=reason))
    build_site([tmp_path / "store"], tmp_path / "site")
    page = (tmp_path / "site" / "dataset-wine.html").read_text(encoding="utf-8")
    assert re.search(rf"<details><summary>the file .{{0,80}}</summary>{re.escape(reason)}</details>", page)


@pytest.fixture(scope="module")
def small_store(tmp_path_factory, invented_runs):
    directory = tmp_path_factory.mktemp("small") / "invented"
    with Store(directory) as opened:
        for run in invented_runs:
            if run.spec.dataset == "wine" and run.spec.seed == 0:
                opened.append(run)
    return directory


def test_pages_are_the_same_bytes_each_time(tmp_path, small_store):
    one, two = (build_site([small_store], tmp_path / name) for name in ("one", "two"))
    for first, second in zip(one, two, strict=True):
        assert first.read_bytes() == second.read_bytes(), first.name


def test_no_store_is_refused(tmp_path):
    with pytest.raises(ValueError, match="`directories` of build_site must name at least one store"):
        build_site([], tmp_path)


def test_command_builds_the_site_and_refuses_a_folder_without_a_store(tmp_path, small_store):
    done = CliRunner().invoke(app, ["site", str(small_store), "--out", str(tmp_path / "site")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "site" / "index.html").exists()
    assert CliRunner().invoke(app, ["site", str(tmp_path)]).exit_code == 2
