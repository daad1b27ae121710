"""`slalom compare`: several methods side by side, on one text or one answer of a language model."""

import json
from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING

import click

from slalom.cli.typed import (
    ABSENT,
    ANSWER,
    ANSWERS_BY,
    ANSWERS_MEASURED,
    BY,
    COUNT,
    DEVICE,
    HTML,
    LANGUAGE_MODEL,
    MODEL,
    QUESTION,
    REVISION,
    SEED,
    SOURCE,
    STANDARD,
    TARGET,
    TOO_LONG_ALONE,
    UNITS,
    check_language_model,
    complain,
    console_for_results,
    files_typed,
    methods_typed,
    names_typed,
    one_class_typed,
    sources_typed,
    text_typed,
    write,
)
from slalom.errors import InputError, NoModelError, SlalomError

if TYPE_CHECKING:
    from slalom.classifiers.base import Classifier
    from slalom.document import Document
    from slalom.explainers.base import Explainer, Request
    from slalom.explanation import Explanation
    from slalom.language.scoring import AnswerScorer

Measured = dict[str, dict[str, float | None]]  # method → metric → number
MEASURED = "UNI,REM"
COMPARED = "slalom,slalom-fast,lime,kernel-shap,leave-one-out,integrated-gradients,attention-lrp"


@click.command(short_help="Compare several methods on one text or answer.")
@click.argument("text", required=False)
@click.option("--file", metavar="FILE", help="Read the text from a file.")
@MODEL
@LANGUAGE_MODEL
@SOURCE
@BY
@QUESTION
@ANSWER
@click.option("--methods", help=f"Names, or all.  [default: {COMPARED}; for answers {ANSWERS_BY}]")
@click.option("--queries", type=COUNT, metavar="N", help="Use at most N queries per method.")
@click.option(
    "--metrics",
    help="Metrics to compare them by: names, all or none.  "
    f"[default: {MEASURED}; for answers {ANSWERS_MEASURED}]",
)
@TARGET
@UNITS
@TOO_LONG_ALONE
@SEED
@DEVICE
@REVISION
@ABSENT
@click.option(
    "--json", "json_file", metavar="FILE", help="Write explanations with metrics, one per line."
)
@HTML
def compare(
    text: str | None,
    file: str | None,
    model: str | None,
    language_model: str | None,
    sources: tuple[str, ...],
    by: str | None,
    question: str,
    answer: str | None,
    methods: str | None,
    queries: int | None,
    metrics: str | None,
    target: str | None,
    units: str | None,
    too_long: str,
    seed: int,
    device: str | None,
    revision: str | None,
    absent: str,
    json_file: str | None,
    html_file: str | None,
) -> None:
    """Compare several methods on TEXT (if omitted, the text is read from a pipe)."""
    from slalom.classifiers.load import language_model as loaded_writer
    from slalom.classifiers.load import load, with_absent
    from slalom.explainers.base import Request
    from slalom.explainers.splitting import document_of
    from slalom.language.scoring import AnswerScorer
    from slalom.language.sources import sources_of
    from slalom.metrics.table import METRICS

    check_language_model(
        language_model,
        {"--source": sources, "--by": by, "--question": question, "--answer": answer},
        {"TEXT": text, "--file": file, "--model": model, "--target": target, "--units": units},
    )
    files = files_typed(json_file, html_file)
    of_text = language_model is None
    if methods is None:
        methods = COMPARED if of_text else ANSWERS_BY
    if metrics is None:
        metrics = MEASURED if of_text else ANSWERS_MEASURED
    chosen = methods_typed(methods)
    wanted = names_typed(None if metrics == "none" else metrics, METRICS, "metric")
    classifier: Classifier
    if language_model is not None:
        given = sources_typed(sources)
        writer = loaded_writer(language_model, device=device, revision=revision)
        scorer = AnswerScorer(writer, sources_of(given, by), question, answer)
        classifier, explanations = scorer, _attributed(scorer, chosen, queries, seed)
    else:
        content = text_typed(text, file)
        classifier = with_absent(load(model, device=device, revision=revision), absent)
        request = Request(one_class_typed(target, classifier.labels), queries, seed)
        document = document_of(classifier, content, units, too_long=too_long)
        explanations = _explained(classifier, document, chosen, request)
    if not explanations:
        raise InputError("none of these methods can explain this")
    measured = _measured(classifier, explanations, wanted)
    if json_file is not None:
        write(json_file, _json(explanations, measured))
    if html_file is not None:
        from slalom.views.comparison import page

        write(html_file, page(explanations, _by_title(measured)))
    if STANDARD not in files:
        from slalom.views.side_by_side import SideBySide

        console_for_results().print(SideBySide(explanations, _by_title(measured)))


def _attributed(
    scorer: "AnswerScorer", methods: "Sequence[Explainer]", n_queries: int | None, seed: int
) -> "list[Explanation]":
    """The sources of an answer by every method that can find them; no cache is shared."""
    from slalom.language.attribute import attributed

    found: list[Explanation] = []
    for method in methods:
        try:
            alone = scorer.unrecorded(cached=False)
            found.append(attributed(alone, method, n_queries=n_queries, seed=seed, progress=True))
        except SlalomError as problem:
            complain(SlalomError(f"{method.name}: ", *problem.args))
    return found


def _explained(
    classifier: "Classifier",
    document: "Document",
    methods: "Sequence[Explainer]",
    request: "Request",
) -> "list[Explanation]":
    """Explanations by every method that can give one; errors of the others are printed."""
    from slalom.explainers.execution.driver import explained
    from slalom.explainers.execution.progress import Meter
    from slalom.explainers.execution.steps import Order

    total = sum(request.planned(method, document) for method in methods)
    found: list[Explanation] = []
    from slalom.explainers.execution.progress import Wait, bar

    with bar(total, Wait("explaining", "queries", after="fitting")) as show:
        meter = Meter(show or (lambda done, total: None), total)
        for method in methods:
            order = Order(method, request, keep_errors=True)
            for result in explained(classifier, order, [document], meter=meter):
                if isinstance(result, SlalomError):
                    complain(SlalomError(f"{method.name}: ", *result.args))
                else:
                    found.append(result)
    return found


def _measured(
    classifier: "Classifier", explanations: "Sequence[Explanation]", names: tuple[str, ...]
) -> Measured:
    """Every metric of every method, with shared answers; None where a metric does not apply."""
    from slalom.classifiers.cached import CachedClassifier
    from slalom.metrics.table import METRICS

    remembered = CachedClassifier(classifier)
    table: Measured = {}
    for explanation in explanations:
        row = table.setdefault(explanation.method, {})
        for name in names:
            try:
                number = METRICS[name].measure(remembered, explanation)
                row[name] = number if isfinite(number) else None
            except NoModelError:
                row[name] = None
    return table


def _by_title(measured: Measured) -> Measured:
    from slalom.metrics.table import METRICS

    return {
        method: {METRICS[name].title: number for name, number in row.items()}
        for method, row in measured.items()
    }


def _json(explanations: "Sequence[Explanation]", measured: Measured) -> str:
    """An explanation per line, as `slalom.read` takes it, with its metrics beside it."""
    records = [e.to_json() | {"metrics": measured[e.method]} for e in explanations]
    return "".join(
        json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n" for record in records
    )
