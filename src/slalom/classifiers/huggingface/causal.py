"""A causal language model as a classifier: what it would answer after a prompt.

This part knows prompts and answers. The score of a label is the log-probability of the first
token of its answer after the prompt, so a target's score is the log-odds of its answer
against the others. The prompt is always shown: it is the anchor. What all queries begin
with, the prompt up to the text, is computed once per call and its keys and values are reused.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from slalom.classifiers.base import checked_logits, checked_text
from slalom.classifiers.fingerprint import fingerprint
from slalom.classifiers.huggingface.batching import TokenRows
from slalom.classifiers.huggingface.calls import checked_precision
from slalom.classifiers.huggingface.classifier import TokenClassifier
from slalom.classifiers.huggingface.continuations import next_tokens
from slalom.classifiers.huggingface.encoding import Encoded
from slalom.classifiers.huggingface.tokenizing import checked_tokenizer, encode
from slalom.classifiers.text.units import stripped
from slalom.document import FloatArray, Text
from slalom.errors import InputError

PLACE = "{text}"


class CausalClassifier(TokenClassifier):
    """A language model, a prompt with a place for the text, and an answer for each label."""

    around, if_empty = "the prompt", "put words into the prompt"

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        labels: Mapping[str, str],
        prompt: str,
        *,
        precision: str | None = None,
        name: str | None = None,
    ) -> None:
        """`labels` maps each label to what the model would say for it, such as " good".

        `prompt` holds {text}; `precision` is as for HuggingFaceClassifier.
        """
        check_decoder(model)
        self.model = model
        self.tokenizer = checked_tokenizer(tokenizer)
        self.prompt = _checked_prompt(prompt)
        self.answers = _checked_answers(labels)
        self.precision = checked_precision(precision)
        self._name = name
        self._ids = _first_tokens(self.answers, self.prompt, tokenizer, model)

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.answers)

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.model, str(self.precision), self.prompt, str(self.answers))

    def _encoded(self, text: Text) -> Encoded:
        """The text in its prompt; tokens of the prompt, the border included, are of no side."""
        checked = text if text == "" else checked_text(text)
        if not isinstance(checked, str):
            raise InputError("the prompt has a place for one text, not for a pair: join the two")
        before, _, after = self.prompt.partition(PLACE)
        whole, start, end = before + checked + after, len(before), len(before) + len(checked)
        encoded = encode(self.tokenizer, whole).open_ended()
        sides = [
            0 if side == 0 and _inside(stripped(whole, *offset), offset, start, end) else None
            for side, offset in zip(encoded.sides, encoded.offsets, strict=True)
        ]
        offsets = [
            (max(0, left - start), max(0, min(right, end) - start))
            for left, right in encoded.offsets
        ]
        return replace(encoded, offsets=offsets, sides=sides)

    def _scores(self, rows: TokenRows) -> FloatArray:
        logits = next_tokens(self._cast_model, rows, self._ids)
        n_rows, n_classes = len(rows.lengths), len(self.labels)
        return checked_logits(logits, n_queries=n_rows, n_classes=n_classes, name=self.name)


def _inside(visible: tuple[int, int], offset: tuple[int, int], start: int, end: int) -> bool:
    """Whether a token is the text's: all that can be seen of it, or, if nothing, some of it."""
    if visible[0] < visible[1]:
        return start <= visible[0] and visible[1] <= end
    return offset[0] < end and offset[1] > start


def check_decoder(model: Any) -> None:
    if not hasattr(model, "forward"):
        raise InputError(f"the model must be a torch module, not {type(model).__name__}")
    headless = hasattr(model, "get_output_embeddings") and model.get_output_embeddings() is None
    if headless or getattr(getattr(model, "config", None), "is_encoder_decoder", False):
        raise InputError(
            f"{type(model).__name__} does not continue a text: "
            "load a decoder with AutoModelForCausalLM"
        )


def _checked_prompt(prompt: object) -> str:
    if not isinstance(prompt, str):
        raise InputError(f"the prompt must be a str, not {type(prompt).__name__}")
    if prompt.count(PLACE) != 1:
        raise InputError(
            f"the prompt {prompt!r} has {prompt.count(PLACE)} places for the text: "
            'write {text} once, as in "Review: {text}\\nVerdict:"'
        )
    return prompt


def _checked_answers(labels: object) -> dict[str, str]:
    if not isinstance(labels, Mapping) or not all(
        isinstance(part, str) for pair in labels.items() for part in pair
    ):
        raise InputError(
            'labels must map names to answers, as in {"negative": " bad", "positive": " good"}, '
            f"not {labels!r}"
        )
    if len(labels) < 2:
        raise InputError(
            f"two labels or more are needed to compare their answers, not {len(labels)}"
        )
    return dict(labels)


def _first_tokens(
    answers: Mapping[str, str], prompt: str, tokenizer: Any, model: Any
) -> tuple[int, ...]:
    """The id that follows the prompt in each answer, or a sentence about why there is none."""
    filled = prompt.replace(PLACE, "a")
    prompt_ids = encode(tokenizer, filled).open_ended().ids
    owners: dict[int, str] = {}
    for label, answer in answers.items():
        whole_ids = encode(tokenizer, filled + answer).open_ended().ids
        token = _first_token(prompt_ids, whole_ids, answer)
        shown = tokenizer.convert_ids_to_tokens(token)
        n_ids = getattr(getattr(model, "config", None), "vocab_size", None)
        if token == tokenizer.unk_token_id or (isinstance(n_ids, int) and token >= n_ids):
            raise InputError(
                f"the answer {answer!r} of label {label!r} begins with a token that the model "
                f"does not know ({shown!r}): choose another word"
            )
        if token in owners:
            raise InputError(
                f"the answers of labels {owners[token]!r} and {label!r} begin with the same "
                f"token, {shown!r}: choose answers whose first tokens differ"
            )
        owners[token] = label
    return tuple(owners)


def _first_token(prompt_ids: list[int], whole_ids: list[int], answer: str) -> int:
    if whole_ids[: len(prompt_ids)] != prompt_ids:
        raise InputError(
            f"the answer {answer!r} merges with the last token of the prompt: "
            "end the prompt without a space and begin the answers with one"
        )
    if len(whole_ids) == len(prompt_ids):
        raise InputError(f"the answer {answer!r} has no tokens: give the word the model would say")
    return whole_ids[len(prompt_ids)]
