"""A user's model and tokenizer, borrowed for one call and given back exactly as they were.

This part knows modes, devices, memory and what a model's forward takes; it reads rows of ids
and knows nothing of texts. Everything it needs it finds in the model, never in a table of names.
"""

import copy
import inspect
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import PurePath
from threading import Lock, RLock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from slalom.classifiers.huggingface.batching import (
    SMALL,
    LongArray,
    TokenRows,
    batches,
    in_row_order,
)
from slalom.classifiers.huggingface.devices import (
    TOKENS,
    DeviceRows,
    Pace,
    PendingScores,
    in_16_bits,
    on_device,
    small_share,
    tokens_liked,
)
from slalom.classifiers.huggingface.encoder import modules_of, n_weights_of, quickest
from slalom.document import FloatArray
from slalom.errors import ClassifierError, InputError, SlalomWarning, UnknownNameError, counted

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
SHORT = 16  # tokens: on a CPU, rows of no more are never padded
MIN_ROWS = 4  # and no fewer of them are asked at once
A_WORD = 4  # tokens: a word among special ones
LONGEST = 10**9  # tokenizers write "no limit" as a larger number

_locks: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_halved_budgets: WeakKeyDictionary[Any, int] = WeakKeyDictionary()  # after running out of memory
_locks_lock = Lock()
_settings_lock = Lock()
_planning: list[bool] = []  # whether cuDNN's attention was on, once for every thread without it
_known_positions: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
_known_parameters: WeakKeyDictionary[Any, tuple[frozenset[str], bool]] = WeakKeyDictionary()


def _alone_with(thing: Any) -> Any:
    """A lock of this model or tokenizer: two threads must not put back each other's changes."""
    with _locks_lock:
        return _locks.setdefault(thing, RLock())


@contextmanager
def preserve_tokenizer(tokenizer: Any) -> Iterator[None]:
    """The tokenizer's own settings for cutting and padding outlive a call that uses others."""
    backend = tokenizer.backend_tokenizer
    with _alone_with(tokenizer):
        truncation, padding = backend.truncation, backend.padding
        try:
            yield
        finally:
            if truncation != backend.truncation:
                backend.enable_truncation(**truncation)
            if padding != backend.padding:
                backend.enable_padding(**padding)


@contextmanager
def preserve_settings(model: nn.Module, pad: int | None) -> Iterator[None]:
    """The model in eval mode and with a pad id, for a while."""
    config = _text_config(model)
    with _alone_with(model):
        training = [module for module in modules_of(model) if module.training]
        lacks_pad = pad is not None and _lacks_pad(config)
        try:
            for module in training:
                module.training = False
            if lacks_pad:
                config.pad_token_id = pad
            yield
        finally:
            for module in training:
                module.training = True
            if lacks_pad:
                config.pad_token_id = None


def forward_accepts(model: nn.Module, name: str) -> bool:
    """Whether the model's forward has a parameter of this name."""
    return name in _parameters(model)[0]


def takes_types(model: nn.Module, tokenizer: Any) -> bool:
    """Whether the tokenizer makes token types, and the model is shown them."""
    return forward_accepts(model, "token_type_ids") and makes_types(tokenizer)


def makes_types(tokenizer: Any) -> bool:
    return "token_type_ids" in tokenizer.model_input_names


