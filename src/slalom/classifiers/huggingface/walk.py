"""All modules and weights of a model: torch's own walk takes as long as a small batch."""

from typing import Any
from weakref import WeakKeyDictionary

from torch import Tensor, nn

_n_weights: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


def modules_of(model: nn.Module) -> list[nn.Module]:
    """Each once, however often it is used."""
    found: dict[int, nn.Module] = {id(model): model}
    left = [model]
    while left:
        for module in left.pop()._modules.values():
            if module is not None and id(module) not in found:
                found[id(module)] = module
                left.append(module)
    return list(found.values())


def weights_of(modules: list[nn.Module]) -> list[Tensor]:
    """Of these modules, with those that are shared as often as they are."""
    parameters: list[Any] = [one for module in modules for one in module._parameters.values()]
    return [one for one in parameters if one is not None]


def n_weights_of(model: nn.Module) -> int:
    """Those that every token is multiplied with: all but tables; counted once per model."""
    if model not in _n_weights:
        every = [one for one in modules_of(model) if not isinstance(one, nn.Embedding)]
        _n_weights[model] = sum(one.numel() for one in weights_of(every))
    return _n_weights[model]
