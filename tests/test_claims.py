"""Numbers that pages state of the program are those of the program today.

Each sentence is made from the code's own constants and must stand on its page as it is. What
pages say of measurements comes from commands that they name; what they say of behaviour has
tests of its own.
"""

import inspect
import json
import re
import shlex
from pathlib import Path

import click
import numpy as np
import pytest

from slalom.classifiers.chat import classifier as chat
from slalom.classifiers.huggingface import batching
from slalom.cli.main import commands
from slalom.corpus import explain as corpus_explain
from slalom.corpus import work
from slalom.document import FloatArray
from slalom.errors import grouped
from slalom.explainers import phrases, splitting, surrogate, vocabulary_fit
from slalom.explanation import FAIR_TRUST, HIGH_TRUST
from slalom.metrics import faithfulness, interactions, shapley
from slalom.surrogates import gp
from slalom.surrogates.slalom import fit
from slalom.tables import SCHEMA_VERSION, document_schema
from slalom.views import reading
from slalom.web import jobs, models, server
from slalom.web.limits import Limits

ROOT = Path(__file__).parent.parent
IN_WORDS = {2: "two", 3: "three", 4: "four", 5: "five", 7: "seven", 8: "eight"} | {
    20: "twenty",
    100: "hundred",
}
FACTS, LIMITS = surrogate.FollowUpPlan(), Limits()


def default(function: object, name: str) -> object:
    return inspect.signature(function).parameters[name].default  # type: ignore[arg-type]


def thousands(number: int) -> str:
    return grouped(number).replace("\u202f", " ")


CHAT = chat.ChatClassifier.__init__
FIT = vocabulary_fit.explain_vocabulary
SHARES = ", ".join(f"{100 * share:.0f}" for share in faithfulness.ERASER_SHARES)
CLAIMS = [
    (
        "docs/trust.md",
        f"a {IN_WORDS[FACTS.max_removals]}, or {FACTS.min_removals} where queries are few",
    ),
    ("docs/trust.md", f"*high* from {HIGH_TRUST}, *fair* from {FAIR_TRUST}, else *low*"),
    ("docs/trust.md", f"a fit to {IN_WORDS[fit.N_FOLDS - 1]} quarters of them"),
    (
        "docs/trust.md",
        f"to {IN_WORDS[fit.N_FOLDS_OF_FEW - 1]} eighths where there are at most {fit.FEW}",
    ),
    ("docs/reading.md", f"*high* from {HIGH_TRUST}, *fair* from {FAIR_TRUST}, else *low*"),
    ("docs/reading.md", f"measured for the strongest {IN_WORDS[FACTS.max_removals]} words"),
    ("docs/interactions.md", f"`n_queries=` bounds the search ({interactions.N_QUERIES} by"),
    ("docs/methods/slalom.md", f"up to {thousands(gp.MAX_ROWS)} answers"),
    ("docs/methods/slalom.md", f"{gp.N_STEPS} steps of L-BFGS on at most {gp.N_SEARCHED} rows"),
    ("docs/methods/slalom.md", f"means over {gp.N_ORDERS} orders"),
    (
        "docs/vocabulary.md",
        f"`n_queries` ({default(FIT, 'n_queries')})",
    ),
    ("docs/vocabulary.md", f"`least_documents` ({default(FIT, 'least_documents')}) documents"),
    ("docs/vocabulary.md", f"at most {vocabulary_fit.MAX_ENTRIES} tokens get one of their own"),
    ("docs/classifiers.md", f"A text of more than {splitting.MAX_UNITS} words is explained by"),
    ("docs/chat.md", f"is given up after {chat.ENOUGH_TO_JUDGE} answers"),
    ("docs/chat.md", f"`concurrency` requests run at once ({default(CHAT, 'concurrency')})"),
    ("docs/chat.md", f"up to `retries` times ({default(CHAT, 'retries')})"),
    ("docs/chat.md", f"estimated at {IN_WORDS[chat.BYTES_PER_TOKEN]} bytes per token"),
    ("docs/corpus.md", f"from {IN_WORDS[corpus_explain.SAMPLE]} documents rehearsed"),
    ("docs/corpus.md", f"| `schema_version` | {SCHEMA_VERSION} |"),
    ("docs/evaluate.md", f"without the top {SHARES} % of the units"),
    ("docs/evaluate.md", f"all subsets of up to {shapley.EXACT_UP_TO} units"),
    ("docs/evaluate.md", f"else {shapley.N_ORDERS} random orders in which units are added"),
    ("docs/page.md", f"`http://127.0.0.1:{server.PORT}/`"),
    ("docs/page.md", f"appears after {jobs.ROUGH} queries"),
    ("docs/page.md", f"the server stops at the next {models.CHUNK} queries"),
    ("docs/page.md", f"takes up to {interactions.N_QUERIES} more queries"),
    ("docs/page.md", f"take about {IN_WORDS[int(LIMITS.soon)]} seconds"),
    ("docs/page.md", f"| {LIMITS.body // 10**6} MB, {LIMITS.file // 10**6} MB |"),
    (
        "docs/page.md",
        f"| {thousands(LIMITS.text)} characters, {thousands(LIMITS.units)} units |",
    ),
    ("docs/page.md", f"| queries per explanation | {thousands(LIMITS.queries)} |"),
    ("docs/page.md", f"| {LIMITS.running} running, {LIMITS.waiting} waiting;"),
    ("docs/page.md", f"| {LIMITS.seconds / 60:.0f} minutes |"),
    ("docs/page.md", f"| the newest {LIMITS.kept} |"),
    ("docs/page.md", f"| {thousands(LIMITS.entries)}, {thousands(LIMITS.file_entries)} |"),
    ("docs/page.md", f"| {LIMITS.connections}; one that brings no whole request in"),
    ("docs/page.md", f"in {LIMITS.slow:.0f} seconds is ended |"),
]


