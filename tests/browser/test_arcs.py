"""Arcs between words that act together, in the file, in a notebook and on the live page."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import slalom
from explanations import REVIEW, made, with_facts, with_pairs
from servers import served
from slalom.views import html
from slalom.web.models import Model, Models

PLACES = ((16, 17), (1, 2), (2, 15))  # "Not awful", "slow start", and one across the text
EXPLANATION = with_pairs(with_facts(made()), *PLACES)
ENDS = """(arc) => [0, arc.getTotalLength()].map(
  (at) => arc.getPointAtLength(at).x + arc.ownerSVGElement.getBoundingClientRect().x)"""
NEGATED = "The plot was not bad and the music never dull"


def negated(texts: list[str]) -> np.ndarray:
    """Two words that mean something else together."""
    shown = [text.split() for text in texts]
    odds = [
        0.2 - 2.0 * ("bad" in words) + 3.0 * ("not" in words and "bad" in words) for words in shown
    ]
    return np.stack([np.zeros(len(texts)), odds], axis=1)


def ask_for_arcs(page: Page) -> None:
    """On the live page: a text, its explanation, its pairs."""
    page.wait_for_selector("body.ready")
    page.get_by_label("Text", exact=True).fill(NEGATED)
    page.get_by_role("button", name="Explain").click()
    expect(page.locator("progress")).to_be_hidden()
    page.get_by_role("button", name="find words that act together").click()
    expect(page.locator(".arc")).to_have_count(1)


def words_of(explanation: slalom.Explanation, place: tuple[int, int]) -> list[str]:
    return [explanation.units[unit] for unit in place]


@pytest.fixture
def shown(open_page: Callable[..., Page], tmp_path: Path) -> Callable[..., Page]:
    def opened(**settings: object) -> Page:
        file = tmp_path / "page.html"
        file.write_text(html.page(EXPLANATION), encoding="utf-8")
        page = open_page(file.as_uri(), **settings)
        page.wait_for_selector(".slalom.ready")
        return page

    return opened


def test_an_arc_joins_the_two_words(shown: Callable[..., Page]) -> None:
    assert words_of(EXPLANATION, PLACES[0]) == ["Not", "awful"]
    page = shown()
    expect(page.locator(".arc")).to_have_count(len(PLACES))
    for at, place in enumerate(PLACES):
        ends = page.locator(f".arc[data-pair='{at}']").evaluate(ENDS)
        boxes = [page.locator(f".w[data-unit='{unit}']").bounding_box() for unit in place]
        middles = [box["x"] + box["width"] / 2 for box in boxes if box is not None]
        assert sorted(ends) == pytest.approx(sorted(middles), abs=2)


def test_what_raises_is_blue_and_what_lowers_is_orange(shown: Callable[..., Page]) -> None:
    page = shown()
    assert page.locator(".arc.for").count() == 2
    assert page.locator(".arc.against").count() == 1


def test_the_same_as_a_list_with_its_meaning(shown: Callable[..., Page]) -> None:
    page = shown()
    pairs = page.get_by_role("region", name="Words that act together")
    expect(pairs.get_by_role("listitem").first).to_have_text(
        "Not × awful+2.70 (together +1.90, separately −0.80)"
    )
    expect(pairs).to_contain_text("60 more queries")


def test_the_keyboard_points_at_a_pair(shown: Callable[..., Page]) -> None:
    page = shown()
    page.get_by_role("button", name="Not × awful").focus()
    expect(page.locator(".w.on")).to_have_text(["Not", "awful"])
    expect(page.locator(".arc.on")).to_have_attribute("data-pair", "0")
    page.keyboard.press("Tab")
    expect(page.locator(".arc.on")).to_have_attribute("data-pair", "1")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.locator(".arc.on")).to_have_count(0)


def test_a_word_shows_its_arcs(shown: Callable[..., Page]) -> None:
    page = shown()
    page.locator(".w[data-unit='2']").hover()
    expect(page.locator(".arc.on")).to_have_count(2)


def test_arcs_follow_when_the_window_narrows(shown: Callable[..., Page]) -> None:
    page = shown()
    before = page.locator(".arc[data-pair='2']").get_attribute("d")
    page.set_viewport_size({"width": 390, "height": 900})
    expect(page.locator(".arc[data-pair='2']")).not_to_have_attribute("d", before or "")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_where_nobody_looked_there_is_nothing(
    open_page: Callable[..., Page], tmp_path: Path
) -> None:
    file = tmp_path / "page.html"
    file.write_text(html.page(made(REVIEW)), encoding="utf-8")
    page = open_page(file.as_uri())
    page.wait_for_selector(".slalom.ready")
    assert page.locator(".pairs, .arc").count() == 0


def test_the_live_page_asks_for_them(open_page: Callable[..., Page], tmp_path: Path) -> None:
    classifier = slalom.FunctionClassifier(negated, labels=["neg", "pos"], gives="logits")
    with served(Models((Model("words", classifier),))) as server:
        page = open_page(server.url)
        ask_for_arcs(page)
        expect(page.locator(".pairs li")).to_have_text(
            "not × bad+3.00 (together +1.00, separately −2.00)"
        )
        page.locator(".w").get_by_text("bad", exact=True).click()  # the arcs stay
        expect(page.locator(".w.removed")).to_have_count(1)
        expect(page.locator(".arc")).to_have_count(1)
        with page.expect_download() as saving:
            page.get_by_role("button", name="Save").click()
        saved = tmp_path / "kept.json"
        saving.value.save_as(saved)
        assert json.loads(saved.read_text())["pairs"]["pairs"][0]["units"] == [3, 4]
        assert slalom.read(saved).pairs[0].words == ("not", "bad")
        page.wait_for_timeout(400)  # the address follows
        again = open_page(server.url + "/" + page.evaluate("location.hash"))
        expect(again.locator(".arc")).to_have_count(1)
        again.context.close()
        page.context.close()
