"""What benchmarks use of the package that is not public: these names, and no others.

A stranger who repeats a number needs nothing else than `import slalom` and this table; whoever
moves something inside the package changes it here. Names are loaded when they are first imported,
so that a benchmark needs torch or a web server only if it uses what does. `Name:Other` is known
here as Other, since two parts of the package use one name. Not a benchmark itself.
"""

from importlib import import_module
from typing import Any

INNER = {  # module of the package → its names; those that are modules too
    "answer": "Answer scores_of",
    "classifiers.base": "Classifier Delegating Target",
    "classifiers.cached": "CachedClassifier",
    "classifiers.disk_cache": "DiskCache",
    "classifiers.huggingface": "calls continuations devices encoder",
    "classifiers.huggingface.batching": "TokenRows batches joined",
    "classifiers.huggingface.devices": "DeviceRows PendingScores on_device",
    "classifiers.huggingface.writer": "LocalWriter",
    "classifiers.load": "language_model",
    "classifiers.text.units": "sentence_cuts",
    "cli.main": "main:command",
    "corpus.folder": "RunFolder",
    "document": "BoolArray Document FloatArray Queries queries_from_masks",
    "evaluation.items": "read_items",
    "explainers": "methods surrogate",
    "explainers.base": "Ask Found Plan Request case_of",
    "explainers.execution": "driver pool workers",
    "explainers.execution.steps": "Dialogue Order in_step run_local",
    "explainers.execution.workers": "PER_WORKER",
    "explainers.methods": "method_named",
    "explainers.surrogate": "SurrogateExplainer",
    "explanation": "FILES HIGH_TRUST",
    "files": "write_whole",
    "language.attribute": "attributed",
    "language.by_tokens": "by_tokens",
    "language.citations": "LEAST OF_ALL citation_of per_token sentences_of",
    "language.scoring": "AnswerScorer RecordedScorer recorded_document",
    "language.sources": "Sources sources_of",
    "metrics.agreement": "spearman",
    "metrics.faithfulness": "deletion subset_error",
    "metrics.interactions": "N_QUERIES",
    "metrics.shapley": "shapley_error true_shapley",
    "metrics.subject": "Subject subject_of unit_scores",
    "samplers.base": "Sampler Samples all_subsets random_subsets",
    "samplers.subsets": "Deletions SubsetSizes",
    "surrogates.additive": "LinearModel LinearSurrogate",
    "surrogates.base": "Fit Model Observations",
    "surrogates.linalg": "one_thread",
    "surrogates.quality": "sampled_rows",
    "surrogates.shapley_estimates": "shapley_of_all",
    "surrogates.slalom.fit": "SlalomSurrogate",
    "surrogates.slalom.model": "SlalomModel",
    "surrogates.slalom.process": "AllAsked ProcessModel fit_process",
    "surrogates.slalom.readouts": "read_outs",
    "surrogates.slalom.two_scores": "Known balanced two_scores",
    "views": "html",
    "views.brief": "brief",
    "views.html": "page",
    "views.terminal": "TerminalView",
    "web.models": "Model:PageModel Models",
    "web.server": "Address app listening run server",
}


def _places() -> dict[str, tuple[str, str]]:
    """Name here → module of the package, name there."""
    found = {}
    for module, names in INNER.items():
        for name in names.split():
            there, _, here = name.partition(":")
            found[here or there] = (f"slalom.{module}", there)
    return found


PLACES = _places()


def __getattr__(name: str) -> Any:
    if name not in PLACES:
        raise AttributeError(f"{name} is not in the table of benchmarks/inside.py")
    module, there = PLACES[name]
    found = import_module(module)
    return getattr(found, there) if hasattr(found, there) else import_module(f"{module}.{there}")
