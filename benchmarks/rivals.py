"""Shapley values of the newest peers and of ours, from the same answers of a classifier.

    make rivals                 their environment (Python 3.12 or newer, benchmarks/rivals.txt)
    python -m benchmarks.rivals --data FOLDER [--model FOLDER] [--documents 12]
        [--queries 250,500,1000] [--methods slalom,kernel-shap [--again]] [--orders 30]
        [--out FILE] [--texts FILE.csv [--longest 120]] [--units token] [--signed]
    python -m benchmarks.rivals --shown FILE …
    python -m benchmarks.rivals --page          the tables of docs/rivals.md, from the stored rows

Reviews have 20 to 120 words, as many of each length. The players are their words; a word that is
out is removed; a game's value is the log-odds of the last class, and 0 for the empty text where
the classifier cannot read it (GPT-2, BLOOM). A peer estimates in a process of
its own (rival_worker.py) and asks this one, which holds the classifier and counts what is asked.
With t, t' two independent halves of orders (each order and its reverse), (φ − t)·(φ − t') is an
unbiased squared error and t·t' an unbiased size; their ratio is the error of a review. Up to 14
players the truth is exact, from all subsets, and rows also have the rankings of shapiq's benchmark
(Kendall's τ; how many of the ten strongest are found). The truth and all rows are kept in FILE, and
what is there is not made again, but for the named methods and queries with --again.

R² is the faithfulness of SPEX and of shapiq's benchmark: on 500 random subsets, every word there
with probability ½, of what a method's own model of subsets says (additive where it only has Shapley
values). LDS is the rank correlation there. `--texts` takes the texts of a column `review` (the
protocol of SPEX: data/sentiment.csv of basics-lab/spectral-explain). `--signed` makes the game's
value P(positive) − P(negative): with `--units token` it is shapiq's game SentimentAnalysis with
mask_strategy="remove".
"""

import argparse
import csv
import json
import re
import subprocess
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

import slalom
from benchmarks.inside import (
    CachedClassifier,
    Delegating,
    Document,
    FloatArray,
    Queries,
    all_subsets,
    queries_from_masks,
    shapley_of_all,
    write_whole,
)
from benchmarks.reviews import by_length, opened

ROOT = Path(__file__).parents[1]
PYTHON = ROOT / ".venvs/rivals/bin/python"
WORKER = ROOT / "benchmarks/rival_worker.py"
START = "import runpy, sys; runpy.run_path(sys.argv[1])['main'](sys.argv[2])"
SHORTEST, LONGEST, N_TEST = 20, 120, 500
EXACT = 14  # players up to which all subsets are asked
OURS = "slalom,kernel-shap"
PEERS = "shapiq LeverageSHAP,shapiq OddSHAP,shapiq RegressionMSR,shapiq ProxySHAP"
PAGE, STORED = ROOT / "docs/rivals.md", ROOT / "experiments/results/rivals"
MARK = "<!-- tables: python -m benchmarks.rivals --page -->"
Row = dict[str, Any]


class Timed(Delegating):
    """Counts the processor seconds of answers, so that those of methods can be told apart."""

    def __init__(self, classifier: CachedClassifier) -> None:
        self.classifier, self.spent = classifier, 0.0

    def logits(self, asked: Sequence[tuple[Document, Queries]]) -> list[FloatArray]:
        start = process_time()
        answers = self.classifier.logits(asked)
        self.spent += process_time() - start
        return answers


class SilentOnNothing(Delegating):
    """A classifier that cannot read the empty text: a game needs its value, which is set to 0."""

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def split(self, text: Any, units: Any = None, *, too_long: str = "error") -> Document:
        document = self.classifier.split(text, units, too_long=too_long)
        return replace(document, has_empty_query=True)

    def logits(self, asked: Sequence[tuple[Document, Queries]]) -> list[FloatArray]:
        shown = [(queries < document.n_units).any(axis=1) for document, queries in asked]
        said = [np.zeros((len(rows), len(self.labels))) for rows in shown]
        pairs = [(d, q[rows]) for (d, q), rows in zip(asked, shown, strict=True) if rows.any()]
        answers = iter(self.classifier.logits(pairs))
        for rows, each in zip(shown, said, strict=True):
            if rows.any():
                each[rows] = next(answers)
        return said


