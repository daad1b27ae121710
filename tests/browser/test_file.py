"""The static file in a real browser: drawn from its record, under its own policy."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

import slalom
from explanations import NASTY, made, with_facts, with_one_score, with_unidentified
from slalom.explanation import Explanation
from slalom.views import html, reading
from slalom.views.record import record

Opened = Callable[[Explanation], Page]


@pytest.fixture
def show(open_page: Callable[..., Page], tmp_path: Path) -> Opened:
    def shown(explanation: Explanation) -> Page:
        file = tmp_path / "page.html"
        file.write_text(html.page(explanation), encoding="utf-8")
        page = open_page(file.as_uri())
        page.wait_for_selector(".slalom.ready")
        return page

    return shown


def choose(page: Page, value: str) -> None:
    page.locator(f"label:has(input[value='{value}'])").click()


EXPLANATIONS = {
    "facts": with_facts(made()),
    "nasty": made(NASTY + ' <img src=x onerror="alert(1)"> "><svg onload=alert(1)> مرحبا 😀'),
    "all classes": with_facts(made(n_classes=4, all_classes=True)),
    "one score": with_one_score(made()),
    "unidentified": with_unidentified(made(), 1),
    "one unit": made("good"),
    "pair": replace(made("good film"), text=("good", "film"), spans=((0, 0, 4), (1, 0, 4))),
    "flat": replace(made(), scores={n: 0 * s for n, s in made().scores.items()}),
}


@pytest.mark.parametrize("explanation", EXPLANATIONS.values(), ids=EXPLANATIONS.keys())
def test_every_explanation_is_drawn_in_every_way(show: Opened, explanation: Explanation) -> None:
    page = show(explanation)
    sides = explanation.text if isinstance(explanation.text, tuple) else (explanation.text,)
    assert "".join(page.locator(".text").all_text_contents()) == "".join(
        map(reading.visible, sides)
    )
    for tab in page.locator(".bar input").all():
        choose(page, tab.get_attribute("value") or "")
        expect(page.locator(".canvas svg").first).to_be_visible()
    for by in page.locator(".controls input").all():
        choose(page, by.get_attribute("value") or "")
    page.locator("summary").click()
    assert page.locator("tbody tr").count() == len(record(explanation)["rows"])
    assert page.locator("img, script[src]").count() == 0


def test_the_sentence_is_the_one_of_the_record(show: Opened) -> None:
    explanation = with_facts(made())
    page = show(explanation)
    parts = record(explanation)["classes"][0]["sentence"]
    expect(page.locator("h1.sentence")).to_have_text("".join(text for text, _ in parts))


def test_bars_are_sorted_and_what_was_measured_has_no_interval(show: Opened) -> None:
    explanation = with_facts(made())
    page = show(explanation)
    assert page.locator(".canvas .p .name").first.text_content() == "awful"
    assert page.locator(".whisker").count() > 0
    choose(page, "alone")
    assert page.locator(".whisker").count() == 0
    expect(page.locator(".canvas figcaption")).to_contain_text("measured")


def test_a_word_its_bar_and_its_row_are_linked(show: Opened) -> None:
    page = show(with_facts(made()))
    page.locator(".w", has_text="awful").hover()
    expect(page.locator(".tip")).to_be_visible()
    expect(page.locator(".tip b")).to_have_text("awful")
    assert page.locator(".p.on .name").text_content() == "awful"
    page.mouse.move(0, 0)
    expect(page.locator(".tip")).to_be_hidden()


def test_labels_of_the_plane_do_not_cover_each_other(show: Opened) -> None:
    page = show(with_facts(made(" ".join(f"word{n}" for n in range(120)) + " great awful slow")))
    choose(page, "plane")
    boxes = [label.bounding_box() for label in page.locator(".plane .named text").all()]
    assert len(boxes) >= 3
    for n, a in enumerate(boxes):
        for b in boxes[:n]:
            assert a is not None
            assert b is not None
            apart_x = a["x"] + a["width"] <= b["x"] + 2 or b["x"] + b["width"] <= a["x"] + 2
            apart_y = a["y"] + a["height"] <= b["y"] + 4 or b["y"] + b["height"] <= a["y"] + 4
            assert apart_x or apart_y


def test_equal_words_at_one_place_are_named_once_and_crosses_stay_apart(show: Opened) -> None:
    explanation = with_facts(made())
    places = 0.001 * np.arange(len(explanation.units))  # each "great" has a row of its own
    scores = {**explanation.scores, "shapley": explanation.scores["shapley"] + places}
    page = show(replace(explanation, scores=scores))
    choose(page, "plane")
    names = page.locator(".plane .p.named text").all_text_contents()
    assert page.locator(".plane .p text").all_text_contents().count("great") == 3
    assert [name.casefold() for name in names].count("great") == 1
    crossed = page.locator(".plane .p.crossed .cross")
    assert crossed.count() >= 2
    boxes = [cross.bounding_box() for cross in crossed.all()]
    middles = [(b["x"] + b["width"] / 2, b["y"] + b["height"] / 2) for b in boxes if b]
    assert len(set(middles)) == len(boxes)


def test_bars_without_errors_say_so(show: Opened) -> None:
    explanation = replace(with_facts(made()), errors={}, measured={})
    caption = show(explanation).locator(".canvas figcaption")
    expect(caption).to_have_text("Standard errors of these scores are not known.")


def test_the_curve_of_lengths_has_a_scale(show: Opened) -> None:
    explanation = with_facts(made())
    n_units = len(explanation.units)
    for dip, rise in ((-0.7, 1.6), (-0.05, 0.3), (0.0, 7.0)):
        curve = np.interp(np.arange(n_units + 1), [0, n_units / 5, n_units], [0.0, dip, rise])
        page = show(replace(explanation, length_curve=curve, length_errors=None))
        choose(page, "bridge")
        chart = page.locator("svg[aria-label*='length alone']")
        assert chart.locator(".zero, .grid").count() >= 2


def test_markup_is_told_from_words(show: Opened) -> None:
    odds = slalom.FunctionClassifier(
        lambda texts: [[0.0, len(text)] for text in texts], gives="logits"
    )
    page = show(slalom.explain(odds, "good film<br /> awful"))
    assert page.locator(".markup").all_text_contents() == ["<br />"]


def test_the_plane_shows_how_sure_it_is(show: Opened) -> None:
    explanation = with_facts(made())
    unsure = {**explanation.errors, "value": np.linspace(0.0, 9.0, len(explanation.units))}
    page = show(replace(explanation, errors=unsure))
    choose(page, "plane")
    assert page.locator(".plane .cross").count() > 3
    faint = page.locator(".plane .p.faint").count()
    assert 0 < faint < page.locator(".plane .p").count()
    shown = "(cross) => getComputedStyle(cross).strokeOpacity"
    unnamed = page.locator(".plane .p:not(.named) .cross").first
    assert unnamed.evaluate(shown) == "0"  # crosses of all words would crowd the picture
    assert page.locator(".plane .named:not(.faint) .cross").first.evaluate(shown) != "0"
    assert page.locator(".plane .faint .cross").first.evaluate(shown) == "0"  # long, and many
    unnamed.locator("xpath=..").locator("circle").hover()
    assert unnamed.evaluate(shown) != "0"


def test_the_plane_steps_back_where_two_scores_describe_little(show: Opened) -> None:
    explanation = with_facts(made())
    poor = replace(explanation, quality=replace(explanation.quality, two_scores=0.3))
    for shown, place in ((explanation, 1), (poor, 3)):
        names = show(shown).locator(".bar input")
        assert names.nth(place).get_attribute("value") == "plane"


def test_words_in_context_have_a_sentence(show: Opened) -> None:
    explanation = with_facts(made())
    page = show(explanation)
    choose(page, "context")
    told = record(explanation)["classes"][0]["context"]
    expect(page.locator(".canvas figcaption")).to_contain_text(told)


def test_the_bridge_ends_at_the_answer(show: Opened) -> None:
    explanation = with_facts(made())
    page = show(explanation)
    choose(page, "bridge")
    said = record(explanation)["classes"][0]["said"]
    last = page.locator(".canvas .p .amount").last.text_content() or ""
    assert float(last.replace("−", "-")) == pytest.approx(said, abs=0.006)
    expect(page.locator(".canvas svg")).to_have_count(2)  # the length curve is below
    expect(page.locator(".canvas .band")).to_have_count(1)
    page = show(replace(explanation, length_errors=None))
    choose(page, "bridge")
    expect(page.locator(".canvas .curve")).to_have_count(1)
    expect(page.locator(".canvas .band")).to_have_count(0)


def test_every_class_can_be_looked_at(show: Opened) -> None:
    page = show(with_facts(made(n_classes=4, all_classes=True)))
    first = page.locator("h1").text_content()
    page.locator(".controls select").select_option("3")
    assert page.locator("h1").text_content() != first
    expect(page.locator("figcaption b").first).to_have_text("class 3")
    assert page.locator(".classes li").count() == 4


def test_a_long_text_is_as_tall_as_it_is(show: Opened) -> None:
    text = " ".join(["film"] * 900 + ["awful"])
    page = show(made(text))
    last = page.locator(".w").last
    assert page.locator(".text").evaluate("(node) => node.scrollHeight <= node.clientHeight + 1")
    assert last.bounding_box() is not None


def test_the_single_score_of_the_paper_is_a_switch_away(show: Opened) -> None:
    page = show(with_facts(made()))
    page.locator("summary").click()
    assert "linearised" not in page.locator("thead").inner_text()
    page.locator(".advanced input").check()
    assert "linearised" in page.locator("thead").inner_text()
    expect(page.locator("details .small")).to_contain_text("Anchor")


def test_the_keyboard_reaches_every_word(show: Opened) -> None:
    page = show(with_facts(made()))
    page.locator(".w").first.focus()
    page.keyboard.press("ArrowRight")
    focused = page.evaluate("document.activeElement.textContent")
    assert focused == page.locator(".w").nth(1).text_content()
    expect(page.locator(".tip")).to_be_visible()
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(page.locator(".tip")).to_be_hidden()


@pytest.mark.parametrize("kind", ["SVG", "PNG"])
def test_the_chart_can_be_saved(show: Opened, kind: str) -> None:
    page = show(with_facts(made()))
    with page.expect_download() as saving:
        page.get_by_role("button", name=kind).click()
    content = Path(saving.value.path()).read_bytes()
    assert content.startswith(b"<svg" if kind == "SVG" else b"\x89PNG")
    if kind == "SVG":
        assert b"awful" in content
        assert b"class=" not in content


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wider_than_the_window(
    open_page: Callable[..., Page], tmp_path: Path, width: int
) -> None:
    file = tmp_path / "page.html"
    file.write_text(html.page(with_facts(made(NASTY + " " + "x" * 300))), encoding="utf-8")
    page = open_page(file.as_uri(), width=width)
    page.wait_for_selector(".slalom.ready")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_switch_tells_scores_as_probabilities(show: Opened) -> None:
    page = show(with_facts(made()))
    first = page.locator(".chart .amount").first
    before = first.text_content()
    page.locator("label", has_text="probability").click()
    expect(first).not_to_have_text(before or "")
    expect(page.locator("figcaption").last).to_contain_text("in percentage points")
    page.locator("label", has_text="log-odds").click()
    expect(first).to_have_text(before or "")


def test_without_a_script_there_are_sentence_text_and_table(
    browser: Browser, tmp_path: Path
) -> None:
    file = tmp_path / "page.html"
    file.write_text(html.page(with_facts(made())), encoding="utf-8")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(file.as_uri())
    expect(page.locator(".sentence")).to_contain_text("against it: ")
    assert page.locator(".w.against").count() > 0
    assert page.locator("tbody tr").count() > 5
    context.close()


def test_two_in_one_notebook_do_not_disturb_each_other(
    open_page: Callable[..., Page], tmp_path: Path
) -> None:
    file = tmp_path / "notebook.html"
    parts = [html.fragment(with_facts(made())), html.fragment(made("good film"))]
    file.write_text("<!doctype html><meta charset=utf-8>" + "".join(parts), encoding="utf-8")
    page = open_page(file.as_uri())
    assert page.locator(".slalom.ready").count() == 2
    second = page.locator(".slalom").nth(1)
    second.locator("label:has(input[value='removal'])").first.click()
    assert page.locator(".slalom").first.locator("input[value='shapley']").is_checked()
