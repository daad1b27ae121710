"""Architectures, and training that is done once."""

import importlib.util

import click
import pytest
import torch
from click.testing import CliRunner
from training.__main__ import claim, main
from training.architectures import ARCHITECTURES, Size, selective_scan
from training.loop import logits_of, pad, read_record
from training.models import load, minilm, scratch


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_padding_changes_nothing(kind):
    torch.manual_seed(0)
    model = ARCHITECTURES[kind](Size(1, 16, 2, 30)).eval()
    forward = logits_of(model)
    with torch.no_grad():
        together = forward(*pad([[5, 6, 7], [5, 6, 7, 8, 9, 10]], torch.device("cpu")))
        alone = forward(*pad([[5, 6, 7]], torch.device("cpu")))
    torch.testing.assert_close(together[:1], alone, rtol=1e-4, atol=1e-5)


def test_the_scan_is_that_of_transformers():
    spec = importlib.util.find_spec("transformers.models.mamba.modeling_mamba")
    untouched = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(untouched)
    draw = torch.Generator().manual_seed(0)
    arguments = [
        torch.randn(shape, generator=draw, dtype=torch.double).requires_grad_()
        for shape in [(2, 6, 9), (2, 6, 9), (6, 4), (2, 4, 9), (2, 4, 9), (6,), (2, 6, 9), (6,)]
    ]
    arguments[2].data = -arguments[2].data.exp()  # decays

    def found(scan):
        *positional, D, z, delta_bias = arguments
        options = {"D": D, "z": z, "delta_bias": delta_bias, "delta_softplus": True}
        result, last = scan(*positional, **options, return_last_state=True)
        return result, last, torch.autograd.grad(result.square().sum(), arguments)

    torch.testing.assert_close(
        found(selective_scan), found(untouched.mamba_selective_scan), rtol=1e-4, atol=1e-5
    )


def test_minilm_is_trained_once_and_loads_in_full_precision(bench):
    folder = minilm(bench, 1)
    record = read_record(folder)
    assert (record.name, record.n_train, record.n_test) == ("minilm-1", 8, 8)
    model, tokenizer = load(minilm(bench, 1))
    assert read_record(folder) == record
    assert model.config.num_hidden_layers == 1
    assert model.config.id2label == {0: "negative", 1: "positive"}
    assert model.dtype == torch.float32
    assert tokenizer.cls_token == "[CLS]"


@pytest.mark.parametrize("kind", ["gpt2", "mamba"])
def test_decoders_from_scratch_read_back_without_special_tokens(bench, kind):
    model, tokenizer = load(scratch(bench, kind, 1))
    ids = tokenizer("good film", return_tensors="pt")["input_ids"]
    assert tokenizer.convert_ids_to_tokens(ids[0]) == tokenizer.tokenize("good film")
    assert torch.isfinite(model(input_ids=ids).logits).all()


def test_command_line_trains_and_shows_the_record(bench):
    options = ["--data", str(bench.data), "--cache", str(bench.cache), "--only", "naive-bayes"]
    result = CliRunner().invoke(main, ["classic", *options])
    assert result.exit_code == 0, result.output
    assert "naive-bayes: accuracy 1.0000 on 8" in result.output


def test_command_line_names_every_group():
    result = CliRunner().invoke(main, ["--help"])
    for group in ("bundled", "minilm", "synthetic", "imdb", "smollm", "classic"):
        assert group in result.output


def test_a_cache_is_of_one_seed(tmp_path):
    cache = tmp_path / "cache"
    claim(cache, 3)
    claim(cache, 3)
    with pytest.raises(click.ClickException, match="holds models of seed 3"):
        claim(cache, 0)
    older = tmp_path / "older"  # from before caches were marked
    (older / "minilm-6").mkdir(parents=True)
    claim(older, 0)


def test_an_unknown_model_is_told_in_one_sentence(tmp_path):
    line = ["classic", "--only", "nope", "--cache", str(tmp_path)]
    result = CliRunner().invoke(main, line)
    assert result.exit_code != 0
    assert "unknown model 'nope'" in result.output
    assert "Traceback" not in result.output
