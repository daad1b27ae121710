"""Rows end to end get the answers that they get one by one."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from slalom.classifiers.huggingface import calls, encoder
from slalom.classifiers.huggingface.batching import MAX_ROWS, LongArray, TokenRows, in_row_order
from slalom.classifiers.huggingface.devices import DeviceRows, on_device, rounded_up
from slalom.classifiers.huggingface.encoder import attention_by_rows, encoder_of, packed_scores
from tokenizers_made_here import tiny

ENCODERS = ["BERT", "DistilBERT", "Electra", "RoBERTa"]
LENGTHS = [9, 1, 4, 12, 2, 8]


def row_by_row(
    query: Tensor, key: Tensor, value: Tensor, asking: Tensor, read: Tensor, *longest: int
) -> Tensor:
    """What PyTorch's attention for rows of any length says of itself, in a loop.

    Of tokens behind the last row it says nothing.
    """
    assert longest == (int(asking.diff().max()), int(read.diff().max()))
    found = []
    for number in range(len(asking) - 1):
        rows = slice(asking[number], asking[number + 1]), slice(read[number], read[number + 1])
        parts = (query[rows[0]], key[rows[1]], value[rows[1]])
        heads = (part.transpose(0, 1)[None] for part in parts)
        found.append(functional.scaled_dot_product_attention(*heads)[0].transpose(0, 1))
    nothing = torch.full((len(query) - int(asking[-1]), *query.shape[1:]), torch.nan)
    return torch.cat([*found, nothing])


def drawn(lengths: list[int], n_types: int = 1) -> TokenRows:
    rng = np.random.default_rng(0)
    ids = rng.integers(5, 300, sum(lengths)).astype(np.int32)
    types = rng.integers(0, n_types, sum(lengths)).astype(np.int32)
    return TokenRows(ids, types, np.array(lengths))


def own_scores(model: Any, rows: TokenRows) -> Tensor:
    typed = hasattr(model.config, "type_vocab_size")
    found = []
    for start, length in zip(rows.starts, rows.lengths, strict=True):
        ids, types = (
            torch.from_numpy(part[None, start : start + length]).long()
            for part in (rows.ids, rows.types)
        )
        found.append(model(input_ids=ids, **({"token_type_ids": types} if typed else {})).logits)
    return torch.cat(found)


@pytest.mark.parametrize("chosen", [[0, 1, 2, 3, 4, 5], [1, 2, 3], [3, 0, 5, 4], [2]])
@pytest.mark.parametrize("architecture", ENCODERS)
@torch.inference_mode()
def test_scores_are_the_models_own(architecture: str, chosen: list[int]) -> None:
    settings = {"type_vocab_size": 2} if architecture == "RoBERTa" else {}
    model, _ = tiny(architecture, **settings)
    encoder, rows = encoder_of(model.eval()), drawn(LENGTHS, n_types=2)
    assert encoder is not None
    there = on_device(rows, torch.device("cpu")).packed(np.array(chosen))
    expected = own_scores(model, rows)
    assert (expected[:, 1] - expected[:, 0]).std() > 0.01
    found = packed_scores(encoder, there, row_by_row)
    torch.testing.assert_close(found, expected[chosen], atol=1e-5, rtol=1e-5)


@torch.inference_mode()
def test_tokens_and_rows_that_fill_up_a_batch_change_no_answer() -> None:
    model, _ = tiny("BERT")
    lengths = [1 + number % 7 for number in range(37)]
    encoder, rows = encoder_of(model.eval()), drawn(lengths)
    there = on_device(rows, torch.device("cpu")).packed(np.arange(37))
    assert encoder is not None
    assert len(there.ids) > sum(lengths)
    assert rounded_up(37) > 37
    found = packed_scores(encoder, there, row_by_row)
    torch.testing.assert_close(found, own_scores(model, rows), atol=1e-5, rtol=1e-5)


def test_where_rows_begin_and_where_tokens_stand() -> None:
    there = on_device(drawn(LENGTHS), torch.device("cpu"))
    packed = there.packed(np.array([1, 2, 3]))
    assert packed.ids[:17].tolist() == there.ids[9:26].tolist()
    assert packed.bounds.tolist() == [0, 1, 5, 17]
    assert packed.places[:17].tolist() == [0, *range(4), *range(12)]
    assert packed.longest == 12


def test_sizes_of_batches_recur() -> None:
    sizes = {rounded_up(n) for n in range(2**16, 2**17)}
    assert len(sizes) == 17
    assert all(n <= rounded_up(n) <= n + n // 16 for n in range(1, 5000))
    lengths = [100] * 50
    there = on_device(drawn(lengths), torch.device("cpu"))
    n_tokens = {len(there.packed(np.arange(n)).ids) for n in range(41, 51)}
    assert n_tokens == {4352, 4608, 4864, 5120}


def test_weights_on_a_processor_are_asked_otherwise() -> None:
    model, _ = tiny("BERT")
    there = on_device(drawn(LENGTHS), torch.device("cpu"))
    for one in (model, model.bfloat16(), model.double()):
        assert encoder._end_to_end(one, there) is None


@pytest.mark.parametrize("architecture", ["BERT", "DistilBERT"])
def test_where_it_agrees_a_model_is_asked_so(
    architecture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a GPU; here its way is taken on a processor."""
    model, tokenizer = tiny(architecture)
    rows, asked = drawn(LENGTHS, n_types=2), []

    def end_to_end(model: Any, there: DeviceRows) -> Any:
        def ask(chosen: LongArray) -> Tensor:
            asked.append(chosen.tolist())
            found = encoder_of(model)
            assert found is not None
            return packed_scores(found, there.packed(chosen), row_by_row)

        return ask

    monkeypatch.setattr(encoder, "_end_to_end", end_to_end)
    typed = replace(rows, types=rows.types * (architecture == "BERT"))
    with torch.inference_mode():
        own = own_scores(model.eval(), typed).double().numpy()
    np.testing.assert_allclose(calls.answers(model, tokenizer, rows), own, atol=1e-5)
    assert len(asked) == 2  # a few are compared, then all are asked
    assert asked[1] == list(range(len(LENGTHS)))  # in their own order, without padding


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_this_pytorch_has_attention_by_rows(dtype: torch.dtype) -> None:
    """For numbers of 16 bits from 2.10 on; with an older one rows are padded."""
    release = tuple(map(int, torch.__version__.split(".")[:2]))
    has = dtype == torch.float32 or release >= (2, 10)
    assert (attention_by_rows(dtype) is not None) == has


