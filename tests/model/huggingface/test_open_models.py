"""Models come as paths, names, loaded models, or pairs of transformers; whatever else comes is refused in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialoscope.corpus import Corpus, Dialogue, Turn
from dialoscope.errors import DialoscopeError, UsageError
from dialoscope.model import PerplexityResult, generate, load, perplexity
from dialoscope.model.huggingface import wrap_pretrained
from dialoscope.model.huggingface.adapter import HuggingFaceModel
from dialoscope.model.loading import open_models
from dialoscope.model.options import ModelOptions
from dialoscope.model.settings import PerplexitySettings
from dialoscope.record import direction

Folder = Callable[[str], Path]
CPU = ModelOptions(device="cpu", batch_size=3)
CONTEXTS, RESPONSES = [["hello there", "how are you?"], ["where?"]], ["fine", "over there"]


def talk(count: int, split: str = "test") -> list[Dialogue]:
    texts = ("hello there", "i am fine, thank you", "where is the station?", "over there")
    turns = tuple(Turn("AB"[n % 2], text) for n, text in enumerate(texts))
    return [Dialogue(turns[: 2 + n % 3], f"{split}-{n}", split) for n in range(count)]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus.of([*talk(3, "train"), *talk(6)], name="talk")


def pair(folder: Path, kind: str = "AutoModelForCausalLM") -> tuple[Any, Any]:
    """The network and the tokenizer as a user of transformers loads them."""
    import transformers

    return getattr(transformers, kind).from_pretrained(folder), transformers.AutoTokenizer.from_pretrained(folder)


def test_a_path_a_loaded_model_and_a_pair_are_the_same_model(checkpoint: Folder) -> None:
    folder = checkpoint("gpt2")
    given = {"path": folder, "text": str(folder), "loaded": load(folder, device="cpu"), "pair": pair(folder)}
    opened = open_models(given, CPU)
    assert list(opened) == list(given)
    assert opened["loaded"] is given["loaded"]
    found = {name: model.log_likelihood(CONTEXTS, RESPONSES) for name, model in opened.items()}
    for likelihoods in found.values():
        assert [one.tokens for one in likelihoods] == [one.tokens for one in found["path"]]
        assert [one.total for one in likelihoods] == pytest.approx([one.total for one in found["path"]], rel=1e-5)
    fingerprints = {model.name.partition("@")[2] for model in opened.values()}
    assert len(fingerprints) == 1
    assert opened["pair"].batch_size == opened["path"].batch_size == 3  # type: ignore[attr-defined]


def test_a_pair_reads_contexts_as_it_is_told(checkpoint: Folder) -> None:
    opened = open_models({"mine": pair(checkpoint("gpt2"))}, CPU, window=12, joining="plain", separator="newline")
    model = opened["mine"]
    assert isinstance(model, HuggingFaceModel)
    assert model.settings["window"] == 12


@pytest.mark.parametrize(("name", "kind"), [("bert", "AutoModel"), ("t5", "AutoModelForSeq2SeqLM")])
def test_a_pair_may_be_of_any_kind_that_a_folder_may_be(checkpoint: Folder, name: str, kind: str) -> None:
    folder = checkpoint(name)
    wrapped = wrap_pretrained(*pair(folder, kind), name="mine")
    assert wrapped.name.startswith("mine@")
    assert wrapped.encode(CONTEXTS) == pytest.approx(load(folder, device="cpu").encode(CONTEXTS), abs=1e-5)


def test_a_causal_network_without_its_head_only_encodes(checkpoint: Folder) -> None:
    wrapped = wrap_pretrained(*pair(checkpoint("gpt2"), "AutoModel"))
    assert len(wrapped.encode(CONTEXTS)) == 2
    with pytest.raises(UsageError):
        wrapped.log_likelihood(CONTEXTS, RESPONSES)


def test_a_pair_is_set_to_evaluation(checkpoint: Folder) -> None:
    network, tokenizer = pair(checkpoint("gpt2"))
    network.train()
    wrap_pretrained(network, tokenizer)
    assert not network.training


class Half:
    """A model of one's own, which only knows likelihoods."""

    name = "half"

    def log_likelihood(self, contexts: Any, responses: Any) -> list[Any]:
        return []


def test_a_model_of_ones_own_is_taken_as_it_is() -> None:
    mine: Any = Half()
    assert open_models({"mine": mine}, CPU)["mine"] is mine


