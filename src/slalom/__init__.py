"""Explain what a text classifier predicts, word by word.

    import slalom
    classifier = slalom.load()
    explanation = slalom.explain(classifier, "A slow start, but a wonderful film.")

Names are imported when first used (PEP 562), so that `import slalom` and the command line
start at once; torch is loaded only by what needs it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

_HOMES = {
    "Anchor": "slalom.surrogates.slalom.model",
    "CausalClassifier": "slalom.classifiers.huggingface.causal",
    "ChatClassifier": "slalom.classifiers.chat.classifier",
    "CompletionServer": "slalom.classifiers.chat.completions",
    "Explanation": "slalom.explanation",
    "FunctionClassifier": "slalom.classifiers.text.function",
    "HuggingFaceClassifier": "slalom.classifiers.huggingface.classifier",
    "METHODS": "slalom.explainers.table",
    "Quality": "slalom.explanation",
    "ReplacingClassifier": "slalom.classifiers.absent",
    "SlalomError": "slalom.errors",
    "SlalomWarning": "slalom.errors",
    "Vocabulary": "slalom.explainers.vocabulary",
    "attribute": "slalom.language.attribute",
    "explain": "slalom.explainers.methods",
    "explain_each": "slalom.explainers.methods",
    "explain_many": "slalom.explainers.methods",
    "explain_vocabulary": "slalom.explainers.vocabulary_fit",
    "load": "slalom.classifiers.load",
    "read": "slalom.explanation",
    "to_frame": "slalom.tables",
}

_PARTS = ("corpus",)  # reached by their own name: slalom.corpus.explain_dataset

if TYPE_CHECKING:
    from slalom.classifiers.absent import ReplacingClassifier as ReplacingClassifier
    from slalom.classifiers.chat.classifier import ChatClassifier as ChatClassifier
    from slalom.classifiers.chat.completions import CompletionServer as CompletionServer
    from slalom.classifiers.huggingface.causal import CausalClassifier as CausalClassifier
    from slalom.classifiers.huggingface.classifier import (
        HuggingFaceClassifier as HuggingFaceClassifier,
    )
    from slalom.classifiers.load import load as load
    from slalom.classifiers.text.function import FunctionClassifier as FunctionClassifier
    from slalom.errors import SlalomError as SlalomError
    from slalom.errors import SlalomWarning as SlalomWarning
    from slalom.explainers.methods import explain as explain
    from slalom.explainers.methods import explain_each as explain_each
    from slalom.explainers.methods import explain_many as explain_many
    from slalom.explainers.table import METHODS as METHODS
    from slalom.explainers.vocabulary import Vocabulary as Vocabulary
    from slalom.explainers.vocabulary_fit import explain_vocabulary as explain_vocabulary
    from slalom.explanation import Explanation as Explanation
    from slalom.explanation import Quality as Quality
    from slalom.explanation import read as read
    from slalom.language.attribute import attribute as attribute
    from slalom.surrogates.slalom.model import Anchor as Anchor
    from slalom.tables import to_frame as to_frame

__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> object:
    if name in _PARTS:
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, *_PARTS])