def test_what_is_told_to_attention_in_32_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs on a GPU only; here it is seen to get what it says that it takes."""
    took = torch.ops.aten._efficient_attention_forward.default._schema.arguments
    names = [one.name for one in took]

    def attend(*given: Any) -> tuple[Tensor, None]:
        told = dict(zip(names, given, strict=False))
        assert told["bias"] is None
        assert told["dropout_p"] == told["custom_mask_type"] == 0
        parts = (told[name][0] for name in ("query", "key", "value"))
        rows = (told[name] for name in ("cu_seqlens_q", "cu_seqlens_k"))
        return row_by_row(*parts, *rows, told["max_seqlen_q"], told["max_seqlen_k"])[None], None

    monkeypatch.setattr(torch.ops.aten, "_efficient_attention_forward", attend)
    model, _ = tiny("BERT")
    encoder, rows = encoder_of(model.eval()), drawn(LENGTHS)
    assert encoder is not None
    by_rows = attention_by_rows(torch.float32)
    assert by_rows is not None
    with torch.inference_mode():
        there = on_device(rows, torch.device("cpu")).packed(np.arange(len(LENGTHS)))
        found = packed_scores(encoder, there, by_rows)
        torch.testing.assert_close(found, own_scores(model, rows), atol=1e-5, rtol=1e-5)


def test_batches_in_the_order_of_the_rows() -> None:
    lengths = np.array([5, 5, 1, 20, 3, 3, 3])
    found = [batch.tolist() for batch in in_row_order(lengths, budget=10)]
    assert found == [[0, 1], [2], [3], [4, 5, 6]]  # a row longer than the budget is alone
    assert not list(in_row_order(lengths[:0], budget=10))


def test_no_batch_has_more_rows_than_kernels_take() -> None:
    found = list(in_row_order(np.ones(MAX_ROWS + 5, dtype=np.int64), budget=10**9))
    assert [len(batch) for batch in found] == [MAX_ROWS, 5]
