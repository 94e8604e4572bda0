from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from dialoscope.errors import UsageError
from dialoscope.model.huggingface.adapter import HuggingFaceModel
from dialoscope.model.huggingface.batches import Network
from dialoscope.model.huggingface.generation import Gumbel, generations
from dialoscope.model.huggingface.likelihood import likelihoods
from dialoscope.model.huggingface.samples import Sample
from dialoscope.model.protocol import Decoding

Load = Callable[..., HuggingFaceModel]
CONTEXTS = [["hello there", "", "where is the station?"], ["hi"], ["it is near the old bridge", "a"]]


def naive(model: HuggingFaceModel, context: list[str], steps: int) -> str:
    """The likeliest token, again and again, without cache or batch."""
    sample, network = model.sampler.prompts([context])[0], model.network
    opening = sample.source if network.kind == "causal" else network.opening
    written: list[int] = []
    while len(written) < steps and not set(written) & model.sampler.ends:
        ids = torch.tensor([[*opening, *written]])
        inputs = {"input_ids": ids}
        if network.kind != "causal":
            inputs = {"input_ids": torch.tensor([sample.source]), "decoder_input_ids": ids}
        with torch.no_grad():
            written.append(int(network.model(**inputs).logits[0, -1].argmax()))
    return model._text([token for token in written if token not in model.sampler.ends])


@pytest.mark.parametrize("name", ["gpt2", "llama", "bart", "t5"])
def test_greedy_is_the_likeliest_token_again_and_again(model: Load, name: str) -> None:
    found = model(name).generate(CONTEXTS, decoding=Decoding(max_tokens=6))
    assert found == [naive(model(name), context, 6) for context in CONTEXTS]


@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
@pytest.mark.parametrize("name", ["llama", "t5"])
def test_a_response_does_not_depend_on_its_company(model: Load, name: str, method: str) -> None:
    decoding = Decoding(method=method, max_tokens=5, beams=2)  # type: ignore[arg-type]
    among = model(name).generate(CONTEXTS, decoding=decoding)
    assert among == [model(name).generate([context], decoding=decoding)[0] for context in CONTEXTS]


def test_another_seed_is_another_sample(model: Load) -> None:
    drawn = {model("llama").generate([["hi"]], decoding=Decoding("sample", max_tokens=5, seed=k))[0] for k in range(4)}
    assert len(drawn) > 1


def test_the_most_likely_word_alone_is_greedy(model: Load) -> None:
    narrow = Decoding("sample", top_k=1, max_tokens=5)
    assert model("llama").generate(CONTEXTS, decoding=narrow) == model("llama").generate(
        CONTEXTS, decoding=Decoding(max_tokens=5)
    )


def test_gumbel_noise_draws_each_word_as_often_as_it_is_likely() -> None:
    shares, draws = [0.5, 0.3, 0.2], 4000
    samples = [Sample([k], [-1], [], 1, 0) for k in range(draws)]
    scores = torch.tensor(shares).log().expand(draws, 3)
    counts = Counter(Gumbel(0, samples)(torch.empty(0), scores).argmax(-1).tolist())
    for word, share in enumerate(shares):  # four standard errors
        assert abs(counts[word] / draws - share) < 4 * math.sqrt(share * (1 - share) / draws)


def test_a_beam_is_at_least_as_likely_as_greedy(model: Load) -> None:
    network, prompts = model("gpt2").network, model("gpt2").sampler.prompts(CONTEXTS)
    chances = []
    for decoding in (Decoding("greedy", max_tokens=3), Decoding("beam", max_tokens=3)):
        written = generations(network, prompts, decoding=decoding, ends=[])
        samples = [replace(prompt, target=ids) for prompt, ids in zip(prompts, written, strict=True)]
        chances.append([each.total for each in likelihoods(network, samples)])
    assert all(beam >= greedy - 1e-5 for greedy, beam in zip(*chances, strict=True))


@pytest.mark.parametrize("name", ["gpt2", "bart"])
def test_beams_are_compared_by_the_mean_of_a_token_or_by_the_sum(model: Load, name: str) -> None:
    network, prompts = model(name).network, model(name).sampler.prompts(CONTEXTS * 2)
    ends = list(range(100))  # so many that responses of all lengths end
    chances = {}
    for is_mean in (True, False):
        decoding = Decoding("beam", max_tokens=8, length_normalised=is_mean)
        written = generations(network, prompts, decoding=decoding, ends=ends)
        # The end is the likeliest of its kind, for beam search takes that one.
        chances[is_mean] = [_chance(network, *both, ends) for both in zip(prompts, written, strict=True)]
    means, sums = ([total / steps for total, steps in chances[True]], [total for total, _ in chances[False]])
    assert all(a >= total / steps - 1e-5 for a, (total, steps) in zip(means, chances[False], strict=True))
    assert all(a >= total - 1e-5 for a, (total, _) in zip(sums, chances[True], strict=True))
    assert chances[True] != chances[False]


def _chance(network: Network, prompt: Sample, written: list[int], ends: list[int]) -> tuple[float, int]:
    """Log p of what was written, its end included where it came to one, and over how many tokens."""
    ended = [[*written, end] for end in ends] if len(written) < 8 else [written]
    found = likelihoods(network, [replace(prompt, target=target) for target in ended])
    return max(each.total for each in found), len(ended[0])


def test_what_transformers_cannot_write_is_one_line(model: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**inputs: Any) -> None:
        raise ValueError("`position_ids` are incorrect.\nThey should …")  # ProphetNet in transformers 5.22

    monkeypatch.setattr(model("gpt2").network.model, "generate", refuse)
    with pytest.raises(
        UsageError, match=r"transformers cannot write with GPT2LMHeadModel: `position_ids` are incorrect\.$"
    ):
        model("gpt2").generate([["hi"]])


def test_a_newline_ends_a_plainly_joined_turn(model: Load) -> None:
    loaded = model("gpt2")
    ids = loaded.sampler.reader.tokenizer.encode("hello\n\nyou", add_special_tokens=False)
    assert loaded._text(ids) == "hello"


def test_special_tokens_are_not_text(model: Load) -> None:
    ids = model("llama").sampler.reader.tokenizer.encode("<|im_start|>hello<s>", add_special_tokens=False)
    assert model("llama")._text(ids) == "hello"
