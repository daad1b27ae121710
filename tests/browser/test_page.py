"""The live page in a real browser, as people use it."""

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from servers import Served, Slow, models, served
from slalom.web.models import Model, Models

TEXT = "A great film with an awful end and a slow start."
Opened = Callable[..., Page]


@pytest.fixture(scope="module")
def slow() -> Slow:
    return Slow()


@pytest.fixture(scope="module")
def server(slow: Slow) -> Iterator[Served]:
    with served(models(slow)) as running:
        yield running


@pytest.fixture
def live(server: Served, open_page: Callable[..., Page]) -> Opened:
    def opened(address: str = "/", *, width: int = 1280, bypass_csp: bool = False) -> Page:
        page = open_page(server.url + address, width=width, bypass_csp=bypass_csp)
        page.wait_for_selector("body.ready")
        return page

    return opened


def explain(page: Page, text: str = TEXT, *, panel: int = 0, done: bool = True) -> None:
    here = page.locator(".panel").nth(panel)
    here.get_by_label("Text", exact=True).fill(text)
    here.get_by_role("button", name="Explain").click()
    if done:
        finished(page, panel=panel)


def finished(page: Page, *, panel: int = 0) -> None:
    here = page.locator(".panel").nth(panel)
    # two thousand words take 18 seconds of a core, and other tests use it too
    expect(here.locator("progress")).to_be_hidden(timeout=180_000)
    expect(here.locator(".slalom.ready .sentence")).to_be_visible()


def word(page: Page, name: str, *, panel: int = 0):
    return page.locator(".panel").nth(panel).locator(".w").get_by_text(name, exact=True)


def test_paste_explain_hover(live: Opened) -> None:
    page = live()
    explain(page)
    expect(page.locator(".sentence")).to_contain_text("The classifier says negative")
    word(page, "awful").hover()
    expect(page.locator(".tip b")).to_have_text("awful")


def test_an_example_is_explained_at_once(live: Opened) -> None:
    page = live()
    examples = page.get_by_label("Examples")
    assert examples.locator("option").count() == 7
    examples.select_option(label="One strong word")
    finished(page)
    expect(page.locator(".text")).to_have_text("A slow start, but a wonderful film.")


def test_what_if_by_clicking_words(live: Opened) -> None:
    page = live()
    explain(page)
    word(page, "awful").click()
    lines = page.locator(".answers tr")
    expect(lines).to_have_count(3)
    expect(lines.nth(0)).to_contain_text("the classifier")
    expect(lines.nth(2)).to_contain_text("predicted by LIME")
    expect(word(page, "awful")).to_have_class(re.compile("removed"))
    expect(lines.nth(0)).to_contain_text("−2.20")  # negative against positive, 0.2 + 3 − 1
    word(page, "awful").click()
    expect(page.locator(".answers")).to_have_count(0)


def test_the_best_order_of_removal_is_a_slider(live: Opened) -> None:
    page = live()
    explain(page)
    page.get_by_role("button", name="find the best order of removal").click()
    expect(page.locator(".path")).to_have_count(2)
    slider = page.get_by_label("Words removed in the best order")
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".w.removed")).to_have_text(["awful"])
    page.get_by_role("button", name="restore all words").click()
    expect(page.locator(".w.removed")).to_have_count(0)


def test_with_the_keyboard_alone(live: Opened) -> None:
    page = live()
    box = page.get_by_label("Text", exact=True)
    for _ in range(12):
        page.keyboard.press("Tab")
        if box.evaluate("(node) => node === document.activeElement"):
            break
    page.keyboard.press("Control+a")
    page.keyboard.type(TEXT)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    finished(page)
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('w')"):
            break
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    gone = page.evaluate("document.activeElement.textContent")
    page.keyboard.press("Enter")
    expect(page.locator(".w.removed")).to_have_text([gone])
    expect(page.locator(".answers")).to_be_visible()
    assert page.evaluate("document.activeElement.textContent") == gone  # the focus stays