@pytest.mark.parametrize(("page", "claim"), CLAIMS)
def test_a_number_on_a_page_is_that_of_the_code(page: str, claim: str) -> None:
    assert claim in (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("constant", "as_told"),
    [
        (batching.OVERLAP, 1 / 4),  # docs/classifiers.md: windows overlap by a quarter or more
        (
            phrases.ByPhrases.min_share,
            1 / 2,
        ),  # docs/interactions.md: at least half of what they add together
        (phrases.ByPhrases.min_effect, 1 / 4),  # and a quarter of the largest effect of any word
        (1 / vocabulary_fit.HELD_OUT, 1 / 5),  # docs/vocabulary.md: a fifth of the documents
        (work.SECONDS_PER_PIECE, 10.0),  # docs/corpus.md: pieces of some ten seconds' work
    ],
)
def test_a_share_told_in_words_is_that_of_the_code(constant: float, as_told: float) -> None:
    assert constant == as_told


def test_every_column_of_a_corpus_is_on_its_page() -> None:
    rows = re.findall(r"^\| (`.*?`) \|", (ROOT / "docs/corpus.md").read_text(), re.MULTILINE)
    told = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert set(document_schema().names) <= told


def test_lines_on_bars_are_ninety_per_cent_intervals() -> None:
    from scipy.stats import norm

    assert 2 * norm.cdf(reading.SURE) - 1 == pytest.approx(0.9, abs=1e-3)


