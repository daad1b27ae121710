"""Which model is meant: what commands say about it in the same words."""

from pathlib import Path

import pytest

from slalom.cli.main import main

NAMED = {
    "explain": ("explain", "a text"),
    "table": ("explain", "--file", "rows.csv", "--out", "rows.parquet"),
    "compare": ("compare", "a text"),
    "evaluate": ("evaluate", "--data", "rows.csv", "--out", "results"),
    "corpus": ("corpus", "rows.csv", "out"),
    "serve": ("serve", "--no-browser", "--port", "0"),
    "attribute": ("attribute", "rows.csv", "--model", "."),
    "answers": ("serve", "--no-browser", "--port", "0", "--language-model", "."),
}


@pytest.fixture
def told(tmp_path, monkeypatch, capsys):
    """What a command says before it gives up, in a folder with a table."""
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text("text\na fine film\n")

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2 or ended.value.code == 1
        assert {path.name for path in tmp_path.rglob("*")} <= {"rows.csv", "out"}
        return capsys.readouterr().err

    return call


@pytest.mark.parametrize("command", NAMED)
def test_a_revision_is_of_the_hub_alone(told, command):
    said = told(*NAMED[command], "--revision", "main")
    what = "the folder '.'" if "." in NAMED[command] else "the bundled model"
    assert said == f"slalom: {what} has only one version: leave out --revision\n"


def test_a_revision_is_of_one_model_that_runs_here(told):
    said = told("serve", "--model", "a/b", "--model", "a/c", "--revision", "v1")
    assert said == "slalom: --revision is for a single model: start a server for each\n"
    behind = ("--base-url", "http://127.0.0.1:1/v1", "--model", "m", "--labels", "a=0,b=1")
    said = told("explain", "a text", *behind, "--revision", "v1")
    assert "--revision is for models that run here, not at --base-url" in said
