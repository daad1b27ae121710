"""What a release rests on: facts that agree, and a package page without links into nowhere."""

from pathlib import Path

import pytest
from hatch_build import addresses, with_addresses
from release import facts, steps

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
HOME = "https://example.org/slalom"


def test_versions_pythons_and_pins_agree() -> None:
    assert facts.disagreements() == []


@pytest.mark.parametrize(
    ("file", "before", "after", "said"),
    [
        ("CITATION.cff", "version: 0.1.0", "version: 0.0.9", "CITATION.cff"),
        ("CHANGELOG.md", "## 0.1.0", "## 0.2.0", "CHANGELOG.md"),
        ("lock.txt", "numpy==2", "numpy==1", "lock.txt has numpy 1"),
        ("constraints.txt", "uv==0", "uv==1", "another uv"),
        (".github/workflows/tests.yml", '"3.12", ', "", "the workflow tests"),
    ],
)
def test_a_disagreement_is_found(
    monkeypatch: pytest.MonkeyPatch, file: str, before: str, after: str, said: str
) -> None:
    read = facts.text
    assert before in read(file)
    changed = {file: read(file).replace(before, after)}
    monkeypatch.setattr(facts, "text", lambda name: changed.get(name) or read(name))
    assert said in "\n".join(facts.disagreements())


def test_pictures_and_links_get_the_address_of_the_version() -> None:
    page = "![A *page*](docs/page.png) [how](docs/page.md#a) [paper](https://x.org) [top](#top)"
    assert with_addresses(page, HOME, "1.2") == (
        f"![A *page*]({HOME}/raw/v1.2/docs/page.png) [how]({HOME}/blob/v1.2/docs/page.md#a) "
        "[paper](https://x.org) [top](#top)"
    )
    assert with_addresses(page, "", "1.2") == ("*A *page*.* how [paper](https://x.org) [top](#top)")
    assert set(addresses("")) == {"Paper"}
    assert addresses(HOME)["Issues"] == f"{HOME}/issues"


@pytest.mark.parametrize("home", ["", HOME])
def test_the_page_of_this_package_has_no_relative_link(home: str) -> None:
    assert steps.relative_links(README)  # so that there is something to find
    page = with_addresses(README, home, facts.version())
    assert steps.relative_links(page) == []
    assert ("docs/explanation.png" in page) == bool(home)


def test_what_is_linked_exists() -> None:
    for link in steps.relative_links(README):
        assert (ROOT / link.removeprefix("](").rstrip(")").partition("#")[0]).exists()


def test_publishing_asks_for_the_home_of_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = facts.text("pyproject.toml")
    told = facts.home_is_missing()
    assert told is None or "home under [tool.hatch.metadata.hooks.custom]" in told
    full = empty.replace('\nhome = ""', f'\nhome = "{HOME}"')
    monkeypatch.setattr(facts, "text", lambda _: full)
    assert facts.home_is_missing() is None