def shell_lines() -> list[tuple[str, str]]:
    """Every `slalom …` on a page, in a block or in a line, with the page's name."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/methods").glob("*")]
    found = []
    for page in sorted(pages):
        told = re.sub(r"\\\n\s*", "", page.read_text(encoding="utf-8"))
        blocks = "\n".join(told.split("```")[1::2])
        lines = re.findall(r"^(?:.* \| )?(slalom [a-z]+ [^|#`\n]*)", blocks, re.MULTILINE)
        lines += re.findall(r"`(slalom [a-z][^`|\n]*)`", told)
        found += [(page.name, line.strip()) for line in dict.fromkeys(lines)]
    return found


SHELL_LINES = shell_lines()


def test_pages_show_commands() -> None:
    assert len(SHELL_LINES) > 30


@pytest.mark.parametrize(("page", "line"), SHELL_LINES)
def test_a_command_on_a_page_is_one_of_the_program(page: str, line: str) -> None:
    words = shlex.split(line.replace("$'", "'").replace("’", ""))[1:]
    command: click.Command = commands
    while isinstance(command, click.Group) and words and words[0] in command.commands:
        command = command.commands[words.pop(0)]
    if isinstance(command, click.Group) and command is not commands:
        command = command.commands["explain"]  # `slalom corpus INPUT OUTPUT`
    assert command is not commands, f"{page}: there is no {line}"
    known = {name for parameter in command.params for name in parameter.opts} | {"--help"}
    assert {word for word in words if word.startswith("--")} <= known, f"{page}: {line}"


PROJECT = ("benchmarks", "experiments", "release", "training")


def project_lines() -> list[tuple[str, str, str]]:
    """Every `python -m` of this project on a page that is not history: page, module, the rest."""
    folders = (ROOT, *(ROOT / "docs" / name for name in ("", "methods", "theory")))
    pages = [page for folder in folders for page in folder.glob("*.md")]
    line = re.compile(rf"python -m ((?:{'|'.join(PROJECT)})[.\w]*)([^`\n]*)")
    found = []
    for page in sorted(pages):
        told = re.sub(r"\\\n\s*", "", page.read_text(encoding="utf-8"))
        found += [(page.name, module, rest) for module, rest in line.findall(told)]
    return list(dict.fromkeys(found))


@pytest.mark.parametrize(("page", "module", "rest"), project_lines())
def test_a_command_of_the_project_exists(page: str, module: str, rest: str) -> None:
    place = ROOT / module.replace(".", "/")
    files = [*place.glob("*.py"), place.with_suffix(".py"), ROOT / "benchmarks/reviews.py"]
    files = [file for file in files if file.exists()]
    assert place.with_suffix(".py") in files or place / "__main__.py" in files, f"{page}: {module}"
    source = "".join(file.read_text(encoding="utf-8") for file in files)
    for option in re.findall(r"--[a-z][a-z-]*", rest):
        assert re.search(rf'"{option}["/]', source), f"{page}: {module} has no {option}"


MODELS = {
    "bundled classifier": "bundled",
    "MiniLM, 6 layers": "minilm-6",
    "BERT, 2 layers": "bert-2",
    "DistilBERT, 2": "distilbert-2",
    "GPT-2, 2": "gpt2-2",
    "BLOOM, 2": "bloom-2",
    "Mamba, 1": "mamba-1",
    "BERT, 4, held out": "bert-4 (kept back)",
    "BLOOM, 1, held out": "bloom-1 (kept back)",
}
COMPARED = {
    "**slalom**, 500": ("slalom", "500"),
    "boosted trees, 500": ("boosted", "500"),
    "additive steps (gam), 5000": ("gam", "5000"),
    "linear, 5000": ("linear", "5000"),
    "LIME, 5000": ("lime", "5000"),
    "KernelSHAP, 5000": ("kernel-shap", "5000"),
}


def compared(section: int) -> list[tuple[str, str, str]]:
    """(classifier, method, cell) of the table in a section of docs/comparison.md."""
    told = (ROOT / "docs/comparison.md").read_text(encoding="utf-8").split("\n## ")[section]
    lines = [line for line in told.splitlines() if line.startswith("|")]
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [
        (row[0], name, cell) for row in rows for name, cell in zip(head[1:], row[1:], strict=True)
    ]


def test_the_comparison_holds_every_classifier_and_method() -> None:
    assert {(model, method) for model, method, _ in compared(2)} == {
        (model, method) for model in MODELS for method in COMPARED
    }


@pytest.mark.parametrize("model", MODELS)
def test_the_comparison_is_what_was_measured(model: str) -> None:
    """Rows of `python -m experiments fidelity --scale paper`; the best of a row is bold."""
    table = json.loads((ROOT / "experiments/results/fidelity.json").read_text())["table"]
    measured = {
        (row[1], row[2]): [cell["value"] for cell in row[3:5]]
        for row in table["rows"]
        if row[0] == MODELS[model]
    }
    cells = {method: cell for name, method, cell in compared(2) if name == model}
    best = [min(measured[COMPARED[method]][n] for method in cells) for n in (0, 1)]
    for method, cell in cells.items():
        for n, told in enumerate(cell.split(" / ")):
            value = measured[COMPARED[method]][n]
            number = float(told.strip("*"))
            digits = len(told.strip("*").split(".")[1])
            assert abs(number - value) <= 0.5001 * 10.0**-digits, f"{method}: {told} for {value}"
            as_good = round(value, digits) <= round(best[n], digits)
            assert told.startswith("**") == as_good, f"{method}: is {told} the best?"


def test_the_comparison_at_equal_queries_is_what_was_measured() -> None:
    """Rows of `python -m benchmarks.subset_error`; means over the reviews."""
    kept = json.loads((ROOT / "experiments/results/subset_error.json").read_text())
    names = {"**slalom**": "slalom", "boosted trees": "boosted", "additive steps (gam)": "gam"}
    cells = compared(1)
    assert len(cells) == 7 * 4
    for model, method, cell in cells:
        rows = kept[MODELS[model].replace("minilm-6", "minilm6")][names.get(method, method)]
        for told, key in zip(cell.replace("*", "").split(" / "), "UW", strict=True):
            assert float(told) == pytest.approx(sum(row[key] for row in rows) / len(rows), abs=5e-4)


def test_the_first_page_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 1200


def test_the_chart_is_drawn_from_the_rows() -> None:
    from benchmarks.comparison_chart import CHART, METHODS, NAMES, ROWS, chart

    kept = drawn(CHART.read_text(encoding="utf-8"))
    now = drawn(chart(json.loads(ROWS.read_text(encoding="utf-8"))).decode())
    assert kept[:2] == now[:2], "run  python -m benchmarks.comparison_chart"
    assert len(kept[1]) == 2 * len(METHODS) * (len(NAMES) + 1)  # bars and points, in the legend too
    np.testing.assert_allclose(kept[2], now[2], atol=0.05)  # points, of which an error of 1 is 425
    np.testing.assert_allclose(kept[3], now[3], atol=1.0)  # below a text, whose font may differ


def drawn(chart: str) -> tuple[list[str], list[str], FloatArray, FloatArray]:
    """What is written; colours, x and y of bars and points: what versions of matplotlib share."""
    bar = r'd="M (\S+) (\S+) \nL \S+ \S+ \n"[^>]* stroke: (#\w+); stroke-width: 1\.5"'
    point = r'x="(\S+)" y="(\S+)" style="fill: (#\w+)'
    x, y, colours = zip(*(re.findall(bar, chart) + re.findall(point, chart)), strict=True)
    return re.findall("<!-- (.*) -->", chart), [*colours], np.array(x, float), np.array(y, float)


def test_what_the_first_page_says_of_the_comparison_is_in_the_rows() -> None:
    """SLALOM has the lowest error on each classifier, whatever sizes are drawn."""
    cells = {(model, method): cell.strip("*") for model, method, cell in compared(1)}
    for model in {model for model, _ in cells}:
        for part in (0, 1):
            errors = {
                method: float(cell.split("/")[part].strip(" *"))
                for (name, method), cell in cells.items()
                if name == model
            }
            assert min(errors, key=lambda method: errors[method]) == "**slalom**"
