"""slalom compare and slalom evaluate: what they print and leave behind, and how they end."""

import io
import json

import numpy as np
import pytest

import slalom
from chat_models import make_chat_model
from slalom.cli import main as cli
from slalom.evaluation.run import evaluate

TEXT = "a great film with an awful end"
WORDS = {"great": 3.0, "awful": -2.0}


def scores(texts: list[str]) -> np.ndarray:
    odds = np.array([0.2 + sum(WORDS.get(word, 0.0) for word in text.split()) for text in texts])
    return np.column_stack([np.zeros(len(texts)), odds])


@pytest.fixture
def run(capfd, monkeypatch):
    """The command in this process, a small function in the place of the bundled model."""
    monkeypatch.delenv("COLUMNS", raising=False)
    classifier = slalom.FunctionClassifier(scores, ["bad", "good"], gives="logits", name="small")
    monkeypatch.setattr("slalom.classifiers.load.load", lambda name, **_: classifier)

    def call(*arguments, piped=b""):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(piped)))
        with pytest.raises(SystemExit) as ended:
            cli.main(arguments)
        captured = capfd.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    return call


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "reviews.jsonl"
    records = [
        {"text": TEXT, "label": "good", "rationales": [[2, 7]]},
        {"text": "an awful film", "label": "bad"},
        {"text": ""},
    ]
    path.write_text("\n".join(map(json.dumps, records)))
    return path


def test_compare_shows_every_method_and_says_which_cannot(run):
    status, out, err = run("compare", TEXT, "--queries", "200", "--metrics", "UNI,deletion")
    assert status == 0
    assert "slalom  great" in out
    assert "lime  great" in out
    assert "(uniform" in out
    assert "attention-lrp: small gives no access to its inside" in err
    assert max(map(len, out.splitlines())) < 200  # no line is filled up with blanks


def test_absent_words_may_be_replaced(run, data, tmp_path):
    path = tmp_path / "all.jsonl"
    line = ("compare", TEXT, "--methods", "slalom", "--absent", "_", "--json", str(path))
    assert run(*line)[0] == 0
    classifier = slalom.FunctionClassifier(scores, ["bad", "good"], gives="logits")
    there = slalom.explain(classifier, TEXT, target="good", absent="_")
    found = json.loads(path.read_text())
    np.testing.assert_allclose(found["scores"]["removal"], there.scores["removal"])
    assert "replaced by '_'" in " ".join(found["quality"]["notes"])
    status, _, err = run("compare", TEXT, "--absent", "mask")
    assert status != 0
    assert "small has no mask token" in err
    line = ("evaluate", "--data", str(data), "--out", str(tmp_path / "out"), "--methods", "linear")
    assert run(*line, "--absent", "_")[0] == 0
    status, _, err = run(*line)  # rows of another table
    assert status != 0
    assert "absent" in err


def test_rows_of_other_weights_are_not_mixed_in(run, data, tmp_path, monkeypatch):
    line = ("evaluate", "--data", str(data), "--out", str(tmp_path / "out"), "--methods", "linear")
    assert run(*line)[0] == 0
    other = slalom.FunctionClassifier(
        lambda texts: -scores(texts), ["bad", "good"], gives="logits", name="small"
    )
    monkeypatch.setattr("slalom.classifiers.load.load", lambda name, **_: other)
    status, _, err = run(*line)
    assert (status, "holds an evaluation with another model" in err) == (2, True)


def test_compare_writes_explanations(run, tmp_path):
    path = tmp_path / "all.jsonl"
    status, _, _ = run("compare", TEXT, "--methods", "lime,linear", "--json", str(path))
    assert status == 0
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["method"] for line in lines] == ["lime", "linear"]
    assert lines[1]["metrics"] == {"UNI": pytest.approx(0, abs=1e-6), "REM": pytest.approx(0)}
    path.write_text(json.dumps(lines[0]))
    assert slalom.read(path).method == "lime"


