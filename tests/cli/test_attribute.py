"""`slalom attribute`: files in, sources out."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import slalom
from chat_models import make_chat_model
from slalom.cli.main import commands

TEXT = "A great film. The music is slow. One bad joke. The start is fine."


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("model")
    make_chat_model(made, "Say 0 or 1: <{text}>")
    return str(made)


@pytest.fixture
def files(tmp_path):
    names = []
    for number, sentence in enumerate(TEXT.split(". ")):
        names.append(str(tmp_path / f"{number}.txt"))
        (tmp_path / f"{number}.txt").write_text(sentence + "\n")
    return names


def run(*arguments):
    return CliRunner().invoke(commands, ["attribute", *arguments])


def test_sources_are_named_by_their_files(folder, files, tmp_path) -> None:
    options = [part for name in files for part in ("--source", name)]
    page, out = tmp_path / "page.html", tmp_path / "a.json"
    found = run(
        "--model", folder, *options, "--question", "the film?", "--answer", "a great film",
        "--html", str(page), "--json", str(out),
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    assert "Without any source the answer is" in found.output
    again = slalom.read(out)
    assert again.answer == "a great film"
    assert again.said.names == ("0.txt", "1.txt", "2.txt", "3.txt")
    assert again.units[0] == "A great film"
    assert "what_if" in page.read_text()
    assert "[1] 0.txt" in page.read_text()


def test_lines_fit_the_terminal(folder, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    names = [str(tmp_path / f"a-file-with-a-name-that-takes-{n}-{'x' * 40}.txt") for n in "ab"]
    for name in names:
        Path(name).write_text("A great film")
    found = run("--model", folder, *names, "--answer", "a great film")
    assert found.exit_code == 0, found.output
    printed = found.output.splitlines()
    assert max(map(len, printed)) <= 80
    assert sum("likel" in line and "…" in line for line in printed) == 2


def test_one_file_is_cut_into_sentences(folder, tmp_path) -> None:
    (tmp_path / "text.txt").write_text(TEXT)
    found = run("--model", folder, str(tmp_path / "text.txt"), "--answer", "a joke", "--json", "-")
    assert found.exit_code == 0, found.output
    assert len(json.loads(found.output)["units"]) == 4


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "there are no sources"),
        (("--source", "nowhere.txt"), "cannot read nowhere.txt"),
    ],
)
def test_what_is_wrong_is_one_sentence(folder, arguments, says) -> None:
    found = run("--model", folder, *arguments)
    assert found.exit_code != 0
    assert says in str(found.exception)


def test_a_file_that_is_no_text_is_named(folder, files, tmp_path) -> None:
    (tmp_path / "table.xls").write_bytes(b"\xff\xfe\x00")
    found = run("--model", folder, *files, str(tmp_path / "table.xls"))
    assert found.exit_code != 0
    assert "table.xls is not UTF-8 (byte 0)" in str(found.exception)
