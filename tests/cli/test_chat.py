"""`slalom explain` with chat models, and dry runs of every kind of classifier."""

import re

import pytest
from click.testing import CliRunner

from chat_servers import PROMPT, ChatDouble
from slalom.cli import main as cli

TEXT = "A slow start, but a wonderful film."


@pytest.fixture
def double():
    with ChatDouble() as server:
        yield server


def run(*arguments):
    return CliRunner().invoke(cli.commands, ["explain", TEXT, "--queries", "30", *arguments])


def chat(double, *arguments):
    model = ["--model", "double", "--base-url", double.url, "--labels", "neg=0,pos=1"]
    return run(*model, "--prompt", PROMPT, *arguments)


def test_a_chat_model_on_the_command_line(double, tmp_path):
    cache = ["--cache", str(tmp_path / "cache.db")]
    before = chat(double, "--dry-run", *cache)
    assert before.exit_code == 0, before.output
    (n,) = re.findall(r"^(\d+) queries: at most \1 requests to double, about ", before.output)
    assert 25 <= int(n) <= 30
    assert double.requests == []
    shown = chat(double, *cache)
    assert shown.exit_code == 0, shown.output
    assert "wonderful" in shown.output
    assert abs(len(double.requests) - int(n)) <= 3  # a removal may be part of the design
    after = chat(double, "--dry-run", *cache)
    (left,) = re.findall(r"at most (\d+) requests?", after.output)
    assert int(left) <= 7  # which single removals are asked is known only after the fit


def test_samples_multiply_the_cost(double):
    shown = chat(double, "--dry-run", "--samples", "8")
    ((n, requests),) = re.findall(r"^(\d+) queries: at most (\d+) requests", shown.output)
    assert int(requests) == 8 * int(n)


def test_a_dry_run_of_the_bundled_model():
    shown = run("--dry-run")
    assert shown.exit_code == 0, shown.output
    assert 25 <= int(shown.output.split()[0]) <= 30
    assert shown.output.endswith(" tokens for the bundled sentiment model\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--base-url", "http://127.0.0.1:1/v1"], "--base-url needs --model and --labels"),
        (["--cache", "x.db"], "--samples and --cache are for chat models"),
        (["--labels", "pos=1,pos=0"], "is not of the form A=X,B=Y"),
    ],
)
def test_wrong_use(arguments, message):
    result = run(*arguments)
    assert result.exit_code != 0
    assert message in result.output
