"""The same model before it learnt anything: the control that shows what its structure alone gives."""

from __future__ import annotations

from dataclasses import replace

import torch

from dialoscope.errors import UsageError
from dialoscope.model.huggingface.adapter import HuggingFaceModel
from dialoscope.model.protocol import Account, DialogueModel
from dialoscope.model.seq2seq import Seq2Seq, Seq2SeqModel


def untrained(model: DialogueModel, *, seed: int = 0) -> DialogueModel:
    """A model of the same structure, vocabulary and reading, with weights drawn anew; the given one stays as it is."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        if isinstance(model, Seq2SeqModel):
            return _ours(model)
        if isinstance(model, HuggingFaceModel):
            return _huggingface(model)
    raise UsageError(f"Model '{model.name}' does not say what it is made of, so no untrained one can be made.")


def _ours(model: Seq2SeqModel) -> Seq2SeqModel:
    like = next(model.network.parameters())
    name = f"{model.name.partition('@')[0]}-untrained"
    turns, size = model.context_turns, model.batch_size
    network = Seq2Seq(model.network.settings).to(like.device, like.dtype).eval()
    return Seq2SeqModel(network, model.vocabulary, name=name, batch_size=size, context_turns=turns)


def _huggingface(model: HuggingFaceModel) -> HuggingFaceModel:
    network = model.network.model
    made = type(network)(network.config).to(device=network.device, dtype=network.dtype).eval()
    network = replace(model.network, model=made)
    return replace(model, checkpoint=f"{model.checkpoint}-untrained", network=network, account=Account())
