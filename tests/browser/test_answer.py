"""The page of an answer in a browser: links between sentences and sources, what-if, keyboard."""

import pytest
from playwright.sync_api import expect

from language.test_attribute import MANY, either
from servers import served
from slalom.language.attribute import attributed
from slalom.views import html
from slalom.web.answers import Language
from writers import KnownWriter, scorer


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    made = tmp_path_factory.mktemp("answer") / "page.html"
    found = attributed(scorer(either, MANY), n_queries=64)
    made.write_text(html.page(found), encoding="utf-8")
    return made


def test_pointing_at_a_sentence_lights_its_sources(open_page, file) -> None:
    page = open_page(file.as_uri())
    sources = page.locator(".source")
    page.locator(".said").nth(0).hover()
    expect(sources.nth(2)).to_have_class("source for s9")
    expect(sources.nth(10)).to_have_class("source for s9")
    expect(sources.nth(1)).to_have_class("source")
    page.mouse.move(1, 1)
    expect(sources.nth(2)).to_have_class("source")


def test_pointing_at_a_source_lights_its_sentences(open_page, file) -> None:
    page = open_page(file.as_uri())
    page.locator(".source .open").nth(2).hover()
    expect(page.locator(".said").nth(0)).to_have_class("said for s9")
    expect(page.locator(".said").nth(1)).to_have_class("said")


def test_what_matters_is_told_in_words(open_page, file) -> None:
    page = open_page(file.as_uri())
    told = page.locator(".source small")
    expect(told).to_have_count(2)
    expect(told.nth(0)).to_contain_text("far less without [11] too")


def test_what_is_said_without_some(open_page, file) -> None:
    page = open_page(file.as_uri())
    status = page.get_by_role("status")
    expect(status).to_contain_text("Untick a source")
    page.get_by_label("Show source 3").uncheck()
    expect(status).to_contain_text("Without [3] the answer is as likely")
    page.get_by_label("Show source 11").uncheck()
    expect(status).to_contain_text("times less likely; sentence 1:")
    expect(status).to_contain_text("sentence 2: as likely")
    page.get_by_label("Show source 3").check()
    page.get_by_label("Show source 11").check()
    expect(status).to_contain_text("Untick a source")


def test_everything_works_by_keyboard(open_page, file) -> None:
    page = open_page(file.as_uri())
    page.wait_for_selector(".slalom.ready")
    page.keyboard.press("Tab")
    first = page.locator(".said").nth(0)
    expect(first).to_be_focused()
    expect(page.locator(".source").nth(2)).to_have_class("source for s9")
    page.keyboard.press("Enter")
    expect(first).to_have_attribute("aria-pressed", "true")
    page.keyboard.press(" ")
    expect(first).to_have_attribute("aria-pressed", "false")
    for _ in range(2):
        page.keyboard.press("Tab")
    expect(page.get_by_label("Show source 1", exact=True)).to_be_focused()
    page.keyboard.press(" ")
    expect(page.get_by_role("status")).to_contain_text("Without [1]")


def asked_live(open_page, url):
    """The live page with the sources of an answer."""
    page = open_page(url, bypass_csp=True)
    page.wait_for_selector("body.ready")
    page.get_by_label("Source 1", exact=True).fill("\n".join(MANY))
    page.get_by_label("Question").fill("Where?")
    page.get_by_role("button", name="Explain").click()
    page.wait_for_selector(".slalom.ready .source")
    return page


def test_the_live_page_asks_the_model(open_page) -> None:
    writer = KnownWriter(either)
    with served(language=Language(writer)) as server:
        page = asked_live(open_page, server.url)
        expect(page.locator(".source")).to_have_count(len(MANY))
        for number in (3, 11):
            page.get_by_label(f"Show source {number}", exact=True).uncheck()
        expect(page.locator(".told")).to_contain_text("(measured; predicted: ")
        assert any("Ben lives" not in asked for asked in writer.asked)
        page.get_by_role("button", name="Add a document").click()
        expect(page.get_by_label("Source 2", exact=True)).to_be_focused()
        page.get_by_label("Source 1", exact=True).fill("One alone")
        page.get_by_role("button", name="Explain").click()
        expect(page.locator(".status")).to_contain_text("one source only")
        page.context.close()