def test_two_side_by_side_at_once(live: Opened) -> None:
    page = live()
    explain(page)
    page.get_by_role("button", name="Compare").click()
    finished(page, panel=1)
    methods = [page.locator(".panel").nth(n).locator("header .small").first for n in (0, 1)]
    page.set_viewport_size({"width": 1900, "height": 900})
    title, panel = page.locator(".top h1").bounding_box(), page.locator("#panels > *").first
    assert title is not None
    assert title["x"] == pytest.approx((panel.bounding_box() or {})["x"], abs=6)
    expect(methods[0]).to_contain_text("slalom")
    expect(methods[1]).to_contain_text("lime")
    explain(page, "A wonderful song.", panel=1, done=False)
    explain(page, "An awful song.", panel=0)
    finished(page, panel=1)
    expect(page.locator(".text").nth(0)).to_have_text("An awful song.")
    expect(page.locator(".text").nth(1)).to_have_text("A wonderful song.")
    page.get_by_role("button", name="One panel").click()
    expect(page.locator(".panel")).to_have_count(1)


def test_where_two_differ_is_shown_for_the_same_words(live: Opened) -> None:
    page = live()
    explain(page)
    page.get_by_role("button", name="Compare").click()
    finished(page, panel=1)
    page.locator("label:has-text('method') select").nth(1).select_option("random")
    explain(page, panel=1)
    apart = page.get_by_role("region", name="Where the two differ")
    expect(apart.locator(".text")).to_have_text(TEXT)
    expect(apart.locator("figcaption")).to_contain_text(
        "slalom gives the word a higher score than random"
    )
    explain(page, "A wonderful song.", panel=1)
    expect(apart).to_be_hidden()


def test_a_result_under_an_edited_text_is_marked_as_old(live: Opened) -> None:
    page = live()
    explain(page)
    box = page.locator(".panel").get_by_label("Text", exact=True)
    box.fill(f"{TEXT} Or not.")
    expect(page.locator(".slalom.stale")).to_have_count(1)
    expect(page.get_by_text("The text has changed")).to_be_visible()
    box.fill(TEXT)
    expect(page.locator(".slalom.stale")).to_have_count(0)
    page.get_by_role("button", name="Explain").click()
    finished(page)
    expect(page.locator(".status")).to_have_text("")


def test_save_and_open_again(live: Opened, tmp_path: Path) -> None:
    page = live()
    explain(page)
    with page.expect_download() as saving:
        page.get_by_role("button", name="Save").click()
    saved = tmp_path / "kept.json"
    saving.value.save_as(saved)
    assert json.loads(saved.read_text(encoding="utf-8"))["format"] == "slalom-explanation"
    sentence = page.locator(".sentence").text_content()
    fresh = live()
    drop(fresh, saved)
    expect(fresh.locator(".status")).to_contain_text("opened kept.json")
    assert fresh.locator(".sentence").text_content() == sentence
    word(fresh, "great").click()
    expect(fresh.locator(".answers")).to_be_visible()


def drop(page: Page, file: Path) -> None:
    page.locator(".panel").evaluate(
        """(panel, [name, content]) => {
          const carried = new DataTransfer();
          carried.items.add(new File([content], name));
          panel.dispatchEvent(new DragEvent("drop", { dataTransfer: carried, bubbles: true }));
        }""",
        [file.name, file.read_text(encoding="utf-8")],
    )


def test_a_dropped_text_is_explained_and_nonsense_is_refused(live: Opened, tmp_path: Path) -> None:
    page = live()
    text, nonsense = tmp_path / "a.txt", tmp_path / "b.json"
    text.write_text("A wonderful song.\n", encoding="utf-8")
    nonsense.write_text("{", encoding="utf-8")
    drop(page, text)
    finished(page)
    expect(page.locator(".text")).to_have_text("A wonderful song.")
    drop(page, nonsense)
    expect(page.locator(".status.error")).to_contain_text("not JSON")


def test_the_link_holds_the_state(live: Opened) -> None:
    page = live()
    explain(page)
    page.locator("label:has(input[value='removal'])").click()
    word(page, "awful").click()
    expect(page.locator(".answers")).to_be_visible()
    page.wait_for_timeout(400)
    fresh = live("/" + page.evaluate("location.hash"))
    finished(fresh)
    expect(fresh.locator(".w.removed")).to_have_text(["awful"])
    assert fresh.locator("input[value='removal']").is_checked()
    assert fresh.locator(".sentence").text_content() == page.locator(".sentence").text_content()
    fresh.reload()
    fresh.wait_for_selector("body.ready")
    finished(fresh)
    expect(fresh.locator(".w.removed")).to_have_text(["awful"])


