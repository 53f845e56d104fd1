"""The site in a real browser: by mouse and by keyboard, on a desk and on a phone, light and dark."""

from __future__ import annotations

import re
import shutil

import pytest

from ocsdf_bench.site import build_site
from ocsdf_bench.store import Store

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=f"none of {', '.join(NAMES)} is installed")
DESK, PHONE = {"width": 1200, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def site(tmp_path_factory, invented_runs):
    folder = tmp_path_factory.mktemp("browser")
    with Store(folder / "invented") as store:
        for run in invented_runs:
            store.append(run)
    build_site([folder / "invented"], folder / "site")
    return folder / "site"


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.fixture
def look(browser, site):
    """Open a page; what it complains of or asks the network for fails the test."""
    complaints, opened = [], []

    def to(name: str, viewport=DESK, scheme="light"):
        context = browser.new_context(viewport=viewport, color_scheme=scheme)
        opened.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda r: r.url.startswith("file:") or complaints.append(r.url))
        page.goto((site / name).as_uri())
        return page

    yield to
    for context in opened:
        context.close()
    assert complaints == []


def _column(page, index: int) -> list[str]:
    return page.evaluate(
        """i => [...document.querySelectorAll("table.filtered tbody tr")].filter(r => !r.hidden)
                .map(r => r.cells[i].dataset.value ?? r.cells[i].textContent.trim())""",
        index,
    )


@pytest.mark.parametrize("viewport", [DESK, PHONE], ids=["desk", "phone"])
def test_no_page_complains_asks_for_anything_or_scrolls_sideways(look, viewport):
    for name in ("index.html", "leaderboard-invented.html", "dataset-wine.html", "detector-OCSDF.html"):
        page = look(name, viewport)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, name
        assert page.evaluate("document.querySelector('h1').getBoundingClientRect().height") > 0


def test_every_link_of_every_page_leads_somewhere(look, site):
    anchors, links = {}, set()
    for path in site.iterdir():
        page = look(path.name)
        anchors[path.name] = set(page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)"))
        links |= set(page.evaluate("[...document.querySelectorAll('a')].map(a => a.href)"))
    assert len(links) > 20
    for link in links:
        name, _, anchor = link.rpartition("/")[2].partition("#")
        assert name in anchors, link
        assert not anchor or anchor in anchors[name], link


def test_a_click_on_a_head_sorts_and_a_second_one_turns_the_order(look):
    page = look("index.html")
    mean = page.locator("table.filtered thead button").nth(1)
    mean.click()
    down = list(map(float, _column(page, 1)))
    mean.click()
    up = list(map(float, _column(page, 1)))
    assert down == sorted(down, reverse=True) != up == sorted(up)
    assert page.locator("table.filtered th").nth(1).get_attribute("aria-sort") == "ascending"
    page.locator("table.filtered thead button").first.click()
    names = _column(page, 0)
    assert names[-1] == "OCSDF-best-margin"


def test_summary_rows_stay_below_whatever_is_sorted(look):
    page = look("leaderboard-invented.html")
    table = page.locator("#invented-unsupervised-auroc table")
    table.locator("thead button").nth(1).click()
    mean, rank = table.locator("tbody th").all_inner_texts()[-2:]
    assert mean.startswith("mean of")
    assert rank.startswith("average rank")


def test_filters_and_search_leave_what_was_asked_for(look):
    page = look("index.html")
    assert len(_column(page, 0)) == 8  # clean results of the first suite
    page.select_option("select[name=radius]", "")
    assert len(_column(page, 0)) == 20
    page.select_option("select[name=radius]", "0.25")
    assert len(_column(page, 0)) == 4
    page.select_option("select[name=threat]", "anomalies and normals move")
    page.fill("input[name=text]", "knn")
    assert _column(page, 0) == ["KNN"]
    assert page.inner_text("#count") == "1 of 20 rows"


def test_the_keyboard_is_enough(look):
    page = look("index.html")
    page.focus("select[name=radius]")
    page.keyboard.press("Tab")
    page.keyboard.type("ocsdf")
    shown = _column(page, 0)
    assert shown
    assert all("OCSDF" in name for name in shown)
    for _ in range(3):  # the region that scrolls, then the heads: detector, mean
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "mean"
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid", "who uses the keyboard must see where it is"
    page.keyboard.press("Enter")
    means = list(map(float, _column(page, 1)))
    assert means == sorted(means, reverse=True)


LUMINANCE = """selector => {
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
    .map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const element = document.querySelector(selector);
  const colour = node => getComputedStyle(node).backgroundColor;
  let behind = element;
  while (behind.parentElement && parse(colour(behind))[3] === 0) behind = behind.parentElement;
  return [getComputedStyle(element).color, colour(behind)].map(c => light(parse(c)));
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_both_schemes(look, scheme):
    page = look("dataset-glass.html", scheme=scheme)
    for selector in ("h1", "p.caption", "a", "td.number", "td.warn", "thead th small", "dt"):
        ink, paper = page.evaluate(LUMINANCE, selector)
        contrast = (max(ink, paper) + 0.05) / (min(ink, paper) + 0.05)
        assert contrast >= 4.5, (selector, contrast)  # WCAG AA
    paper = page.evaluate(LUMINANCE, "body")[1]
    assert (paper < 0.1) == (scheme == "dark")


def test_on_a_phone_wide_tables_and_pictures_scroll_inside_themselves(look):
    page = look("leaderboard-invented.html", PHONE)
    for kind in (".scroll", ".picture"):
        inside = page.evaluate(
            "kind => [...document.querySelectorAll(kind)].map(e => e.scrollWidth - e.clientWidth)", kind
        )
        assert max(inside) > 0, kind
    assert re.search(r"\d", page.inner_text("#invented-unsupervised-ranking"))
