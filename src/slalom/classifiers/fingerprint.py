"""A short key that distinguishes PyTorch models of the same name: a sample of the weights, and
what the model reads around a text."""

from typing import Any

from slalom.classifiers.disk_cache import key_of

N_LOOKED_AT = 32  # numbers per tensor, since training changes nearly all


def fingerprint(model: Any, *said: str) -> str:
    """The same on every device and machine."""
    weights = [f"{name} {_looked_at(tensor)}" for name, tensor in model.state_dict().items()]
    return key_of(*weights, *said)[:16]


def _looked_at(tensor: Any) -> str:
    if not hasattr(tensor, "reshape") or tensor.is_meta:  # not a tensor, or one without data
        return ""
    flat = tensor.detach().reshape(-1)
    step = max(1, len(flat) // N_LOOKED_AT)
    return f"{tuple(tensor.shape)} {flat[::step][:N_LOOKED_AT].double().cpu().tolist()}"
