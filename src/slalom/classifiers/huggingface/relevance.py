"""Attention-aware layer-wise relevance propagation (AttnLRP, Achtibat et al. 2024).

Relevance is gradient × input under changed rules of differentiation:

    normalisation           its scale is a constant
    activation              f(x) = x · (f(x)/x), the ratio a constant
    product of activations  each factor gets half: queries, keys, attention and values, gates
    softmax                 as it is

The rules hold while the model runs inside `relevance_rules`: calls of torch are answered on
the way, nothing of the model is replaced.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

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
                handle = module.register_forward_hook(_as_ratio)
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


def _as_ratio(module: nn.Module, given: tuple[Any, ...], outcome: Tensor) -> Tensor:
    return _ratio(given[0], outcome)


def _ratio(x: Tensor, outcome: Tensor) -> Tensor:
    ratio = torch.where(x == 0, torch.zeros_like(x), outcome / x).detach()
    return x * ratio + (outcome - x * ratio).detach()  # f(0) need not be 0


def _halved(x: Tensor) -> Tensor:
    """The same number with half of its gradient."""
    return x / 2 + (x / 2).detach()


def _is_activation(factor: Any) -> bool:
    return isinstance(factor, Tensor) and factor.requires_grad and not factor.is_leaf