class Signed(Delegating):
    """A classifier of two classes whose "log-odds" are P(positive) − P(negative)."""

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def logits(self, asked: Sequence[tuple[Document, Queries]]) -> list[FloatArray]:
        said = [np.tanh((one[:, -1] - one[:, 0]) / 2) for one in self.classifier.logits(asked)]
        return [np.column_stack([np.zeros(len(one)), one]) for one in said]


@dataclass
class Game:
    """A text whose words are there or not, as a classifier sees it; counts what is asked."""

    classifier: Timed
    text: str
    document: Document
    units: str | None = None
    n_asked: int = 0

    def values(self, masks: FloatArray) -> FloatArray:
        self.n_asked += len(masks)
        queries = queries_from_masks(np.asarray(masks, dtype=bool))
        logits = self.classifier.logits([(self.document, queries)])[0]
        return np.asarray(logits[:, -1] - logits[:, 0], dtype=np.float64)

    def half_of_truth(self, n_orders: int, rng: np.random.Generator) -> FloatArray:
        """What each word adds when it joins, the mean over random orders and their reverses."""
        n_units = self.document.n_units
        total = np.zeros(n_units)
        for _ in range(max(1, n_orders // 2)):
            order = rng.permutation(n_units)
            for joining in (order, order[::-1]):
                rank = np.argsort(joining)
                total[joining] += np.diff(self.values(rank < np.arange(n_units + 1)[:, None]))
        return total / (2 * max(1, n_orders // 2))

    def exact_truth(self) -> FloatArray:
        every = all_subsets(self.document.n_units)
        return shapley_of_all(every, self.values(every))


@dataclass(frozen=True)
class Estimate:
    values: FloatArray  # (n_units,)
    predicted: FloatArray | None  # of the test rows
    seconds: float  # of the method's own work


@dataclass(frozen=True)
class Rivals:
    """The process of the peers, at the other end of a line."""

    line: Connection

    def rankings(self, truth: FloatArray, values: FloatArray) -> dict[str, float]:
        """How well values rank, as shapiq's benchmark has it."""
        self.line.send(("rankings", truth, values))
        told: dict[str, float] = self.line.recv()
        return {name: value for name, value in told.items() if np.isfinite(value)}

    def estimate(self, name: str, game: Game, n_queries: int, test: FloatArray) -> Estimate | str:
        self.line.send((name, game.document.n_units, n_queries, test))
        while (message := self.line.recv())[0] == "ask":
            self.line.send(game.values(message[1]))
        return str(message[1]) if message[0] == "failed" else Estimate(*message[1:])


@contextmanager
def rivals(python: Path = PYTHON) -> Iterator[Rivals]:
    if not python.exists():
        raise SystemExit(f"{python} is not there: make it with  make rivals")
    with tempfile.TemporaryDirectory() as folder:
        address = str(Path(folder) / "line")
        with Listener(address) as listener:
            # -P: numba imports a package `coverage`, and would find the benchmark of that name
            command = [str(python), "-P", "-c", START, str(WORKER), address]
            with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
                with listener.accept() as line:
                    yield Rivals(line)
                    line.send(None)
                process.wait(timeout=30)


def ours(name: str, game: Game, n_queries: int, test: FloatArray) -> Estimate:
    """One of our methods, by its public name."""
    asking, start, before = game.classifier, process_time(), game.classifier.spent
    target = asking.labels[-1]
    found = slalom.explain(
        asking,
        game.text,
        name,
        target=target,
        n_queries=n_queries,
        units=game.units,
        progress=False,
    )
    seconds = process_time() - start - (asking.spent - before)
    values = found.scores["shapley" if "shapley" in found.scores else "score"]
    game.n_asked += found.quality.n_queries
    return Estimate(np.asarray(values), np.asarray(found.predict(test)), seconds)


@dataclass
class Store:
    """Truth and rows of one classifier, in a file that is written after every review."""

    path: Path | None
    n_orders: int
    truth: dict[str, list[list[float]]]  # by the number of the review: both halves
    rows: list[Row]

    @classmethod
    def opened(
        cls, path: Path | None, n_orders: int, again: Collection[tuple[str, int]]
    ) -> "Store":
        if path is None or not path.exists():
            return cls(path, n_orders, {}, [])
        kept = json.loads(path.read_text(encoding="utf-8"))
        rows = [row for row in kept["rows"] if (row["method"], row["queries"]) not in again]
        truth = kept["truth"] if kept["orders"] == n_orders else {}
        if not truth:
            raise SystemExit(f"{path} was made with --orders {kept['orders']}: give that, or --out")
        return cls(path, n_orders, truth, rows)

    def has(self, at: int, name: str, n_queries: int) -> bool:
        key = (at, name, n_queries)
        return any((row["document"], row["method"], row["queries"]) == key for row in self.rows)

    def keep(self) -> None:
        if self.path is not None:
            rows = ",\n".join(json.dumps(row) for row in self.rows)
            head = f'{{"orders": {self.n_orders}, "truth": {json.dumps(self.truth)}'
            self.path.write_text(f'{head}, "rows": [\n{rows}\n]}}\n', encoding="utf-8")

    def halves(self, game: Game, at: int) -> list[FloatArray]:
        """Both halves of the truth, asked if they are not there yet."""
        if str(at) not in self.truth:
            if game.document.n_units <= EXACT:
                halves = [game.exact_truth()] * 2
            else:
                rngs = np.random.default_rng(at).spawn(2)
                halves = [game.half_of_truth(self.n_orders, rng) for rng in rngs]
            self.truth[str(at)] = [half.round(5).tolist() for half in halves]
        return [np.array(half) for half in self.truth[str(at)]]


@dataclass(frozen=True)
class Contest:
    """One review: its game, its truth, and answers to test models of subsets on."""

    game: Game
    halves: list[FloatArray]
    test: FloatArray  # (N_TEST, n_units)
    answers: FloatArray

    def row(self, name: str, n_queries: int, peers: Rivals) -> Row:
        before = self.game.n_asked
        if name in slalom.METHODS:
            found: Estimate | str = ours(name, self.game, n_queries, self.test)
        else:
            found = peers.estimate(name, self.game, n_queries, self.test)
        row: Row = {"method": name, "queries": n_queries, "units": self.test.shape[1]}
        if isinstance(found, str):
            return row | {"problem": found}
        one, other = self.halves
        error = float((found.values - one) @ (found.values - other))
        row |= {"asked": self.game.n_asked - before, "seconds": round(found.seconds, 3)}
        row |= {"error": round(error, 6), "size": round(float(one @ other), 6)}
        if found.predicted is not None:
            left = ((found.predicted - self.answers) ** 2).mean() / self.answers.var()
            row["r2"] = round(1 - float(left), 5)
            row["lds"] = round(spearman(found.predicted, self.answers), 5)
        if self.test.shape[1] <= EXACT:
            row |= peers.rankings(one, found.values)
        return row


def contest(game: Game, store: Store, at: int) -> Contest:
    halves = store.halves(game, at)
    test = np.random.default_rng((at, 1)).random((N_TEST, game.document.n_units)) < 0.5
    return Contest(game, halves, test.astype(float), game.values(test))


def spearman(one: FloatArray, other: FloatArray) -> float:
    ranks = [np.argsort(np.argsort(numbers)) for numbers in (one, other)]
    return float(np.corrcoef(*ranks)[0, 1])


def of_file(path: Path, n_documents: int, longest: int) -> list[str]:
    """Texts of at most so many words spread evenly over a file, quotation marks off."""
    with path.open(encoding="utf-8", newline="") as lines:
        texts = [row["review"].strip('"') for row in csv.DictReader(lines)]
    texts = [text for text in texts if len(text.split()) <= longest]
    return [texts[at] for at in np.linspace(0, len(texts) - 1, n_documents).astype(int)]


COLUMNS = {  # of a row → its heading
    "r2": "R²",
    "lds": "LDS",
    "kendall_tau": "τ",
    "precision_at_k": "top ten",
    "seconds": "seconds",
}
Rows = Sequence[Row]


def table(rows: Rows, first: str = "slalom") -> str:
    """Per number of queries and method: errors, and each against those of the first, paired."""
    shown = {key: name for key, name in COLUMNS.items() if any(key in row for row in rows)}
    names = ["queries", "method", "error", "mean of reviews", "above slalom's by", *shown.values()]
    lines = [_line(names), "|" + "---|" * len(names)]
    for budget in sorted({row["queries"] for row in rows}):
        by_method = _by_method(rows, budget)
        for name in sorted(by_method, key=lambda name: _pooled(by_method[name])):
            own = by_method[name]
            ratios = np.array([row["error"] / row["size"] for row in own.values()])
            cells = [str(budget), name, _short(_pooled(own)), _with_error(ratios, "")]
            cells.append(_with_error(above(own, by_method.get(first, {})), "+"))
            cells += [_mean(own, key, by_method) for key in shown]
            lines.append(_line(cells))
        failed = [row for row in rows if row["queries"] == budget and "problem" in row]
        for name, problem in {row["method"]: row["problem"] for row in failed}.items():
            lines.append(_line([str(budget), name, f"fails: {problem}"] + [""] * (len(names) - 3)))
    return "\n".join(lines)


def _mean(rows: dict[int, Row], key: str, by_method: dict[str, dict[int, Row]]) -> str:
    """Of the reviews that any method was measured on; a dash where some of these are missing."""
    everywhere = {at for each in by_method.values() for at, row in each.items() if key in row}
    told = [row[key] for row in rows.values() if key in row]
    return f"{np.nanmean(told):.3f}" if told and len(told) == len(everywhere) else "–"


def summary(files: Sequence[Path], budgets: Sequence[int] = (500, 1000)) -> str:
    """Per file the error of slalom and of the strongest peer, and their paired difference."""
    head = [f"{n}: slalom | strongest peer | its error | above slalom's by" for n in budgets]
    lines = [_line(["", "reviews", *head]), "|" + "---|" * (2 + 4 * len(budgets))]
    for path in files:
        rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
        cells = [path.stem, str(len({row["document"] for row in rows}))]
        for budget in budgets:
            by_method = _by_method(rows, budget)
            own = by_method.pop("slalom", {})
            peers = {name: each for name, each in by_method.items() if name not in slalom.METHODS}
            if not own or not peers:
                cells += ["–"] * 4
                continue
            best = min(peers, key=lambda name: _pooled(peers[name]))
            cells += [_short(_pooled(own)), best, _short(_pooled(peers[best]))]
            cells.append(_with_error(above(peers[best], own), "+"))
        lines.append(_line(cells))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _by_method(rows: Rows, budget: int) -> dict[str, dict[int, Row]]:
    """Method → review → its row, where it did not fail."""
    found: dict[str, dict[int, Row]] = {}
    for row in rows:
        if row["queries"] == budget and "problem" not in row:
            found.setdefault(row["method"], {})[row["document"]] = row
    return found


def _pooled(rows: dict[int, Row]) -> float:
    return float(sum(r["error"] for r in rows.values()) / sum(r["size"] for r in rows.values()))


def above(rows: dict[int, Row], base: dict[int, Row]) -> FloatArray:
    """Per review by how much the error is above that of the base."""
    both = [at for at in rows if at in base]
    return np.array([(rows[at]["error"] - base[at]["error"]) / rows[at]["size"] for at in both])


def _with_error(numbers: FloatArray, sign: str) -> str:
    """Their mean with its standard error; a dash where there is nothing to say."""
    if not numbers.any():
        return "–"
    return re.sub(r"\b0\.", ".", f"{numbers.mean():{sign}.4f} ± {_error(numbers):.4f}")


def _error(numbers: FloatArray) -> float:
    return float(numbers.std(ddof=1) / np.sqrt(len(numbers))) if len(numbers) > 1 else float("nan")


def _short(number: float) -> str:
    return f"{number:.4f}".removeprefix("0")


def main() -> None:
    given = _options().parse_args()
    if given.page:
        write_whole(PAGE, page(PAGE.read_text(encoding="utf-8")))
    elif given.shown:
        print("\n\n".join(map(section, given.shown)))
    else:
        measure(given)


def page(text: str) -> str:
    """The page of results with the tables of the rows that are stored."""
    files = sorted(STORED.glob("*.json"))
    before = text[: text.index(MARK)] + MARK
    files_of_others = sorted((STORED / "protocols").glob("*.json"))
    tables = [*map(section, files), *map(section, files_of_others)]
    return "\n\n".join([before, summary(files), *tables]) + "\n"


def section(path: Path) -> str:
    return f"## {path.stem}\n\n{table(json.loads(path.read_text(encoding='utf-8'))['rows'])}"


def measure(given: argparse.Namespace) -> None:
    classifier = opened(given.model, given.device)
    if not classifier.split("film").has_empty_query:
        classifier = SilentOnNothing(classifier)
    classifier = Signed(classifier) if given.signed else classifier
    if given.texts:
        texts = of_file(given.texts, given.documents, given.longest)
    else:
        texts = by_length(classifier, given.data, given.documents, (SHORTEST, given.longest))
    methods = given.methods.split(",")
    budgets = [int(budget) for budget in given.queries.split(",")]
    again = set(product(methods, budgets)) if given.again else set()
    store = Store.opened(given.out, given.orders, again)
    with rivals(given.python) as peers:
        for at, text in enumerate(texts):
            pairs = [(m, b) for m in methods for b in budgets if not store.has(at, m, b)]
            if not pairs:
                continue
            asking = Timed(CachedClassifier(classifier))
            game = Game(asking, text, asking.split(text, given.units), given.units)
            held = contest(game, store, at)
            store.rows += [{"document": at, **held.row(name, n, peers)} for name, n in pairs]
            store.keep()
            print(f"{at + 1} of {len(texts)} reviews", flush=True)
    print(table(store.rows))


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--data", type=Path)
    options.add_argument("--model")
    options.add_argument("--device")
    options.add_argument("--documents", type=int, default=12)
    options.add_argument("--queries", default="250,500,1000")
    options.add_argument("--methods", default=f"{OURS},{PEERS}")
    options.add_argument("--again", action="store_true", help="also what is there already")
    options.add_argument("--orders", type=int, default=30, help="in each half of the truth")
    options.add_argument("--python", type=Path, default=PYTHON, help="of the peers' environment")
    options.add_argument("--out", type=Path, help="keep truth and rows as JSON")
    options.add_argument("--texts", type=Path, help="a CSV file with a column review")
    options.add_argument("--longest", type=int, default=LONGEST, help="words")
    options.add_argument("--units", help="token; default: words")
    options.add_argument("--signed", action="store_true", help="P(positive) − P(negative)")
    options.add_argument("--page", action="store_true", help="write the tables of docs/rivals.md")
    options.add_argument("--shown", type=Path, nargs="*", default=[], help="rows to read again")
    return options


if __name__ == "__main__":
    main()
