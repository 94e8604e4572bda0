from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from tests.model.samples import tiny
from torch import nn

from turnwise.model.settings import Norm, Settings
from turnwise.model.transformer import DecoderLayer, EncoderLayer, Heads, positions

BASE = replace(tiny("overlap-transformer"), width=12, embedding=12, heads=3, dropout=0.0)


def copy_heads(ours: Heads, library: nn.MultiheadAttention) -> None:
    with torch.no_grad():
        parts = (ours.query, ours.keys, ours.values)
        library.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
        library.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
        library.out_proj.load_state_dict(ours.out.state_dict())


def sizes(settings: Settings) -> dict[str, object]:
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
