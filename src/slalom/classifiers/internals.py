"""Optional access to a classifier's inside, for gradient, attention and relevance methods.

Such a classifier has one more method, `internals()`, which returns an object with the methods below
(possibly itself). Everything concerns the full text of a document in T tokens, special ones
included. `HuggingFaceClassifier` has it, and any differentiable model of your own can: gradients
need only embeddings, and logits computed from them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

from slalom.classifiers.base import Classifier
from slalom.document import Document, IntArray
from slalom.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

Outcome = Callable[["Tensor"], "Tensor"]  # (n, n_classes) logits → (n,) what is explained


class Internals(Protocol):
    """Enough for gradients."""

    def unit_of_token(self, document: Document) -> IntArray: ...  # (T,), −1 where always shown

    def embeddings(self, document: Document) -> "Tensor": ...  # (T, width)

    def blank(self, document: Document) -> "Tensor": ...  # (T, width) with every unit blanked out

    def logits_from_embeddings(self, document: Document, embeddings: "Tensor") -> "Tensor":
        """(n, T, width) → (n, n_classes), differentiable."""
        ...


@runtime_checkable
class ShowsAttention(Protocol):
    """Enough for attention methods, beside `unit_of_token`."""

    def attentions(self, document: Document) -> tuple["Tensor", "Tensor"]:
        """(n_layers, n_heads, T, T), and how much the answer is read off each token: (T,)."""
        ...


@runtime_checkable
class ShowsRelevance(Protocol):
    """Enough for relevance propagation, beside `unit_of_token`."""

    def relevance(self, document: Document, outcome: Outcome) -> "Tensor": ...  # (T,)


@runtime_checkable
class ShowsMaskGradients(Protocol):
    """Enough for gradients of the attention mask, beside `unit_of_token`."""

    def mask_gradients(self, document: Document, outcome: Outcome) -> "Tensor":
        """(T,) by a number added to the attention logits of each token as a key, at 0."""
        ...


def internals_of(classifier: Classifier) -> Internals:
    """The inside of a classifier; an InputError if it gives no access."""
    look_inside = getattr(classifier, "internals", None)
    if look_inside is None:
        raise InputError(
            f"{classifier.name} gives no access to its inside: gradient and attention methods need "
            "a "
            "Hugging Face model, or a classifier with a method `internals`; explain this one with "
            "'slalom', 'lime' or 'kernel-shap'"
        )
    return cast(Internals, look_inside())
