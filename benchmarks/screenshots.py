"""Pictures of the static file and of the live page: light and dark, wide and narrow.

    python -m benchmarks.screenshots --out screenshots

Needs the development extras and a Chromium. Look at them after a change to the pages.
"""

import argparse
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import slalom
from benchmarks.inside import html

FLAGS = "--no-sandbox --disable-background-networking --no-first-run --disable-sync".split()
SIZES = {"wide": (1280, 860), "narrow": (390, 844)}
SCHEMES = ("light", "dark")
REVIEW = Path(__file__).parent.parent / "examples" / "review.txt"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("screenshots"), help="a folder")
    parser.add_argument("--docs", action="store_true", help="renew the two in docs/ as well")
    given = parser.parse_args()
    folder: Path = given.out
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    classifier = slalom.load()
    text = REVIEW.read_text(encoding="utf-8").strip()
    file = folder / "explanation.html"
    explained = slalom.explain(classifier, text).with_pairs(6, classifier)
    file.write_text(html.page(explained), encoding="utf-8")
    with served(classifier) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        scenes: dict[str, tuple[str, Callable[[Any], None]]] = {
            "file": (file.resolve().as_uri(), lambda page: None),
            "steps": (file.resolve().as_uri(), lambda page: choose(page, "bridge")),
            "plane": (file.resolve().as_uri(), lambda page: choose(page, "plane")),
            "page": (address, what_if),
            "compare": (address, compare),
        }
        for name, (url, act) in scenes.items():
            for size, (width, height) in SIZES.items():
                for scheme in SCHEMES:
                    page = browser.new_page(
                        viewport={"width": width, "height": height}, color_scheme=scheme
                    )
                    page.set_default_timeout(120_000)
                    page.goto(url)
                    act(page)
                    page.mouse.move(0, 0)
                    page.wait_for_timeout(400)
                    page.screenshot(path=folder / f"{name}-{size}-{scheme}.png", full_page=True)
                    page.close()
        browser.close()
    if given.docs:
        for name, picture in (("explanation", "file"), ("page", "page")):
            small(
                folder / f"{picture}-wide-light.png", REVIEW.parent.parent / "docs" / f"{name}.png"
            )
    print(f"{len(scenes) * len(SIZES) * len(SCHEMES)} pictures in {folder}")


def small(source: Path, place: Path) -> None:
    """A palette is enough for a page, and a third of the size."""
    from PIL import Image

    Image.open(source).convert("RGB").quantize(96).save(place, optimize=True)


def choose(page: Any, tab: str) -> None:
    page.wait_for_selector(".slalom.ready")
    page.locator(f"label:has(input[value='{tab}'])").click()


def explained(page: Any, n_panels: int = 1) -> None:
    page.wait_for_function(
        "n => document.querySelectorAll('.slalom.ready').length === n "
        "&& [...document.querySelectorAll('progress')].every((bar) => bar.hidden)",
        arg=n_panels,
    )


def what_if(page: Any) -> None:
    page.wait_for_selector("body.ready")
    page.click(".go")
    explained(page)
    page.locator(".w").get_by_text("awful", exact=True).click()
    page.wait_for_selector(".answers")
    page.get_by_role("button", name="find the best order").click()
    page.wait_for_selector(".path")
    page.get_by_label("Words removed in the best order").evaluate(
        "(slider) => { slider.value = 3; slider.dispatchEvent(new Event('input')); }"
    )
    page.wait_for_selector(".answers")


def compare(page: Any) -> None:
    page.wait_for_selector("body.ready")
    page.click(".go")
    explained(page)
    page.click("#compare")
    explained(page, 2)


@contextmanager
def served(classifier: Any) -> Iterator[str]:
    """The live page on a free port."""
    from benchmarks.inside import Address, Models, app, listening, server
    from benchmarks.inside import PageModel as Model

    taken, address = listening(Address(port=0))
    running = server(app(Models((Model("bundled", classifier),)), address=address))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [taken]})
    thread.start()
    try:
        while not running.started:
            time.sleep(0.02)
        yield address.url
    finally:
        running.should_exit = True
        thread.join()
        taken.close()


if __name__ == "__main__":
    main()