def test_what_is_no_model_is_one_line(checkpoint: Folder, tmp_path: Path) -> None:
    network, tokenizer = pair(checkpoint("gpt2"))
    wrong: list[tuple[Any, str]] = [
        ("runs/mine", 'Give models by name, models={"mine": "runs/mine"}; found str.'),
        ([network], 'Give models by name, models={"mine": "runs/mine"}; found list.'),
        ({}, 'There is no model. Give models by name: models={"mine": "runs/mine"}.'),
        ({"": "x"}, "Names of models are texts, found ''."),
        ({3: "x"}, "Names of models are texts, found 3."),
        ({"a": 3}, "models['a'] takes a path, a hub name, a loaded model or a pair (model, tokenizer), found int."),
        ({"a": network}, "models['a'] is a network without its tokenizer: give the pair (model, tokenizer)."),
        (
            {"a": tokenizer},
            "models['a'] takes a path, a hub name, a loaded model or a pair (model, tokenizer), "
            f"found {type(tokenizer).__name__}.",
        ),
        (
            {"a": (tokenizer, network)},
            "models['a'] takes a pair (model, tokenizer) of transformers, "
            f"found ({type(tokenizer).__name__}, {type(network).__name__}).",
        ),
        ({"a": ("x", "y", "z")}, "models['a'] takes a pair (model, tokenizer) of transformers, found (str, str, str)."),
        (
            {"a": network, "b": tmp_path / "none"},
            f"No checkpoint at '{tmp_path / 'none'}': there is no such folder or file.",
        ),
    ]
    for models, message in wrong:
        with pytest.raises(DialoscopeError) as caught:
            open_models(models, CPU)
        assert str(caught.value) == message


# --- Perplexity and responses -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def result(checkpoint: Folder, corpus: Corpus) -> PerplexityResult:
    models = {"first": checkpoint("gpt2"), "same": pair(checkpoint("gpt2")), "other": checkpoint("t5")}
    return perplexity(corpus, models=models, device="cpu", split="test")


def test_perplexity_is_a_score_for_each_model(result: PerplexityResult) -> None:
    assert list(result.scores()) == ["first/test/perplexity", "same/test/perplexity", "other/test/perplexity"]
    assert all(direction(name) == "low" for name in result.scores())
    first, same = (result.scores()[f"{name}/test/perplexity"] for name in ("first", "same"))
    assert first.value == pytest.approx(same.value)
    assert result.parts == {"test": 6}
    assert result.used == "Measured: test, 6 dialogues."


def test_perplexities_are_compared_where_both_models_count_the_same_tokens(result: PerplexityResult) -> None:
    assert list(result.comparisons) == ["same"]
    assert result.comparisons["same"].difference.value == pytest.approx(0, abs=1e-5)
    verdicts = result.verdicts()
    assert verdicts[0].against == "first/test/perplexity"
    assert verdicts[1].level == "cannot_tell"
    assert "cut the responses into different tokens" in verdicts[1].text


def test_a_result_of_perplexity_comes_back_from_its_folder(result: PerplexityResult, tmp_path: Path) -> None:
    again = PerplexityResult.load(result.save(tmp_path / "out"))
    assert again.to_dict() == result.to_dict()
    assert again.section().blocks == result.section().blocks


def test_the_items_of_a_perplexity_are_its_responses(result: PerplexityResult) -> None:
    import math

    for name, items in result.items().items():
        assert len(set(items.keys)) == len(items.keys)
        assert [key[0] for key in items.keys] == items.dialogues
        assert math.exp(items.above.sum() / items.below.sum()) == pytest.approx(result.scores()[name].value)
    assert all(field.metadata[b"meaning"] for field in result.table.schema)


def test_one_perplexity_alone_is_neither_good_nor_bad(checkpoint: Folder, corpus: Corpus) -> None:
    alone = perplexity(corpus, models={"mine": checkpoint("gpt2")}, settings=PerplexitySettings(device="cpu"), limit=2)
    assert alone.verdict.level == "cannot_tell"
    assert alone.parts == {"test": 2}
    assert alone.settings.limit == 2


def test_responses_are_records_pairs_or_a_file(checkpoint: Folder, corpus: Corpus, tmp_path: Path) -> None:
    from dialoscope.metrics import measure

    written = generate(corpus, checkpoint("gpt2"), device="cpu", max_tokens=3)
    assert written.used == "Read: test, 6 dialogues."
    records = list(written)
    assert len(records) == len(written) == 12
    assert written.save(tmp_path / "said.jsonl") == 12
    pairs = written.pairs()
    assert pairs.hypotheses == [record["hypothesis"] for record in records]
    scores = [
        measure(given, other, metrics=["length"]).scores()
        for given, other in ((pairs, None), (tmp_path / "said.jsonl", tmp_path / "said.jsonl"))
    ]
    first, second = (next(iter(each.values())).value for each in scores)
    assert first == second


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.5}, "temperature, top_k, top_p and seed are for sampling: give method sample with them."),
        ({"seed": 1}, "temperature, top_k, top_p and seed are for sampling: give method sample with them."),
        ({"beams": 2}, "beams is for beam search: give method beam with it."),
        ({"method": "best"}, "method is one of greedy, beam, sample; found 'best'."),
        ({"temperature": 0}, "temperature takes a number above 0, found 0."),
    ],
)
def test_options_of_another_method_are_refused(options: dict[str, Any], message: str, corpus: Corpus) -> None:
    with pytest.raises(UsageError) as caught:
        generate(corpus, "none", **options)
    assert str(caught.value) == message


@pytest.mark.parametrize("ask", [lambda corpus: perplexity(corpus, models={"a": "b"}), lambda c: generate(c, "b")])
def test_a_path_is_no_corpus(ask: Callable[[Any], Any]) -> None:
    with pytest.raises(UsageError, match=r"takes a Corpus, found str\. Load it with dialoscope\.load\."):
        ask("concierge")
