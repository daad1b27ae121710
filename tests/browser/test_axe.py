"""axe-core finds no serious fault, on the page and in the file; arcs between words included."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import slalom
from browser.conftest import serious_faults
from browser.test_answer import asked_live
from browser.test_arcs import EXPLANATION, ask_for_arcs, negated
from explanations import made, with_facts
from language.test_attribute import MANY, either
from servers import served
from slalom.language.attribute import attributed
from slalom.views import html
from slalom.web.answers import Language
from slalom.web.models import Model, Models
from writers import KnownWriter, scorer


@pytest.mark.parametrize("tab", ["bars", "bridge", "plane"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_file(open_page: Callable[..., Page], tmp_path: Path, tab: str, scheme: str) -> None:
    file = tmp_path / "page.html"
    file.write_text(html.page(with_facts(made())), encoding="utf-8")
    page = open_page(file.as_uri(), bypass_csp=True)
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.locator(f"label:has(input[value='{tab}'])").click()
    page.locator("summary").click()
    assert serious_faults(page) == []


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_arcs_in_the_file(
    open_page: Callable[..., Page], tmp_path: Path, width: int, scheme: str
) -> None:
    file = tmp_path / "page.html"
    file.write_text(html.page(EXPLANATION), encoding="utf-8")
    page = open_page(file.as_uri(), width=width, bypass_csp=True)
    page.wait_for_selector(".slalom.ready")
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.get_by_role("button", name="Not × awful").focus()
    assert serious_faults(page) == []


def test_arcs_on_the_live_page(open_page: Callable[..., Page]) -> None:
    classifier = slalom.FunctionClassifier(negated, labels=["neg", "pos"], gives="logits")
    with served(Models((Model("words", classifier),))) as server:
        page = open_page(server.url, bypass_csp=True)
        ask_for_arcs(page)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            assert serious_faults(page) == []
        page.context.close()


def test_the_live_page(open_page: Callable[..., Page]) -> None:
    with served() as server:
        page = open_page(server.url, bypass_csp=True)
        page.wait_for_selector("body.ready")
        page.get_by_label("Text", exact=True).fill("A great film with an awful end.")
        page.get_by_role("button", name="Explain").click()
        expect(page.locator("progress")).to_be_hidden()
        page.locator(".w").get_by_text("awful", exact=True).click()
        expect(page.locator(".answers")).to_be_visible()
        page.get_by_role("button", name="find the best order").click()
        expect(page.locator(".path").first).to_be_visible()
        page.get_by_role("button", name="Compare").click()
        expect(page.locator(".slalom.ready")).to_have_count(2)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            assert serious_faults(page) == []
        page.context.close()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_file_of_an_answer(
    open_page: Callable[..., Page], tmp_path: Path, width: int, scheme: str
) -> None:
    file = tmp_path / "page.html"
    file.write_text(html.page(attributed(scorer(either, MANY), n_queries=64)), encoding="utf-8")
    page = open_page(file.as_uri(), width=width, bypass_csp=True)
    page.wait_for_selector(".slalom.ready")
    page.emulate_media(color_scheme=scheme)
    page.locator(".said").nth(0).click()
    page.get_by_label("Show source 2").uncheck()
    assert serious_faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_live_page_of_an_answer(open_page: Callable[..., Page], scheme: str) -> None:
    with served(language=Language(KnownWriter(either))) as server:
        page = asked_live(open_page, server.url)
        page.get_by_label("Show source 3", exact=True).uncheck()
        page.emulate_media(color_scheme=scheme)
        assert serious_faults(page) == []
