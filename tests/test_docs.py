"""Every code block of the pages runs as it stands, and what pages say of methods is true today."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import slalom
from chat_servers import ChatDouble
from writers import ANSWER, FACTS, KnownWriter, additive

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
MADE_BY_THE_BUILD = {"_build", "generated"}
PAGES = [
    ROOT / "README.md",
    *sorted(p for p in DOCS.rglob("*.md") if not MADE_BY_THE_BUILD & set(p.parts)),
]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
WITH_CODE = [page for page in PAGES if BLOCK.search(page.read_text(encoding="utf-8"))]
TEXT = "A slow start and one awful song, but a wonderful film."


@pytest.fixture(scope="module")
def presupposed() -> dict[str, Any]:
    """The names that pages use as known: a classifier, a text, an explanation of it."""
    classifier = slalom.load()
    return {
        "slalom": slalom,
        "classifier": classifier,
        "text": TEXT,
        "texts": ["a great film", "an awful film", "dull songs", "great songs, a dull end"] * 3,
        "pair": ("A dull film.", "It was boring."),
        "explanation": slalom.explain(classifier, TEXT, target="positive"),
        "model": KnownWriter(additive),
        "sources": list(FACTS),
        "question": "Where does Ben live?",
        "answer": ANSWER,
    }


@pytest.mark.filterwarnings("ignore::slalom.SlalomWarning")  # a dozen short texts fit poorly
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_code_on_the_page_runs(
    page: Path, presupposed: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    names = dict(presupposed)
    with ChatDouble() as double:
        for block in BLOCK.findall(page.read_text(encoding="utf-8")):
            code = block.replace("http://127.0.0.1:8000/v1", double.url)
            exec(compile(code, page.name, "exec"), names)


@pytest.mark.parametrize("page", sorted((DOCS / "methods").glob("*.md")), ids=lambda p: p.stem)
def test_the_tables_of_methods_are_those_of_today(page: Path) -> None:
    written = page.read_text(encoding="utf-8")
    filled = runpy.run_path(str(DOCS / "methods_table.py"))["filled"]
    assert filled(written) == written, "run  python docs/methods_table.py"


def test_every_method_has_a_page() -> None:
    pages = "".join(p.read_text(encoding="utf-8") for p in (DOCS / "methods").glob("*.md"))
    assert [name for name in slalom.METHODS if f"| `{name}` |" not in pages] == []


@pytest.mark.parametrize(
    "notebook", sorted((ROOT / "examples").glob("*.ipynb")), ids=lambda p: p.stem
)
def test_notebooks_run(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = runpy.run_path(str(DOCS / "notebook_runner.py"))["run"]
    shown = [(cell, value) for cell, value in run(notebook) if cell["cell_type"] == "code"]
    assert any(value is not None for _, value in shown)
    for _, value in shown:
        if isinstance(value, slalom.Explanation):
            assert value._repr_html_()


def test_the_reference_holds_every_public_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    site = runpy.run_path(str(DOCS / "site_pages.py"))
    told = site["reference"]()
    for name in set(slalom.__all__) - site["SHOWN_ELSEWHERE"]:
        assert f"### {name}\n" in told
    untold = re.findall(r"^\| (`\w+`) \|  \|$", told, re.MULTILINE)
    assert untold == [], "say behind the field what it holds"


@pytest.mark.parametrize("name", [n for n in slalom.__all__ if n.endswith("Classifier")])
def test_calling_a_classifier_says_what_comes_back(name: str) -> None:
    assert "(n, n_classes)" in (getattr(slalom, name).__call__.__doc__ or "")