def test_a_link_that_was_cut_short_does_no_harm(live: Opened) -> None:
    page = live("/#q1bKTFGyUj")
    expect(page.get_by_role("button", name="Explain")).to_be_visible()


NASTY = (
    '<script>alert(1)</script> "><img src=x onerror=alert(1)> <svg onload=alert(1)> '
    "👩‍🔬 😀 فيلم رائع حقا \u202e\u0000 great"
)


def test_any_text_is_shown_as_text(live: Opened) -> None:
    page = live()
    page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
    explain(page, NASTY.replace("\u0000", ""))
    expect(page.locator(".text")).to_contain_text("<script>alert(1)</script>")
    expect(page.locator(".text")).to_contain_text("فيلم رائع حقا")
    assert page.locator("main img, main script").count() == 0


def test_two_thousand_words(live: Opened) -> None:
    page = live()
    page.locator("label:has-text('queries') input").fill("200")
    page.locator("label:has-text('units') select").select_option("word")
    explain(page, " ".join(["film", "song"] * 999 + ["great", "awful"]))
    assert page.locator(".w").count() == 2000
    expect(page.locator(".canvas .name").first).to_have_text(re.compile("great|awful"))


def test_cancel_really_stops(live: Opened, slow: Slow, server: Served) -> None:
    page = live()
    page.locator("label:has-text('model') select").select_option("slow")
    page.locator("label:has-text('queries') input").fill("3000")
    explain(page, " ".join(f"word{n}" for n in range(60)), done=False)
    expect(page.locator(".status")).to_contain_text("querying the classifier")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".status")).to_have_text("cancelled")
    expect(page.get_by_role("button", name="Explain")).to_be_enabled()
    deadline = time.monotonic() + 15
    while server.ask("/api/health")[1]["running"] and time.monotonic() < deadline:
        time.sleep(0.1)
    asked = slow.n_asked
    time.sleep(1)
    assert slow.n_asked == asked < 2000


def test_a_rough_answer_comes_first(live: Opened) -> None:
    page = live()
    page.locator("label:has-text('model') select").select_option("slow")
    page.locator("label:has-text('queries') input").fill("400")
    explain(page, " ".join(f"word{n}" for n in range(40)) + " great", done=False)
    expect(page.locator(".slalom.ready .sentence")).to_be_visible()
    assert page.locator("progress").is_visible()
    rough = page.locator(".slalom footer").text_content()
    finished(page)
    assert page.locator(".slalom footer").text_content() != rough


def test_a_model_that_fails_is_said_in_a_sentence(live: Opened) -> None:
    page = live()
    explain(page)
    expect(page.locator(".sentence")).to_be_visible()
    page.locator("label:has-text('model') select").select_option("broken")
    explain(page, done=False)
    expect(page.locator(".status.error")).to_be_visible()
    expect(page.locator(".sentence")).to_be_hidden()  # it answered another request
    assert "Traceback" not in (page.locator("body").text_content() or "")


def test_every_class_of_another_model(live: Opened) -> None:
    page = live()
    page.locator("label:has-text('model') select").select_option("topics")
    page.locator("label:has-text('explain') select").select_option("all")
    explain(page, "a film about a song and a game, the best film")
    assert page.locator(".controls select option").count() == 4
    page.locator(".controls select").select_option(label="song")
    page.locator(".w").get_by_text("song", exact=True).click()
    expect(page.locator(".answers caption")).to_have_text("for song")


def test_nothing_is_wider_than_a_narrow_window(live: Opened) -> None:
    page = live(width=390)
    explain(page)
    word(page, "awful").click()
    expect(page.locator(".answers")).to_be_visible()
    page.get_by_role("button", name="find the best order").click()
    expect(page.locator(".path").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_folders_are_called_by_their_last_part_unless_two_share_it(
    open_page: Callable[..., Page],
) -> None:
    classifier = models().every[0].classifier
    names = ("/a/long/way/to/bert", "run-1/gpt", "org/gpt")
    given = Models(tuple(Model(name, classifier) for name in names))
    with served(given) as running:
        page = open_page(running.url + "/")
        page.wait_for_selector("body.ready")
        shown = page.get_by_label("model").locator("option")
        expect(shown).to_have_text(["bert", "run-1/gpt", "org/gpt"])
        explain(page)
        expect(page.locator(".sentence")).to_contain_text("The classifier says")
        page.close()  # before its server goes
