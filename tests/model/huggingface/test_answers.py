"""Whole corpora and the command line, with Hugging Face models: what is asked, left out, cut, and signed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from dialoscope.cli import app
from dialoscope.corpus import Corpus, Dialogue, Turn
from dialoscope.errors import CorpusError, DialoscopeError, ModelError, UsageError
from dialoscope.model.answers import unread
from dialoscope.model.generate import respond
from dialoscope.model.huggingface.adapter import HuggingFaceModel
from dialoscope.model.perplexity import perplexity_under
from dialoscope.model.protocol import Decoding, Likelihood

Folder = Callable[[str], Path]
Load = Callable[..., HuggingFaceModel]
CHATS = (
    (("system", "be kind"), ("user", "hello"), ("assistant", "hi"), ("user", "where?"), ("assistant", "there")),
    (("user", "one"), ("user", "two"), ("assistant", "three")),
)


@pytest.fixture(scope="module")
def chats() -> Corpus:
    return Corpus.of([Dialogue(tuple(Turn(*turn) for turn in one), split="test") for one in CHATS], name="chats")


def plain(*dialogues: tuple[str, ...]) -> Corpus:
    """People without a role talk."""
    made = [tuple(Turn("AB"[k % 2], text) for k, text in enumerate(texts)) for texts in dialogues]
    return Corpus.of([Dialogue(turns) for turns in made])


def test_a_chat_model_is_asked_about_the_assistants_responses(model: Load, chats: Corpus) -> None:
    found = perplexity_under(model("llama"), chats)
    assert (found.responses_of, found.perplexity.n, found.left_out) == ("assistant", 3, {"not said by assistant": 3})
    assert "|responses:assistant|" in found.perplexity.signature


@pytest.mark.parametrize(
    ("name", "responses", "n"), [("llama", "all", 6), ("llama", "user", 3), ("gpt2", None, 6), ("gpt2", "assistant", 3)]
)
def test_whose_responses_can_be_told(model: Load, chats: Corpus, name: str, responses: str | None, n: int) -> None:
    found = perplexity_under(model(name), chats, responses=responses)
    assert found.perplexity.n == n == len(list(respond(model(name), chats, responses=responses)))
    assert sum(found.left_out.values()) == 6 - n


def test_a_corpus_without_an_assistant_is_asked_for_whole(model: Load) -> None:
    assert perplexity_under(model("llama"), plain(("a", "b", "c"))).perplexity.n == 2


def test_a_speaker_who_only_opens_dialogues_gives_no_responses(model: Load) -> None:
    with pytest.raises(CorpusError, match="expected responses of 'a', found only turns that open a dialogue"):
        perplexity_under(model("gpt2"), plain(("a", "b")), responses="a")


def test_roles_of_the_corpus_are_what_the_model_reads(
    model: Load, chats: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, seen = model("llama"), []

    def note(contexts: Any, responses: Any) -> list[Likelihood]:
        for sample in loaded.sampler.pairs(contexts, responses):
            seen.append(loaded.sampler.reader.tokenizer.decode(sample.source))
        return [Likelihood(-1.0, 1) for _ in responses]

    monkeypatch.setattr(HuggingFaceModel, "log_likelihood", lambda self, *both: note(*both))
    perplexity_under(loaded, chats)
    assert seen[0] == (
        "<s><|im_start|>system\nbe kind<|im_end|>\n<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"
    )
    assert seen[2] == "<s><|im_start|>user\none<|im_end|>\n<|im_start|>user\ntwo<|im_end|>\n<|im_start|>assistant\n"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "|joining:chat|window:256|dtype:float32|"),
        ({"joining": "plain"}, "|joining:plain:'\\n'|window:256|dtype:float32|"),
        ({"joining": "plain", "separator": "eos"}, "|joining:plain:'</s>'|window:256|dtype:float32|"),
        ({"window": 100}, "|joining:chat|window:100|dtype:float32|"),
        ({"dtype": "bfloat16"}, "|joining:chat|window:256|dtype:bfloat16|"),
    ],
)
def test_a_signature_tells_how_the_model_reads(model: Load, options: dict[str, Any], expected: str) -> None:
    signature = perplexity_under(model("llama", **options), plain(("a", "b"), ("c", "d"))).perplexity.signature
    assert expected in signature
    assert "pooling" not in signature  # no likelihood depends on it


def test_what_was_cut_is_in_the_result_and_counted_for_each_call(model: Load) -> None:
    loaded, corpus = model("gpt2", window=12), plain(("aa", "bb", "cc", "dd", "ee"))  # three turns of three tokens fit
    for _ in range(2):
        assert unread(perplexity_under(loaded, corpus).account)["cut"] == {"contexts": 1, "turns": 1}
    written = respond(loaded, corpus, decoding=Decoding(max_tokens=6))
    list(written)
    assert written.to_dict()["cut"] == {"contexts": 2, "turns": 1 + 2}


def test_turns_that_are_not_read_are_told(model: Load) -> None:
    loaded = model("gpt2", window=12)  # four turns of three tokens, the response among them
    contexts = [["aa", "bb", "cc", "dd", "ee"], ["aa", "bb"]]
    assert loaded.unread_turns(contexts, ["ff", "cc"]) == [2, 0]
    assert loaded.attend(contexts[:1], ["ff"])[0].tokens.tolist() == [0, 0, 2, 2, 2]


def test_a_response_to_be_written_leaves_less_room_for_the_context(model: Load) -> None:
    """A window of 52 has room for 17 turns of three tokens; beside 40 tokens to be written, for four."""
    loaded, context = model("gpt2", window=52), [f"{letter}{letter}" for letter in "abcdefgh"]
    assert loaded.unread_turns([context], ["ii"]) == [0]
    assert loaded.unread_turns([context], None) == [4]
    list(respond(loaded, plain((*context, "ii"))))
    assert loaded.account.turns == sum(max(0, turns - 4) for turns in range(1, 9))


def test_what_is_longer_than_the_window_is_left_out_and_counted(model: Load) -> None:
    corpus = plain(("aa", "bb"), ("aa", "b" * 40), ("c" * 40, "dd"), ("ee", "ff"))
    found = perplexity_under(model("gpt2", window=12), corpus)
    assert (found.perplexity.n, found.dialogues) == (2, 2)
    assert found.left_out == {"response longer than the window": 1, "Query longer than the window": 1}
    fitting = perplexity_under(model("gpt2", window=12), plain(("aa", "bb"), ("ee", "ff")))
    assert found.perplexity.value == pytest.approx(fitting.perplexity.value)
    written = respond(model("gpt2", window=12), corpus, decoding=Decoding(max_tokens=5))
    assert [record["reference"] for record in written] == ["bb", "b" * 40, "ff"]
    assert written.to_dict()["left_out"] == {"Query longer than the window": 1}


def test_a_response_keeps_its_turn_where_others_are_left_out(model: Load) -> None:
    corpus = plain(("aa", "b" * 40, "cc", "dd"), ("ee", "ff"))
    found = perplexity_under(model("gpt2", window=12), corpus, context_turns=1)
    assert found.responses is not None
    turns = list(zip(found.responses["dialogue"].to_pylist(), found.responses["turn"].to_pylist(), strict=True))
    assert turns == [(corpus[0].id, 3), (corpus[1].id, 1)]


def test_a_corpus_of_which_nothing_fits_is_an_error(model: Load) -> None:
    with pytest.raises(UsageError, match="every response was left out: 1 response longer than the window"):
        perplexity_under(model("gpt2", window=12), plain(("aa", "b" * 40)))


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("can't allocate memory")])
@pytest.mark.parametrize(("size", "advice"), [(16, "a --batch-size below 16"), (1, "fewer --context-turns")])
def test_a_lack_of_memory_is_one_line(
    model: Load, monkeypatch: pytest.MonkeyPatch, error: Exception, size: int, advice: str
) -> None:
    def refuse(*_: Any, **options: Any) -> None:
        raise error

    loaded = model("gpt2", batch_size=size)
    monkeypatch.setattr(type(loaded.network.model), "forward", refuse)
    for ask in (perplexity_under, lambda *both: list(respond(*both))):
        with pytest.raises(ModelError, match=f"^Out of memory with gpt2@.{{12}}. Give {advice}, or --dtype bfloat16.$"):
            ask(loaded, plain(("a", "b")))


def test_other_errors_of_a_network_keep_their_trace(model: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **options: Any) -> None:
        raise RuntimeError("shapes differ")

    monkeypatch.setattr(type(model("gpt2").network.model), "forward", refuse)
    with pytest.raises(RuntimeError, match="shapes differ"):
        perplexity_under(model("gpt2"), plain(("a", "b")))


# --- The command line -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def file_of_chats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("chats") / "test.jsonl"
    records = [{"messages": [{"role": role, "content": text} for role, text in one]} for one in CHATS]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def dialoscope(*arguments: object) -> str:
    done = CliRunner().invoke(app, [*map(str, arguments), "--device", "cpu"], catch_exceptions=False)
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout


def test_perplexity_says_what_was_left_out_and_shows_no_bar(
    checkpoint: Folder, file_of_chats: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    model = f"llama={checkpoint('llama')}"
    capfd.readouterr()  # transformers shows a bar when the test saves its model
    found = json.loads(dialoscope("perplexity", file_of_chats, "--model", model, "--json"))
    assert found["counts"] == {"skipped": {"not said by assistant": 3}}
    assert found["scores"]["llama/test/perplexity"]["n"] == 3
    shown = dialoscope("perplexity", file_of_chats, "--model", model, "--quiet")
    assert "Skipped: 3 x not said by assistant" in shown
    assert capfd.readouterr().err == ""


def test_responses_window_and_joining_are_options(checkpoint: Folder, file_of_chats: Path, tmp_path: Path) -> None:
    reading = ("--window", "20", "--joining", "plain", "--separator", "eos", "--responses", "all", "--json")
    model = ("--model", f"llama={checkpoint('llama')}")
    found = json.loads(dialoscope("perplexity", file_of_chats, *model, *reading))
    assert (found["settings"]["window"], found["settings"]["joining"]) == (20, "plain")
    assert "joining=plain:'</s>',window=20" in found["origin"]["settings"]["llama"]
    out = tmp_path / "said.jsonl"
    said = json.loads(dialoscope("generate", file_of_chats, *model, "--out", out, *reading, "--max-tokens", "2"))
    assert (said["responses"], said["responses_of"], said["left_out"]) == (6, "all", {})
    assert len(out.read_text().splitlines()) == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--responses", "asistant"], "Unknown speaker 'asistant'. Did you mean 'assistant'?"),
        (["--joining", "chats"], "joining is one of auto, chat, plain; found 'chats'."),
        (["--separator", "tab"], "separator is one of auto, newline, eos; found 'tab'."),
    ],
)
def test_names_that_do_not_exist_are_one_line(
    checkpoint: Folder, file_of_chats: Path, arguments: list[str], message: str
) -> None:
    with pytest.raises(DialoscopeError) as caught:
        dialoscope("perplexity", file_of_chats, "--model", checkpoint("llama"), *arguments)
    assert str(caught.value) == message
