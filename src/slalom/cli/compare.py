"""`slalom compare`: several methods side by side, on one text or one answer of a language model."""

import json
from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING

import click

from slalom.cli import typed
from slalom.cli.model import ABSENT, DEVICE, MODEL, REVISION, WRITER, TypedModel, pass_model
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
@WRITER
@typed.SOURCE
@typed.BY
@typed.QUESTION
@typed.ANSWER
@click.option(
    "--methods", help=f"Names, or all.  [default: {COMPARED}; for answers {typed.ANSWERS_BY}]"
)
@click.option("--queries", type=typed.COUNT, metavar="N", help="Use at most N queries per method.")
@click.option(
    "--metrics",
    help="Metrics to compare them by: names, all or none.  "
    f"[default: {MEASURED}; for answers {typed.ANSWERS_MEASURED}]",
)
@typed.TARGET
@typed.UNITS
@typed.TOO_LONG_ALONE
@typed.SEED
@DEVICE
@REVISION
@ABSENT
@click.option(
    "--json", "json_file", metavar="FILE", help="Write explanations with metrics, one per line."
)
@typed.HTML
@pass_model
def compare(
    model: TypedModel,
    text: str | None,
    file: str | None,
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
    json_file: str | None,
    html_file: str | None,
) -> None:
    """Compare several methods on TEXT (if omitted, the text is read from a pipe)."""
    from slalom.explainers.base import Request
    from slalom.explainers.splitting import document_of
    from slalom.language.scoring import AnswerScorer
    from slalom.language.sources import sources_of
    from slalom.metrics.table import METRICS

    typed.check_language_model(
        model.language_model,
        {"--source": sources, "--by": by, "--question": question, "--answer": answer},
        {"TEXT": text, "--file": file, "--model": model.name, "--target": target, "--units": units},
    )
    files = typed.files(json_file, html_file)
    of_text = model.language_model is None
    if methods is None:
        methods = COMPARED if of_text else typed.ANSWERS_BY
    if metrics is None:
        metrics = MEASURED if of_text else typed.ANSWERS_MEASURED
    chosen = typed.methods(methods)
    wanted = typed.names(None if metrics == "none" else metrics, METRICS, "metric")
    classifier: Classifier
    if not of_text:
        given = sources_of(typed.sources(sources), by)
        scorer = AnswerScorer(model.writer(), given, question, answer)
        classifier, explanations = scorer, _attributed(scorer, chosen, queries, seed)
    else:
        content = typed.text(text, file)
        classifier = model.classifier()
        request = Request(typed.one_class(target, classifier.labels), queries, seed)
        document = document_of(classifier, content, units, too_long=too_long)
        explanations = _explained(classifier, document, chosen, request)
    if not explanations:
        raise InputError("none of these methods can explain this")
    measured = _measured(classifier, explanations, wanted)
    if json_file is not None:
        typed.write(json_file, _json(explanations, measured))
    if html_file is not None:
        from slalom.views.comparison import page

        typed.write(html_file, page(explanations, _by_title(measured)))
    if typed.STANDARD not in files:
        from slalom.views.side_by_side import SideBySide

        typed.console_for_results().print(SideBySide(explanations, _by_title(measured)))


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
            typed.complain(SlalomError(f"{method.name}: ", *problem.args))
    return found


def _explained(
    classifier: "Classifier",
    document: "Document",
    methods: "Sequence[Explainer]",
    request: "Request",
) -> "list[Explanation]":
    """Explanations by every method that can give one; errors of the others are printed."""
    from slalom.explainers.execution.driver import explained
    from slalom.explainers.execution.progress import Meter, Wait, bar
    from slalom.explainers.execution.steps import Order

    total = sum(request.planned(method, document) for method in methods)
    found: list[Explanation] = []
    with bar(total, Wait("explaining", "queries", after="fitting")) as show:
        meter = Meter(show or (lambda done, total: None), total)
        for method in methods:
            order = Order(method, request, keep_errors=True)
            for result in explained(classifier, order, [document], meter=meter):
                if isinstance(result, SlalomError):
                    typed.complain(SlalomError(f"{method.name}: ", *result.args))
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