def test_compare_writes_a_page_and_shows_every_column_in_a_pipe(run, tmp_path, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    path = tmp_path / "all.html"
    line = ("compare", "--methods", "lime,linear", "--metrics", "all", "--html", str(path))
    status, out, _ = run(*line, piped=TEXT.encode())
    assert status == 0
    assert "In a wider terminal:" not in out
    assert "which differ between methods" in out
    page = path.read_text()
    assert "<h2>lime</h2>" in page
    assert "subset error (uniform sizes)" in page
    assert "src=" not in page
    assert "<script" not in page


def test_compare_writes_to_standard_output_alone(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, err = run("compare", TEXT, "--methods", "lime,linear", "--json", "-")
    assert (status, err) == (0, "")
    assert [json.loads(line)["method"] for line in out.splitlines()] == ["lime", "linear"]
    assert list(tmp_path.iterdir()) == []


def test_compare_reads_a_file_without_its_last_line_end(run, tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes(b"a great film\r\nan awful end\r\n")
    line = ("compare", "--file", str(path), "--methods", "linear", "--json", "-")
    assert json.loads(run(*line)[1])["text"] == "a great film\r\nan awful end"


def test_methods_that_cannot_say_so_in_the_words_of_the_command_line(run):
    line = ("--methods", "exact-shapley,linear", "--queries", "30")
    status, _, err = run("compare", TEXT + " and a slow start", *line)
    assert status == 0
    assert "larger units (--units sentence)" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("compare",), "give one text"),
        (("compare", TEXT, "--methods", "lame"), "did you mean 'lime'"),
        (("compare", TEXT, "--metrics", "UNO"), "unknown metric"),
        (("compare", TEXT, "--methods", ""), "--methods '' lacks a name: give methods with commas"),
        (("compare", TEXT, "--metrics", "UNI,"), "--metrics 'UNI,' lacks a name"),
        (("compare", TEXT, "--queries", "many"), "'many' is not a valid integer"),
        (("compare", TEXT, "--target", "ugly"), "unknown target"),
        (("compare", TEXT, "--target", "all"), "give one label (bad, good) or its number"),
        (("compare", TEXT, "--json", "."), "it is a folder"),
        (("compare", "--file", "nowhere.txt"), "No such file"),
        (("compare", TEXT, "--methods", "attention-max"), "none of these methods"),
        (("evaluate", "--data", "nowhere.jsonl", "--out", "x"), "no such file"),
        (("evaluate", "--data", "x", "--out", "x", "--queries", "many"), "numbers with commas"),
    ],
)
def test_wrong_use_ends_with_a_sentence(run, arguments, message):
    status, _, err = run(*arguments)
    assert status == 2
    assert message in err


def test_evaluate_leaves_tables_and_names_what_it_left_out(run, data, tmp_path):
    out = tmp_path / "results"
    line = ("evaluate", "--data", str(data), "--out", str(out), "--queries", "60,auto")
    status, text, err = run(*line, "--methods", "slalom,leave-one-out")
    assert status == 0
    assert {p.name for p in out.iterdir()} == {
        "settings.json",
        "rows.jsonl",
        "report.md",
        "report.html",
        "table.parquet",
    }
    assert text == (out / "report.md").read_text()
    assert "| leave-one-out | auto |" in text
    assert "AU-ROC" in text
    assert "right about 2 of 2" in text
    assert "left out line 3: the text is empty" in err


def test_an_interrupt_keeps_rows_and_the_same_command_goes_on(run, data, tmp_path, monkeypatch):
    out = tmp_path / "results"
    line = ("evaluate", "--data", str(data), "--out", str(out), "--queries", "50")
    line += ("--methods", "linear,lime")

    def interrupted(*arguments, **options):
        yield next(evaluate(*arguments, **options))
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("slalom.evaluation.run.evaluate", interrupted)
        status, _, err = run(*line)
    assert status == 130
    assert "1 row is kept: repeat the command to continue" in err
    first = (out / "rows.jsonl").read_text()
    assert run(*line)[0] == 0
    rows = (out / "rows.jsonl").read_text()
    assert rows.startswith(first)
    assert len(rows.splitlines()) == 4
    status, _, _ = run(*line, "--methods", "linear,lime,random")  # more methods may come later
    assert status == 0
    assert len((out / "rows.jsonl").read_text().splitlines()) == 6
    assert run(*line, "--seed", "1")[0] == 2


