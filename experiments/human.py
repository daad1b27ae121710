"""Do explanations point where people point? Yelp-HAT (Sen et al. 2020), every method.

Reviews whose decisive words 2–4 annotators marked; "consensus" words were marked by all of
them. Words are mapped to units by their characters, scores count by their size, whatever their
sign; importances as they are. The classifier is a film critic reading about restaurants: what
is compared is methods on one classifier, not the classifier with people.
"""

import csv
import html
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import click

from experiments.many import LISTED, Model, collect
from slalom.evaluation.items import Item
from slalom.evaluation.rows import markdown
from slalom.evaluation.run import Plan
from slalom.explainers.methods import method_named
from training import data

PARTS = ("hat_50_words", "hat_100_words", "hat_200_words", "hat_mixed")
WORD = re.compile(r"<span(?P<marks>[^>]*)>(?P<word>.*?)</span>", re.DOTALL)
METHODS = "slalom,slalom-local,slalom-fast,lime,kernel-shap,linear,leave-one-out,random"
AGREEMENT = ("AU-ROC", "AUPRC", "token F1", "AU-ROC importance")


def marked_reviews(folder: Path | None, part: str) -> list[Item]:
    """Reviews with their consensus words as spans; those without any are left out."""
    path = data.stored(folder, f"yelp_hat/{part}.csv")
    if path is None:
        raise FileNotFoundError(
            f"found no yelp_hat/{part}.csv: give a folder that holds it with --data"
        )
    with data.opened(path) as lines:
        rows = list(csv.DictReader(lines))
    spans: dict[str, list[set[tuple[int, int]]]] = {}
    labels: dict[str, int] = {}
    for row in rows:
        text = row["Input.text"]
        labels[text] = int(row["Input.label"])
        spans.setdefault(text, []).append(set(_marked(text, row["Answer.html_output"])))
    items = []
    for number, (text, marks) in enumerate(spans.items()):
        consensus = set.intersection(*marks)
        if consensus:
            items.append(Item(number, text, labels[text], tuple(sorted(consensus))))
    return items


def _marked(text: str, page: str) -> Iterator[tuple[int, int]]:
    """Where the marked words stand in the text, found one after the other."""
    reached = 0
    for match in WORD.finditer(page):
        word = html.unescape(match["word"]).strip()
        start = text.find(word, reached) if word else -1
        if start >= 0:
            reached = start + len(word)
            if "active" in match["marks"]:
                yield start, reached


@click.command("human")
@click.option("--model", help="A model's folder or name.  [default: the bundled one]")
@click.option("--data", "folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--part", type=click.Choice(PARTS), default=PARTS[0], show_default=True)
@click.option("--methods", type=LISTED, default=METHODS, show_default=True)
@click.option("--queries", type=click.IntRange(1), default=500, show_default=True)
@click.option("--documents", type=click.IntRange(1), default=50, show_default=True)
@click.option("--device", help="cpu or cuda.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Rows; resumes.")
def command(
    model: str | None,
    folder: Path | None,
    part: str,
    methods: tuple[str, ...],
    queries: int,
    documents: int,
    device: str | None,
    jobs: int,
    out: Path | None,
) -> None:
    """Agreement of every method with human rationales (Yelp-HAT)."""
    items, reader = marked_reviews(folder, part)[:documents], Model(model, device)
    planned = partial(plan, methods, queries)
    planned()  # a wrong name ends here, before anything is loaded
    rows = collect(reader, items, planned, jobs=jobs, out=out, about=f"human, {part}")
    right = {row.document: row.correct for row in rows if row.correct is not None}
    click.echo(markdown(rows, AGREEMENT))
    name = reader.load().name
    click.echo(f"\n{name} is right about {sum(map(bool, right.values()))}/{len(right)}.")


def plan(methods: Sequence[str], n_queries: int) -> Plan:
    chosen = tuple(method_named(name) for name in methods)
    return Plan(
        methods=chosen, budgets=(n_queries,), metrics=(), units="token", too_long="truncate"
    )


if __name__ == "__main__":
    command()
