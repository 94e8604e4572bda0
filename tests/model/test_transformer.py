from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from tests.model.samples import batch_of, network, tiny
from torch import nn

from dialoscope.model.structure import Norm, Structure
from dialoscope.model.transformer import DecoderLayer, EncoderLayer, Heads, positions

BASE = replace(tiny("overlap-transformer"), width=12, embedding=12, heads=3, dropout=0.0)


def copy_heads(ours: Heads, library: nn.MultiheadAttention) -> None:
    with torch.no_grad():
        parts = (ours.query, ours.keys, ours.values)
        library.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
        library.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
        library.out_proj.load_state_dict(ours.out.state_dict())


def sizes(settings: Structure) -> dict[str, object]:
    return {"dim_feedforward": 48, "dropout": 0.0, "batch_first": True, "norm_first": settings.norm == "pre"}


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_an_encoder_layer_computes_what_the_librarys_does(norm: Norm) -> None:
    torch.manual_seed(0)
    settings = replace(BASE, norm=norm)
    ours, library = EncoderLayer(settings), nn.TransformerEncoderLayer(12, 3, **sizes(settings))  # type: ignore[arg-type]
    copy_heads(ours.itself, library.self_attn)
    library.linear1.load_state_dict(ours.wide[0].state_dict())
    library.linear2.load_state_dict(ours.wide[3].state_dict())
    x, real = torch.randn(2, 5, 12), torch.tensor([[True] * 5, [True] * 2 + [False] * 3])
    expected = library(x, src_key_padding_mask=~real)
    found = ours(x, real[:, None, None])
    torch.testing.assert_close(found[real], expected[real], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_decoder_layer_computes_what_the_librarys_does(norm: Norm) -> None:
    torch.manual_seed(0)
    settings = replace(BASE, norm=norm)
    ours, library = DecoderLayer(settings), nn.TransformerDecoderLayer(12, 3, **sizes(settings))  # type: ignore[arg-type]
    copy_heads(ours.itself, library.self_attn)
    copy_heads(ours.across, library.multihead_attn)
    library.linear1.load_state_dict(ours.wide[0].state_dict())
    library.linear2.load_state_dict(ours.wide[3].state_dict())
    x, memory = torch.randn(2, 4, 12), torch.randn(2, 5, 12)
    real = torch.tensor([[True] * 5, [True] * 2 + [False] * 3])
    later = torch.ones(4, 4, dtype=torch.bool).triu(1)
    expected = library(x, memory, tgt_mask=later, memory_key_padding_mask=~real)
    found, _, _ = ours(x, None, ours.across.places(memory), real[:, None, None])
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_positions_by_hand() -> None:
    found = positions(3, torch.zeros(1, 2, 4))
    assert found[0].tolist() == pytest.approx([math.sin(3), math.cos(3), math.sin(0.03), math.cos(0.03)])
    assert found[1].tolist() == pytest.approx([math.sin(4), math.cos(4), math.sin(0.04), math.cos(0.04)])


def test_log_attention_is_what_the_heads_mix_by() -> None:
    torch.manual_seed(0)
    heads = Heads(BASE).eval()
    query, memory = torch.randn(2, 3, 12), torch.randn(2, 4, 12)
    real = torch.tensor([[True] * 4, [True, True, False, False]])[:, None, None]
    places = heads.places(memory)
    mixed = heads.log_attention(query, places, real).exp() @ places.values
    torch.testing.assert_close(heads.out(mixed.transpose(1, 2).flatten(2)), heads(query, places, real))


def test_the_attention_of_all_heads_is_the_mean_of_their_shares() -> None:
    """Not of their logs, which a single head that looks away would decide."""
    model, batch = network(tiny("transformer")), batch_of(([[5, 6], [7]], [8, 9]), ([[10], [11, 12, 13]], [6]))
    together = model(batch, attention=True).log_attention
    _, by_head, _ = model.observe(batch)  # (layers, batch, heads, steps, places)
    assert by_head.shape[0] == by_head.shape[2] == 2
    assert together is not None
    torch.testing.assert_close(together.exp(), by_head.exp().mean(dim=(0, 2)))


def test_dropout_in_training_takes_whole_shares_of_attention() -> None:
    """Over one place the share is 1: with a dropout of one half it is dropped, or doubled."""
    torch.manual_seed(0)
    heads = Heads(replace(BASE, heads=1, dropout=0.5))
    heads.out = nn.Linear(12, 12, bias=False)
    nn.init.eye_(heads.out.weight)
    memory, query, is_seen = torch.randn(1, 1, 12), torch.randn(1, 400, 12), torch.ones(1, 1, 1, 1, dtype=torch.bool)
    places = heads.places(memory)
    shares = (heads(query, places, is_seen) / places.values[:, 0])[0, :, 0]
    assert set(shares.round(decimals=4).tolist()) == {0.0, 2.0}
    assert shares.mean().item() == pytest.approx(1.0, abs=4 / 400**0.5)  # a share deviates from its mean by 1
    torch.testing.assert_close(
        heads.eval()(query, places, is_seen)[0, :, 0] / places.values[0, 0, 0, 0], torch.ones(400)
    )
