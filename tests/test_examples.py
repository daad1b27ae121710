"""Every example runs, and the README shows the first of them as it is."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NEED_A_SERVER = {"chat"}  # tests/classifiers/test_chat.py starts one
EXAMPLES = sorted(
    path for path in (ROOT / "examples").glob("*.py") if path.stem not in NEED_A_SERVER
)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(
    example: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(example), run_name="__main__")
    told = capsys.readouterr().out
    assert {"quickstart": "wonderful", "any_function": "awful", "what_if": "without awful"}[
        example.stem
    ] in told


def test_the_readme_shows_the_quickstart() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert (ROOT / "examples" / "quickstart.py").read_text(encoding="utf-8") in readme


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs"])
def test_links_between_pages_lead_somewhere(page: str) -> None:
    pages = [ROOT / page] if page.endswith(".md") else sorted((ROOT / page).rglob("*.md"))
    for path in pages:
        if {"generated", "_build"} & set(path.parts):  # made by `make docs`
            continue
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text(encoding="utf-8")):
            if not link.startswith("http"):
                assert (path.parent / link).exists(), f"{path.name} links to {link}"


def test_the_quickstart_runs_on_one_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    source = (ROOT / "examples" / "quickstart.py").read_text(encoding="utf-8")
    text = "A slow start and one awful song, but a wonderful film."
    assert text in source
    source = source.replace(text, "Awful").replace('e["wonderful"]', "e[0]")
    exec(compile(source, "quickstart.py", "exec"), {})
    assert capsys.readouterr().out.startswith("Awful")
