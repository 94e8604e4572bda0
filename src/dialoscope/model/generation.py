"""Writing responses: greedily, by beam search, or by sampling; all contexts of a batch at once.

A response ends with the end token or after `max_tokens`. Padding, the marks of a start and of a turn's end, and the
mark of unknown words are no words and never written. Sampling draws by a row's own numbers, made from the seed and its
context, so the same context gets the same response whatever stands beside it; for several responses to one context,
change the seed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dialoscope.model.batch import Batch
from dialoscope.model.cell import at_least_fp32
from dialoscope.model.network import Seq2Seq
from dialoscope.model.protocol import Decoding
from dialoscope.model.vocabulary import END, PAD, START, TURN, UNKNOWN

# An unknown word has a likelihood, the only honest one for words the vocabulary lacks, and perplexity counts it; but
# "<unknown>" says nothing to a reader and matches no word of a reference. So it is left out of what can be written, and
# the other words share its chance. The end of the response is always possible, so something is always left.
NEVER = (PAD, START, TURN, UNKNOWN)


def generate(network: Seq2Seq, batch: Batch, decoding: Decoding) -> list[list[int]]:
    """The tokens of a response to each context, without marks."""
    with torch.no_grad():
        written = (
            beam_search(network, batch, decoding) if decoding.method == "beam" else _one_each(network, batch, decoding)
        )
    return [_until_end(row) for row in written.tolist()]


def _until_end(row: list[int]) -> list[int]:
    return row[: row.index(END)] if END in row else row


def _one_each(network: Seq2Seq, batch: Batch, decoding: Decoding) -> Tensor:
    """Greedy or sampled tokens (batch, at most max_tokens)."""
    draws = draw_numbers(batch, decoding) if decoding.method == "sample" else None
    progress = network.start(batch)
    token = torch.full_like(batch.length, START)
    is_done = torch.zeros_like(token, dtype=torch.bool)
    written: list[Tensor] = []
    while len(written) < decoding.max_tokens and not is_done.all():
        scores, progress = network.step(token, progress)
        scores = words_only(scores)
        token = scores.argmax(-1) if draws is None else sample(scores, draws[:, len(written)], decoding)
        token = torch.where(is_done, END, token)
        is_done = is_done | (token == END)
        written.append(token)
    return torch.stack(written, dim=1) if written else token[:, :0]


def words_only(scores: Tensor) -> Tensor:
    """Scores in fp32 or better, with no chance for marks that are no words."""
    allowed = at_least_fp32(scores).clone()
    allowed[:, list(NEVER)] = float("-inf")
    return allowed


# --- Sampling ---------------------------------------------------------------------------------------------------------


def draw_numbers(batch: Batch, decoding: Decoding) -> Tensor:
    """Uniform numbers (batch, max_tokens), each row's own by the seed and its context."""
    contexts, lengths = batch.context.tolist(), batch.length.tolist()
    rows = [
        np.random.default_rng([decoding.seed, *context[:length]]).random(decoding.max_tokens)
        for context, length in zip(contexts, lengths, strict=True)
    ]
    return torch.from_numpy(np.stack(rows)).to(batch.context.device)


def sample(scores: Tensor, drawn: Tensor, decoding: Decoding) -> Tensor:
    """The word under each drawn number, in the cumulative distribution over the vocabulary's order: (batch,)."""
    shares = kept_shares(scores, decoding).double().cumsum(-1)
    words = torch.searchsorted(shares, (drawn * shares[:, -1])[:, None], right=True)[:, 0]
    return words.clamp(max=scores.shape[-1] - 1)


