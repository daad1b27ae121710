"""The inside of a Hugging Face classifier: embeddings, gradients, attention, relevance.

Everything here is about the full text of a document, special tokens included, and leaves the
model as it was: no gradient is stored, the attention implementation comes back, train mode too.

Attention-aware layer-wise relevance propagation (AttnLRP, Achtibat et al. 2024) is gradient × input
under changed rules of differentiation:

    normalisation           its scale is a constant
    activation              f(x) = x · (f(x)/x), the ratio a constant
    product of activations  each factor gets half: queries, keys, attention and values, gates
    softmax                 as it is

The rules hold while the model runs inside `relevance_rules`: calls of torch are answered on
the way, nothing of the model is replaced.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from slalom.classifiers.huggingface.batching import Frame, TokenRows, Windowed, assemble, frame_in
from slalom.classifiers.huggingface.calls import (
    forward_accepts,
    pad_id,
    preserve_settings,
    takes_types,
)
from slalom.classifiers.internals import Outcome
from slalom.document import Document, IntArray, with_fixed_parts
from slalom.errors import ClassifierError, InputError


def internals_of_model(model: Any, tokenizer: Any, *, n_classes: int) -> "ModelInternals":
    """The inside of a transformers model, or a sentence about why it has none."""
    if not hasattr(model, "get_input_embeddings") or not hasattr(model, "config"):
        raise InputError(
            f"{type(model).__name__} does not show its embeddings: gradient and attention methods "
            "need a transformers model; use 'slalom', 'lime' or 'kernel-shap'"
        )
    if getattr(model.config, "is_encoder_decoder", False):
        raise InputError(
            f"{type(model).__name__} reads its text twice, as encoder and as decoder: "
            "gradient and attention methods cannot tell the two apart; use 'slalom' or 'lime'"
        )
    return ModelInternals(model, tokenizer, n_classes)


@dataclass(frozen=True)
class ModelInternals:
    """The inside of a Hugging Face classifier."""

    model: Any
    tokenizer: Any
    n_classes: int

    def unit_of_token(self, document: Document) -> IntArray:
        frame = _frame(document)
        parts = with_fixed_parts(frame.slots, frame.n_fixed, document.full())[0]
        units = np.repeat(parts, frame.lengths[parts])
        return np.where(units < document.n_units, units, -1).astype(np.int32)

    def embeddings(self, document: Document) -> Tensor:
        return self._embedded(self.ids(document))

    def blank(self, document: Document) -> Tensor:
        """Units become the mask token, else another special one, else the mean of all tokens."""
        embeddings = self.embeddings(document).clone()
        inside = torch.from_numpy(self.unit_of_token(document) >= 0)
        embeddings[inside] = self._nothing()
        return embeddings

    def _nothing(self) -> Tensor:
        tokenizer = self.tokenizer
        for kind in ("mask", "pad", "unk", "eos", "bos"):
            token = getattr(tokenizer, f"{kind}_token_id")
            if token is not None:
                return self._embedded(torch.tensor([token]))
        weights: Tensor = self.model.get_input_embeddings().weight
        return weights.detach().mean(dim=0, keepdim=True)

    def logits_from_embeddings(self, document: Document, embeddings: Tensor) -> Tensor:
        return self._logits(self._output(document, embeddings, hidden=False, attentions=False))

    def attentions(self, document: Document) -> tuple[Tensor, Tensor]:
        with torch.no_grad(), _eager(self.model):
            embeddings = self.embeddings(document)[None]
            output = self._output(document, embeddings, hidden=False, attentions=True)
        layers = [layer for layer in getattr(output, "attentions", None) or () if layer is not None]
        if not layers:
            raise ClassifierError(
                f"{type(self.model).__name__} shows no attention: use a gradient method or 'slalom'"
            )
        weights = torch.stack([layer[0].double().cpu() for layer in layers])
        return weights, self._readers(weights)

    def relevance(self, document: Document, outcome: Outcome) -> Tensor:
        embeddings = self.embeddings(document)[None].detach().requires_grad_()
        with torch.enable_grad(), _eager(self.model), relevance_rules(self.model):
            output = self._output(document, embeddings, hidden=True, attentions=False)
            states = getattr(output, "hidden_states", None) or (embeddings,)
            score = outcome(self._logits(output)).sum()
            # positions and all, where the model shows what goes into its first layer
            places = [states[0], embeddings] if states[0].requires_grad else [embeddings]
            slopes = torch.autograd.grad(score, places, allow_unused=True)
        place, slope = next((p, s) for p, s in zip(places, slopes, strict=True) if s is not None)
        return (slope * place).sum(dim=-1)[0].detach()

    def mask_gradients(self, document: Document, outcome: Outcome) -> Tensor:
        embeddings = self.embeddings(document)[None]
        causal = any(getattr(module, "is_causal", False) for module in self.model.modules())
        with torch.enable_grad(), _eager(self.model):
            bias = torch.zeros_like(embeddings[0, :, 0], requires_grad=True)  # (T,)
            mask = _added_to_logits(bias, causal=causal)
            try:
                output = self._output(
                    document, embeddings, hidden=False, attentions=False, mask=mask
                )
                logits = self._logits(output)
                (slopes,) = torch.autograd.grad(outcome(logits).sum(), bias)
            except (RuntimeError, ValueError, IndexError) as problem:
                raise InputError(self._takes_no_mask()) from problem
        with torch.no_grad():
            plain = self.logits_from_embeddings(document, embeddings)
        if not torch.allclose(logits, plain, atol=1e-3, rtol=1e-3):
            raise InputError(self._takes_no_mask())
        return slopes.detach()

    def _takes_no_mask(self) -> str:
        return (
            f"{type(self.model).__name__} does not take an attention mask of four dimensions: "
            "use a gradient method or 'slalom'"
        )

    def ids(self, document: Document) -> Tensor:
        return torch.from_numpy(self._row(document).ids).long()

    def _row(self, document: Document) -> TokenRows:
        return assemble(_frame(document), document.full())

    def _embedded(self, ids: Tensor) -> Tensor:
        table = self.model.get_input_embeddings()
        with torch.no_grad():
            return table(ids.to(table.weight.device))  # type: ignore[no-any-return]

    def _output(
        self,
        document: Document,
        embeddings: Tensor,
        *,
        hidden: bool,
        attentions: bool,
        mask: Tensor | None = None,
    ) -> Any:
        """What the model makes of these embeddings in the place of its own."""
        ids = self.ids(document).to(embeddings.device).expand(embeddings.shape[:2])
        inputs: dict[str, Any] = {"input_ids": ids}
        if forward_accepts(self.model, "attention_mask"):
            inputs["attention_mask"] = torch.ones_like(ids) if mask is None else mask
        if takes_types(self.model, self.tokenizer):
            types = torch.from_numpy(self._row(document).types).long()
            inputs["token_type_ids"] = types.to(ids.device).expand(ids.shape)
        wanted = {"output_hidden_states": hidden, "output_attentions": attentions}
        inputs |= {name: True for name, wish in wanted.items() if wish}
        pad = pad_id(self.model, self._row(document), spare=self.tokenizer.pad_token_id)
        with (
            _unhooked(self.model),
            preserve_settings(self.model, pad),
            _replaced(self.model, ids, embeddings),
        ):
            return self.model(**inputs)

    def _logits(self, output: Any) -> Tensor:
        """(n, n_classes), a single output read as the classifier reads it."""
        logits: Tensor = output.logits
        if logits.shape[1] < self.n_classes:
            return torch.cat([torch.zeros_like(logits), logits], dim=1)
        return logits

    def _readers(self, weights: Tensor) -> Tensor:
        """Decoders answer at the last token, encoders at the first unless their config differs."""
        n_tokens = weights.shape[-1]
        config = self.model.config
        pooling = getattr(config, "classifier_pooling", getattr(config, "summary_type", "first"))
        if pooling == "mean":
            return torch.full((n_tokens,), 1 / n_tokens, dtype=weights.dtype)
        causal = n_tokens > 1 and not weights.triu(1).any()
        reader = torch.zeros(n_tokens, dtype=weights.dtype)
        reader[-1 if causal or pooling == "last" else 0] = 1.0
        return reader


def _added_to_logits(bias: Tensor, *, causal: bool) -> Tensor:
    """A number per key, the same for every query, as the mask a model adds: (1, 1, T, T)."""
    n_tokens = len(bias)
    mask = bias.expand(n_tokens, n_tokens)
    if causal:
        later = torch.ones_like(mask, dtype=torch.bool).triu(1)
        mask = mask.masked_fill(later, torch.finfo(bias.dtype).min)
    return mask[None, None]


def _frame(document: Document) -> Frame:
    if isinstance(document.frame, Windowed):
        raise InputError(
            "the text is longer than the model reads at once: gradient and attention methods "
            "do not work in windows; use 'slalom', 'lime' or 'kernel-shap'"
        )
    return frame_in(document)


@contextmanager
def _unhooked(model: nn.Module) -> Iterator[None]:
    """transformers leaves its capturing hooks on the model, which then no longer pickles."""
    mark = "_output_capturing_hooks_installed"
    before = {
        module: (dict(module._forward_hooks), mark in vars(module)) for module in model.modules()
    }
    try:
        yield
    finally:
        for module, (hooks, marked) in before.items():
            for key in [key for key in module._forward_hooks if key not in hooks]:
                del module._forward_hooks[key]
            if not marked:
                vars(module).pop(mark, None)


@contextmanager
def _eager(model: nn.Module) -> Iterator[None]:
    """Attention in plain sight for a while: fused kernels do not give their weights away."""
    found = {id(c): c for m in model.modules() if (c := getattr(m, "config", None)) is not None}
    configs = [c for c in found.values() if hasattr(c, "_attn_implementation_internal")]
    before = [config._attn_implementation_internal for config in configs]
    with preserve_settings(model, None):  # two threads must not put back each other's changes
        try:
            for config in configs:
                config._attn_implementation_internal = "eager"
            yield
        finally:
            for config, implementation in zip(configs, before, strict=True):
                config._attn_implementation_internal = implementation


@contextmanager
def _replaced(model: Any, ids: Tensor, embeddings: Tensor) -> Iterator[None]:
    """The model looks its ids up and finds these embeddings."""

    def found(module: nn.Module, given: tuple[Any, ...], looked_up: Tensor) -> Tensor:
        if given and torch.equal(given[0], ids):
            return embeddings
        if given and torch.equal(given[0], ids.T):  # XLNet puts time first
            return embeddings.transpose(0, 1)
        return looked_up

    handle = model.get_input_embeddings().register_forward_hook(found)
    try:
        yield
    finally:
        handle.remove()


ACTIVATIONS = {
    functional.relu,
    functional.gelu,
    functional.silu,
    functional.leaky_relu,
    functional.tanh,
    functional.mish,
    torch.tanh,
    Tensor.tanh,
}
PRODUCTS = {torch.matmul, torch.bmm, torch.mul, Tensor.matmul, Tensor.mul, Tensor.bmm}
PRODUCTS |= {Tensor.__matmul__, Tensor.__mul__}


@contextmanager
def relevance_rules(model: nn.Module) -> Iterator[None]:
    """Gradients taken of what the model computes in here are relevances per input."""
    with ExitStack() as stack:
        for module in model.modules():
            # an activation written as a formula: its outcome, not its parts, follows the rule
            if type(module).__module__ == "transformers.activations":
                handle = module.register_forward_hook(lambda _, given, out: _ratio(given[0], out))
                stack.callback(handle.remove)
        stack.enter_context(_Rules())
        yield


class _Rules(TorchFunctionMode):
    """Answers calls of torch by the rules; the mode is off while a call is answered."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        named = kwargs or {}
        if func in ACTIVATIONS:
            return _ratio(args[0], func(*args, **named))
        if func in PRODUCTS and all(_is_activation(factor) for factor in args[:2]):
            return func(*(_halved(factor) for factor in args[:2]), *args[2:], **named)
        if func is functional.layer_norm:
            return _layer_norm(*args, **named)
        if func in (torch.rsqrt, Tensor.rsqrt):  # inside an RMS norm
            return func(*args, **named).detach()
        return func(*args, **named)


def _layer_norm(
    x: Tensor,
    shape: tuple[int, ...],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    axes = tuple(range(-len(shape), 0))
    centred = x - x.mean(dim=axes, keepdim=True)
    scale = torch.rsqrt(centred.square().mean(dim=axes, keepdim=True) + eps).detach()
    normed = centred * scale
    normed = normed if weight is None else normed * weight
    return normed if bias is None else normed + bias


def _ratio(x: Tensor, outcome: Tensor) -> Tensor:
    ratio = torch.where(x == 0, torch.zeros_like(x), outcome / x).detach()
    return x * ratio + (outcome - x * ratio).detach()  # f(0) need not be 0


def _halved(x: Tensor) -> Tensor:
    """The same number with half of its gradient."""
    return x / 2 + (x / 2).detach()


def _is_activation(factor: Any) -> bool:
    return isinstance(factor, Tensor) and factor.requires_grad and not factor.is_leaf