def _parameters(model: nn.Module) -> tuple[frozenset[str], bool]:
    """What forward takes, and whether it names any of it: wrappers with **kwargs do not."""
    function = getattr(model.forward, "__func__", model.forward)
    known = _known_parameters.get(function)
    if known is None:  # reading a signature takes as long as a small batch
        found = inspect.signature(model.forward).parameters
        kinds = {parameter.kind for parameter in found.values()}
        named = kinds - {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
        known = _known_parameters[function] = frozenset(found), bool(named)
    return known


def checked_precision(precision: str | None) -> str | None:
    if precision is not None and precision not in DTYPES:
        raise UnknownNameError("precision", precision, DTYPES)
    return precision


def in_precision(model: Any, precision: str | None) -> Any:
    """The model itself, or a copy whose weights were cast once: the caller's stays as it is."""
    if precision is None:
        return model
    dtype = DTYPES[precision]
    if getattr(model, "is_quantized", False):
        raise InputError(f"the model is quantised already: leave out precision={precision!r}")
    if all(weight.dtype == dtype for weight in model.parameters()):
        return model
    return copy.deepcopy(model).to(dtype)


def name_of(model: nn.Module) -> str:
    """The name the model was loaded by, a folder without its path, or its class."""
    path = str(getattr(getattr(model, "config", None), "name_or_path", "") or "")
    return (PurePath(path).name if PurePath(path).is_absolute() else path) or type(model).__name__


def context_length(model: nn.Module, tokenizer: Any) -> int:
    """How many tokens model and tokenizer allow, special ones included."""
    stated = getattr(_text_config(model), "max_position_embeddings", None)
    limits = [int(tokenizer.model_max_length)]
    if isinstance(stated, int) and stated > 0:
        limits.append(stated)
    return min(*limits, _positions(model), LONGEST)


def _positions(model: nn.Module) -> int:
    """RoBERTa and models like it count from behind the pad id: the first rows are never used."""
    if model not in _known_positions:  # walking through all modules takes as long as a small batch
        tables = [
            module
            for name, module in model.named_modules()
            if isinstance(module, nn.Embedding) and "position" in name
        ]
        padded = [(table.num_embeddings, table.padding_idx) for table in tables]
        found = [n - pad - 1 for n, pad in padded if pad is not None]
        _known_positions[model] = min(found, default=LONGEST)
    return _known_positions[model]


def answers(model: nn.Module, tokenizer: Any, rows: TokenRows) -> FloatArray:
    """What the model says to each row: (n_rows, n_outputs)."""
    device = device_of(model)
    pad = pad_id(model, rows, spare=tokenizer.pad_token_id)
    budget = tokens_per_batch(model) if pad is not None else 1
    typed = takes_types(model, tokenizer)

    def plain(chosen: LongArray) -> Tensor:
        return _scores(model, _inputs(model, there, chosen, pad=pad or 0, typed=typed))

    def ask(chosen: LongArray) -> Tensor:
        """Short rows in no smaller batches than MIN_ROWS: a product of fewer rounds in another way.

        So a short text gets the same answers alone and among others, but for a last digit at times.
        """
        few = device.type == "cpu" and len(chosen) < MIN_ROWS
        shown = (
            np.resize(chosen, MIN_ROWS) if few and rows.lengths[chosen].max() <= SHORT else chosen
        )
        try:
            scores = quick(shown)
        except torch.OutOfMemoryError:
            raise
        except Exception:
            if quick is plain:
                raise
            scores = plain(shown)  # what cannot be answered gets the model's own word on it
        return scores[: len(chosen)]

    if not typed:
        rows = replace(rows, types=np.zeros_like(rows.types))
    with borrowed(model, pad):
        there = on_device(rows, device)
        quick, any_lengths = quickest(model, there, plain, multiple=_step_of(model, rows))
        waiting = (
            in_row_order(rows.lengths, budget=budget)
            if any_lengths
            else _padded_batches(model, rows, budget=budget)
        )
        begun = in_turn(model, waiting, ask)
    return begun.answers()  # a GPU may be told of the next batch while it is at work on this one


def _padded_batches(model: nn.Module, rows: TokenRows, *, budget: int) -> Iterator[LongArray]:
    device = device_of(model).type
    alike = SHORT if device == "cpu" else 0
    weight = next(model.parameters(), None)
    small = SMALL if weight is None else small_share(weight, n_weights_of(model), budget)
    return batches(rows.lengths, budget=budget, padding=_may_pad(model), small=small, alike=alike)


def tokens_per_batch(model: nn.Module) -> int:
    """As many as the device likes best, and has not run out of memory with."""
    weight = next(model.parameters(), None)
    if weight is None:
        return TOKENS["cpu"]
    width = int(getattr(_text_config(model), "hidden_size", 0) or 1024)
    likes = tokens_liked(weight, width)
    return min(likes, _halved_budgets.get(model, likes))


@contextmanager
def borrowed(model: nn.Module, pad: int | None) -> Iterator[None]:
    """The model ready to be asked: no gradients, eval mode, a pad id."""
    if device_of(model).type == "meta":
        raise ClassifierError(
            f"the weights of {type(model).__name__} were never loaded (they are on 'meta'): "
            "load the model onto cpu or cuda"
        )
    with torch.inference_mode(), preserve_settings(model, pad), _attention_of(device_of(model)):
        yield


@contextmanager
def _attention_of(device: torch.device) -> Iterator[None]:
    """On a GPU without cuDNN's attention, which plans anew for every shape of a batch.

    The setting is the process's: of several threads the first to come sets it, the last to leave
    restores it.
    """
    if device.type != "cuda":
        yield
        return
    cuda = torch.backends.cuda
    with _settings_lock:
        if not _planning:
            _planning.append(bool(cuda.cudnn_sdp_enabled()))  # type: ignore[no-untyped-call]
            cuda.enable_cudnn_sdp(False)
        else:
            _planning.append(_planning[0])
    try:
        yield
    finally:
        with _settings_lock:
            before = _planning.pop()
            if not _planning:
                cuda.enable_cudnn_sdp(before)


def in_turn(
    model: nn.Module, waiting: Iterable[LongArray], ask: Callable[[LongArray], Tensor]
) -> PendingScores:
    """Batch after batch, smaller ones where the memory runs out."""
    left = deque(waiting)
    order: list[LongArray] = []
    found: list[Tensor] = []
    pace = Pace(device_of(model))
    while left:
        try:
            found.append(ask(left[0]))
            pace.wait()
        except torch.OutOfMemoryError as problem:
            left = deque(_halved(left, problem))
            _halve_budget(model)
        else:
            order.append(left.popleft())
    return PendingScores(np.concatenate(order), torch.cat(found))


def _inputs(
    model: nn.Module, rows: DeviceRows, chosen: LongArray, *, pad: int, typed: bool
) -> dict[str, Tensor]:
    ids, mask, types = rows.padded(chosen, pad=pad, multiple=_step_of(model, rows.rows))
    inputs = {"input_ids": ids}
    if forward_accepts(model, "attention_mask"):
        inputs["attention_mask"] = mask
    if typed:
        inputs["token_type_ids"] = types
    return inputs


def _step_of(model: nn.Module, rows: TokenRows) -> int:
    """16-bit kernels of a GPU like widths that are multiples of 8, as far as a model reads."""
    if not in_16_bits(next(model.parameters(), None)):
        return 1
    stated = getattr(_text_config(model), "max_position_embeddings", None) or LONGEST
    return 8 if rows.lengths.max() + 7 <= stated else 1


def forward(model: nn.Module, inputs: dict[str, Any]) -> Any:
    """Whatever the model returns, or a sentence about what it raised."""
    accepted, names_any = _parameters(model)
    try:
        if "input_ids" in accepted or not names_any:
            return model(**inputs)
        # a module of the caller's own calls its ids something else: they come first
        return model(
            inputs["input_ids"], **{name: inputs[name] for name in inputs if name in accepted}
        )
    except torch.OutOfMemoryError:
        raise
    except Exception as problem:
        raise ClassifierError(
            f"{type(model).__name__} raised {type(problem).__name__}: {problem}{_if_short(inputs)}"
        ) from problem


def _if_short(inputs: dict[str, Any]) -> str:
    """Some models, such as Funnel, cannot read what most methods ask about: a word alone."""
    ids = inputs.get("input_ids")
    if ids is None or ids.shape[-1] > A_WORD:
        return ""
    return (
        f"; it was given {counted(ids.shape[-1], 'token')}: if it cannot read so few, "
        "use the method leave-one-out, which always shows nearly all of the text"
    )


def _scores(model: nn.Module, inputs: dict[str, Tensor]) -> Tensor:
    """One row of scores per text, whatever the model wraps them in."""
    output = forward(model, inputs)
    scores = _scores_in(output)
    if not isinstance(scores, Tensor) or scores.ndim > 2:
        raise ClassifierError(
            f"{type(model).__name__} does not return one row of scores per text: "
            "load it with AutoModelForSequenceClassification"
        )
    return scores.reshape(len(inputs["input_ids"]), -1) if scores.ndim < 2 else scores


def _scores_in(output: Any) -> Any:
    """The scores in what a model returns: a tensor, a tuple, a dict or an object with logits."""
    if isinstance(output, dict):
        tensors = [value for value in output.values() if isinstance(value, Tensor)]
        return output.get("logits", tensors[0] if len(tensors) == 1 else None)
    if isinstance(output, tuple | list) and output:
        output = output[0]
    return getattr(output, "logits", output)


def _halved(waiting: Iterable[LongArray], problem: Exception) -> Iterator[LongArray]:
    """The same rows in batches half as large, after the device ran out of memory."""
    torch.cuda.empty_cache()
    for number, chosen in enumerate(waiting):
        if number == 0 and len(chosen) == 1:
            raise ClassifierError(
                "the device has too little memory for a single text: "
                "shorten it, or load the model in a smaller precision"
            ) from problem
        middle = (len(chosen) + 1) // 2
        yield chosen[:middle]
        if len(chosen) > 1:
            yield chosen[middle:]


def device_of(model: nn.Module) -> torch.device:
    return next((weight.device for weight in model.parameters()), torch.device("cpu"))


def _halve_budget(model: nn.Module) -> None:
    """Later calls begin where this one ended; said once."""
    was_halved = model in _halved_budgets
    _halved_budgets[model] = max(1, tokens_per_batch(model) // 2)
    if not was_halved:
        warnings.warn(
            f"{device_of(model)} ran out of memory: continuing with batches half as large",
            SlalomWarning,
            stacklevel=2,
        )


def _text_config(model: nn.Module) -> Any:
    """The part of the model's config that speaks of text, or None for a bare module."""
    config: Any = getattr(model, "config", None)
    return config.get_text_config() if hasattr(config, "get_text_config") else config


def _lacks_pad(config: Any) -> bool:
    return hasattr(config, "pad_token_id") and config.pad_token_id is None


def _may_pad(model: nn.Module) -> bool:
    """Whether padding on the right leaves the scores alone: the model masks it, and does not
    read its answer off the last column as XLNet does."""
    config = getattr(model, "config", None)
    return (
        forward_accepts(model, "attention_mask") and getattr(config, "summary_type", "") != "last"
    )


def pad_id(model: nn.Module, rows: TokenRows, *, spare: int | None) -> int | None:
    """The model's own pad id. Decoders find the last token by comparing with it, so a model
    without one gets an id that no row holds; None where every id is taken."""
    config = _text_config(model)
    if not _lacks_pad(config):
        stated = getattr(config, "pad_token_id", None)
        return stated if stated is not None else spare or 0
    n_ids = int(getattr(config, "vocab_size", 0))
    free = np.ones(n_ids, dtype=bool)
    free[rows.ids[rows.ids < n_ids]] = False
    if spare is not None and spare < n_ids and free[spare]:
        return spare
    return int(free.argmax()) if free.any() else None