def kept_shares(scores: Tensor, decoding: Decoding) -> Tensor:
    """What temperature, top-k and top-p leave of the distribution: (batch, vocabulary), not scaled to 1 again."""
    scores = scores / decoding.temperature
    if decoding.top_k:
        least = scores.topk(min(decoding.top_k, scores.shape[-1]), dim=-1).values[:, -1:]
        scores = scores.masked_fill(scores < least, float("-inf"))
    shares = torch.softmax(scores, dim=-1)
    if decoding.top_p >= 1:
        return shares
    sorted_shares, words = shares.sort(dim=-1, descending=True)
    is_kept = sorted_shares.cumsum(-1) - sorted_shares < decoding.top_p  # the first word over the limit stays
    is_kept[:, 0] = True
    return torch.zeros_like(shares).scatter(-1, words, sorted_shares * is_kept)


# --- Beam search ------------------------------------------------------------------------------------------------------


class Beams(NamedTuple):
    """Unfinished responses of each context, and the best finished one."""

    score: Tensor  # (batch, beams) summed log p; -inf: given up for a finished one
    tokens: Tensor  # (batch, beams, written so far)
    best: Tensor  # (batch,) score of the best finished response, as it is compared
    response: Tensor  # (batch, max_tokens + 1) its tokens, then end tokens


def beam_search(network: Seq2Seq, batch: Batch, decoding: Decoding) -> Tensor:
    """The best response found (batch, max_tokens + 1); a finished one gives up its beam."""
    rows, width = len(batch.length), decoding.beams
    beams = _first_beams(batch, decoding)
    token = torch.full((rows * width,), START, device=batch.length.device)
    progress = network.start(batch)
    progress = progress.select(torch.arange(rows, device=token.device).repeat_interleave(width))
    for _ in range(decoding.max_tokens):
        scores, progress = network.step(token, progress)
        log = words_only(torch.log_softmax(scores.float(), dim=-1)).view(rows, width, -1)
        beams, origin = _extended(beams, log, decoding)
        if bool((beams.score == float("-inf")).all()):
            return beams.response
        progress, token = progress.select(origin), beams.tokens[:, :, -1].flatten()
    return _finished(beams, beams.score, beams.tokens, decoding).response


def _first_beams(batch: Batch, decoding: Decoding) -> Beams:
    rows, device = len(batch.length), batch.length.device
    score = torch.full((rows, decoding.beams), float("-inf"), device=device)
    score[:, 0] = 0  # all beams are the same before the first word: one is enough
    tokens = torch.empty(rows, decoding.beams, 0, dtype=torch.long, device=device)
    response = torch.full((rows, decoding.max_tokens + 1), END, device=device)
    return Beams(score, tokens, torch.full((rows,), float("-inf"), device=device), response)


def _extended(beams: Beams, log: Tensor, decoding: Decoding) -> tuple[Beams, Tensor]:
    """The best continuations of all beams of a context, and the row each comes from."""
    rows, width, words = log.shape
    score, place = (beams.score[..., None] + log).flatten(1).topk(width, dim=-1)
    parent, token = place // words, place % words
    tokens = beams.tokens.gather(1, parent[..., None].expand(-1, -1, beams.tokens.shape[-1]))
    tokens = torch.cat([tokens, token[..., None]], dim=-1)
    ended = token == END
    beams = _finished(beams, score.masked_fill(~ended, float("-inf")), tokens, decoding)
    first = torch.arange(rows, device=token.device)[:, None] * width
    return beams._replace(score=score.masked_fill(ended, float("-inf")), tokens=tokens), (first + parent).flatten()


def _finished(beams: Beams, score: Tensor, tokens: Tensor, decoding: Decoding) -> Beams:
    """Keep the best of these and of those that finished before; a score of -inf is none."""
    length = tokens.shape[-1]
    best, beam = (score / length if decoding.length_normalised else score).max(-1)
    response = torch.full_like(beams.response, END)
    response[:, :length] = tokens[torch.arange(len(beam), device=beam.device), beam]
    is_better = best > beams.best
    chosen = torch.where(is_better[:, None], response, beams.response)
    return beams._replace(best=torch.where(is_better, best, beams.best), response=chosen)
