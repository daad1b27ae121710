"""The one place where benchmarks reach behind the public names of slalom.

What benchmarks need beyond `slalom.…` stands here, by the module it comes from; the other files
import it from here (a test holds them to it), so that what is moved inside is changed in one
place. Modules and names are loaded when they are first asked for. Not a benchmark itself.
"""

from importlib import import_module
from typing import Any

INSIDE = {  # module → the names, functions or modules in it, that benchmarks use
    # Classifiers: what they offer, wrappers, and the insides of Hugging Face models
    "slalom.classifiers.base": "Classifier Delegating Target",
    "slalom.classifiers.cached": "CachedClassifier",
    "slalom.classifiers.huggingface": "batch_sizes calls next_token shortcut",
    "slalom.classifiers.huggingface.batching": "Rows batches joined",
    "slalom.classifiers.huggingface.held": "Begun Held held",
    "slalom.classifiers.huggingface.writer": "LocalWriter",
    "slalom.classifiers.load": "as_classifier language_model",
    "slalom.classifiers.text.units": "sentence_cuts",
    # Texts cut into units, and their subsets
    "slalom.document": "BoolArray Document FloatArray IntArray Queries queries_from_masks",
    # Which queries are asked
    "slalom.samplers.base": "Sampler random_subsets",
    "slalom.samplers.subsets": "Deletions SubsetSizes",
    # Fits to answers: what subset_error and known try without a classifier
    "slalom.surrogates.base": "Fit Observations Surrogate",
    "slalom.surrogates.linear": "LinearModel LinearSurrogate",
    "slalom.surrogates.quality": "sampled_rows",
    "slalom.surrogates.slalom.fit": "SlalomSurrogate",
    "slalom.surrogates.slalom.length": "LengthCurve knots_of",
    "slalom.surrogates.slalom.model": "SlalomModel",
    "slalom.surrogates.slalom.process": "Answers ProcessModel whole_of",
    "slalom.surrogates.slalom.readouts": "read_outs",
    "slalom.surrogates.slalom.two_scores": "Known TwoScores two_scores",
    "slalom.surrogates.threads": "one_thread",
    # Explainers: requests, runs in step, worker processes
    "slalom.explainers": "methods surrogate",
    "slalom.explainers.base": "Request",
    "slalom.explainers.case": "Found",
    "slalom.explainers.dry_run": "dry_run",
    "slalom.explainers.execution": "driver pool workers",
    "slalom.explainers.execution.answers": "Conversation",
    "slalom.explainers.execution.pool": "Ask Pool",
    "slalom.explainers.execution.steps": "Order explained_here in_step",
    "slalom.explainers.execution.workers": "PER_WORKER",
    "slalom.explainers.methods": "method_named",
    "slalom.explainers.splitting": "document_of",
    "slalom.explainers.stages": "balanced",
    "slalom.explainers.surrogate": "SurrogateExplainer",
    "slalom.explainers.white_box": "full_texts",
    # Sources of answers
    "slalom.answer": "Answer scores_of",
    "slalom.language.attribute": "attributed",
    "slalom.language.citations": "Recorded citation_of per_token",
    "slalom.language.scoring": "AnswerScorer RecordedScorer recorded_document",
    "slalom.language.sources": "Sources sources_of",
    # Explanations, files, tables and what is drawn
    "slalom.explanation": "FILES HIGH_TRUST",
    "slalom.files": "write_whole",
    "slalom.views": "html",
    "slalom.views.brief": "brief",
    "slalom.views.html": "fragment page",
    "slalom.views.terminal": "TerminalView",
    # Errors held against a classifier
    "slalom.evaluation.items": "Item read_items",
    "slalom.metrics.agreement": "spearman",
    "slalom.metrics.faithfulness": "deletion subset_error",
    "slalom.metrics.interactions": "N_QUERIES",
    "slalom.metrics.shapley": "shapley_error true_shapley",
    "slalom.metrics.subject": "Subject subject_of unit_scores",
    # The page and runs over files
    "slalom.corpus.explain": "explain_dataset",
    "slalom.corpus.folder": "RunFolder",
    "slalom.web.models": "Model Models",
    "slalom.web.server": "Place app listening run server",
}
RENAMED = {  # two things of one name
    "SurrogateModel": ("slalom.surrogates.base", "Model"),
    "held_module": ("slalom.classifiers.huggingface", "held"),
}
HOMES = {name: (module, name) for module, names in INSIDE.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    module, there = (RENAMED | HOMES).get(name, (None, name))
    if module is None:
        raise AttributeError(f"benchmarks.inside has no {name}: add it where it comes from")
    found = import_module(module)
    return getattr(found, there) if hasattr(found, there) else import_module(f"{module}.{there}")
