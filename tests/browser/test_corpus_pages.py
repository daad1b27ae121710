"""The report of a corpus and two runs beside each other, as a browser shows them."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import FloatRect, Locator, Page

import slalom
from corpora import classifier, log_odds, reviews, write_jsonl
from slalom.corpus.diff import diff
from slalom.corpus.explain import explain_dataset
from slalom.corpus.folder import RunFolder
from slalom.corpus.report import report

MIN_TEXT = 8.0  # pixels between the top and the bottom of a word in the chart


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    place = tmp_path_factory.mktemp("pages")
    data = str(write_jsonl(place / "reviews.jsonl", reviews(40)))

    def other(texts: list[str]):
        return -log_odds(texts)

    asked = slalom.FunctionClassifier(other, ["bad", "good"], gives="logits")
    for name, model in (("a", classifier()), ("b", asked)):
        explain_dataset(model, data, place / name, method="leave-one-out", id_column="key")
    first, second = RunFolder(place / "a"), RunFolder(place / "b")
    return {"report": report(first, "group"), "diff": diff(first, second).html()}


@pytest.mark.parametrize("width", [375, 1280])
@pytest.mark.parametrize("name", ["report", "diff"])
def test_a_page_fits_the_window_and_its_words_lead_to_documents(
    name: str, width: int, pages: dict[str, str], open_page: Callable[..., Page], tmp_path: Path
) -> None:
    (tmp_path / "page.html").write_text(pages[name], encoding="utf-8")
    page = open_page((tmp_path / "page.html").as_uri(), width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for box in page.locator(".scroll").all():  # tables are shown in full
        assert box.evaluate("box => box.scrollHeight - box.clientHeight") <= 1
    if name == "report":
        words = page.locator("svg.chart text.end").all()
        assert min(_box(word)["height"] for word in words) >= MIN_TEXT
    link = page.locator("th[scope=row] a").first
    page.emulate_media(color_scheme="dark")
    red, green, blue = link.evaluate("a => getComputedStyle(a).color.match(/\\d+/g).map(Number)")
    assert min(red, green, blue) > 150  # light letters: the page is dark then
    page.emulate_media(color_scheme="light")
    assert _box(link)["x"] < width - 40  # in sight, without scrolling
    link.click()
    assert -1 < _box(page.locator(page.evaluate("location.hash")))["y"] < 900


def _box(found: Locator) -> FloatRect:
    box = found.bounding_box()
    assert box is not None
    return box