def test_without_pyarrow_the_other_tables_are_there(run, data, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    out = tmp_path / "results"
    line = ("evaluate", "--data", str(data), "--out", str(out), "--queries", "50")
    status, _, err = run(*line, "--methods", "linear")
    assert status == 0
    assert "pip install 'slalom-xai[corpus]'" in err
    assert (out / "report.html").exists()
    assert not (out / "table.parquet").exists()


def test_the_table_of_evaluate_fits_where_a_width_is_known(run, data, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    line = ("evaluate", "--data", str(data), "--out", str(tmp_path / "r"), "--methods", "lime")
    status, out, _ = run(*line, "--queries", "20")
    assert status == 0
    table = out.partition("The whole table")[0]
    assert table.strip()
    assert all(len(row) <= 80 for row in table.splitlines())
    assert "In a wider terminal:" in table


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    made = tmp_path_factory.mktemp("model")
    make_chat_model(made, "Say 0 or 1: <{text}>")
    return str(made)


SOURCES = ("A great film.", "The music is slow.", "One bad joke.", "The start is fine.")


def test_compare_of_an_answer(run, writer, tmp_path):
    given = []
    for number, source in enumerate(SOURCES):
        (tmp_path / f"{number}.txt").write_text(source)
        given += ["--source", str(tmp_path / f"{number}.txt")]
    page, out = tmp_path / "all.html", tmp_path / "all.jsonl"
    status, told, err = run(
        "compare", "--language-model", writer, *given, "--question", "the film?",
        "--answer", "a great film", "--html", str(page), "--json", str(out),
        "--methods", "slalom-sources,context-cite,gradient-mean",
    )  # fmt: skip
    assert status == 0
    assert told.startswith("the answer “a great film”\nScores: nats of “the answer”")
    assert "gradient-mean: " in err
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["method"] for line in lines] == ["slalom-sources", "context-cite"]
    assert lines[0]["metrics"]["LDS"] > 0.99
    assert set(lines[1]["metrics"]) == {"LDS", "top-3 drop"}
    out.write_text(json.dumps(lines[1]))
    again = slalom.read(out)
    assert again.answer == "a great film"
    assert len(again.said.present) == again.quality.n_queries
    assert "A great film." in page.read_text()


def test_documents_are_cut_further(run, writer, tmp_path):
    data, files = tmp_path / "asked.jsonl", [tmp_path / "a.txt", tmp_path / "b.txt"]
    documents = [" ".join(SOURCES[:2]), " ".join(SOURCES[2:])]
    for file, text in zip(files, documents, strict=True):
        file.write_text(text)
    named = [part for file in files for part in ("--source", str(file))]
    asked = ("--answer", "a joke", "--methods", "leave-one-out", "--json", "-")
    status, told, _ = run("compare", "--language-model", writer, *named, "--by", "sentence", *asked)
    assert status == 0
    assert json.loads(told)["units"] == list(SOURCES)
    data.write_text(json.dumps({"sources": documents, "answer": "a joke", "by": "sentence"}))
    line = ("evaluate", "--language-model", writer, "--data", str(data), "--out", str(tmp_path))
    assert run(*line, "--methods", "leave-one-out", "--queries", "5")[0] == 0
    (row,) = [json.loads(one) for one in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert row["n_queries"] == 1 + len(SOURCES)


def test_evaluate_of_answers(run, writer, tmp_path):
    data, out = tmp_path / "asked.jsonl", tmp_path / "out"
    asked = {"sources": SOURCES, "question": "the film?", "answer": "a great film"}
    titled = [{"title": "music", "text": "slow"}, "a joke", "a film"]
    lines = [asked, {"sources": titled}, {"sources": ["alone"]}, {"text": "no sources"}]
    data.write_text("\n".join(map(json.dumps, lines)))
    line = ("evaluate", "--language-model", writer, "--data", str(data), "--out", str(out))
    status, told, err = run(*line, "--methods", "slalom-sources,context-cite")
    assert status == 0
    assert "3 answers of asked.jsonl" in told
    assert "left out line 4: has no 'sources'" in err
    assert "all methods: no answer for 1 of 3 texts, the first is line 3: there is one" in told
    rows = [json.loads(line) for line in (out / "rows.jsonl").read_text().splitlines()]
    assert [(r["document"], r["method"]) for r in rows if r["values"]] == [
        (number, method) for number in (1, 2) for method in ("slalom-sources", "context-cite")
    ]
    assert rows[0]["values"]["LDS"] > 0.99
    assert run(*line)[0] == 0
    again = [json.loads(line) for line in (out / "rows.jsonl").read_text().splitlines()]
    assert again[: len(rows)] == rows
    made = [(row["document"], row["method"]) for row in again[len(rows) :] if row["values"]]
    assert made == [(n, m) for n in (1, 2) for m in ("kernel-shap", "leave-one-out")]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (("compare", TEXT, "--source", "a.txt"), "--source is for answers: give --language-model"),
        (("compare", TEXT, "--language-model", "m"), "TEXT is for texts: leave out --language"),
        (("compare", "--language-model", "m"), "there are no sources"),
        (
            ("evaluate", "--language-model", "m", "--data", "a", "--out", "b", "--jobs", "2"),
            "--jobs is",
        ),
    ],
)
def test_options_of_texts_and_of_answers_are_kept_apart(run, line, says):
    status, out, err = run(*line)
    assert status != 0
    assert says in err
    assert out == ""
