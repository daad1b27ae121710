"""Tables 2b, 4 and 13 of the paper and `human`: classifiers and scores against people's marks."""

from experiments.bench import Record
from experiments.review_tables import DIFFERS, FACES, NAMES, Records, column, found_in, models_of
from experiments.table import Cell, Number, Table, mean_of

PAPER_2B = {  # value, importance, linearised, LIME, SHAP
    "yelp-distilbert-1": (0.68, 0.73, 0.71, 0.67, 0.69),
    "yelp-bert-1": (0.57, 0.72, 0.64, 0.63, 0.68),
    "yelp-gpt2-1": (0.67, 0.67, 0.67, 0.64, 0.60),
    "yelp-bloom-1": (0.69, 0.71, 0.70, None, None),
    "yelp-mamba-1": (0.69, 0.32, 0.70, None, None),
}

PAPER_4 = {"distilbert-2": 0.84, "bert-2": 0.74, "gpt2-2": 0.81}  # of films
PAPER_4_YELP = {"yelp-distilbert-1": 0.91, "yelp-bert-1": 0.89, "yelp-gpt2-1": 0.91}


def table_4(models: Records, *asked: Records) -> Table:
    """How often classifiers are right; those that have read of restaurants also there."""
    rows: list[tuple[Cell, ...]] = []
    for record in models.values():
        name = record["name"]
        right = [r["right"] for records in asked for r in records.values() if r["model"] == name]
        yelp = Number(right[0], None, PAPER_4_YELP.get(name), 2) if right else "–"
        films = Number(record["accuracy"], None, PAPER_4.get(name), 2)
        rows.append((name, str(record["n_train"]), films, yelp))
    return Table(
        title="Table 4: accuracies of the classifiers",
        columns=("model", "reviews trained on", "IMDB", "Yelp-HAT, reviews explained"),
        rows=tuple(rows),
        differs=(
            DIFFERS[0],
            "The paper trains on 5000 reviews of IMDB or 25 000 of Yelp, once. Ours read all of "
            "IMDB three times (Mamba 8000); those named yelp also the restaurant reviews of "
            "Yelp-HAT that are not explained, and are asked about up to 50 that are.",
        ),
    )


def table_2b(records: Records) -> Table:
    return _people("Table 2b: AU-ROC with the words people marked (Yelp-HAT)", records)


def table_13(records: Records) -> Table:
    return _people(
        "Table 13: AU-ROC with people, a BLOOM and a Mamba",
        records,
        "One layer, 128 wide, of our own training instead of BLOOM-7B and Mamba-2.8B, whose "
        "weights are not available here.",
    )


def _people(title: str, records: Records, *differs: str) -> Table:
    rows: list[tuple[Cell, ...]] = []
    asked = {record["method"] for record in records.values()}
    rivals = [method for method in ("lime", "kernel-shap") if method in asked]
    for model in models_of(records):
        paper = PAPER_2B.get(model, (None,) * 5)
        eff = found_in(records, model, "slalom-eff")
        cells = [
            mean_of(_auroc(eff, score), paper=beside)
            for score, beside in zip(FACES, paper, strict=False)
        ]
        for method, beside in zip(rivals, paper[3:], strict=False):
            cells.append(mean_of(_auroc(found_in(records, model, method), "score"), paper=beside))
        right = Number(eff["right"], digits=2) if eff else Number(None)
        rows.append((model.removeprefix("yelp-"), *cells, right))
    return Table(
        title=title,
        columns=("model", *FACES.values(), *(NAMES[method] for method in rivals), "accuracy"),
        rows=tuple(rows),
        differs=(
            *DIFFERS,
            *differs,
            "Trained on IMDB and on the restaurant reviews of Yelp-HAT "
            "that are not explained: the Yelp training set is not available here.",
        ),
        notes=(
            "Absolute scores, importances as they are; words marked by all annotators; reviews "
            "of about 50 words.",
        ),
    )


def _auroc(record: Record | None, score: str) -> list[float | None]:
    found = column(record, score)
    return [triple[0] for triple in found if triple]  # type: ignore[index]


def human(records: Records) -> Table:
    """Every method against people."""
    rows: list[tuple[Cell, ...]] = []
    for record in records.values():
        for score in ("score", "importance", "linearised", "shapley"):
            triples = [d[score] for d in record["documents"] if d.get(score)]
            if triples:
                cells = [mean_of([triple[k] for triple in triples]) for k in range(3)]
                rows.append((record["method"], score, *cells))
    return Table(
        title="Yelp-HAT: where methods and people point (bundled classifier)",
        columns=("method", "score", "AU-ROC", "AUPRC", "token F1"),
        rows=tuple(rows),
        differs=("A classifier of film reviews reads about restaurants.",),
        notes=(
            "Words marked by all annotators against absolute scores (importances as they are); "
            "0.5 is chance in AU-ROC. Reviews of about 50 words, 500 queries each at most. "
            "Agreement with people is no proof of faithfulness: the classifier may look elsewhere.",
        ),
    )
