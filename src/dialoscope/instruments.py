"""The rooms in one visible table: what each one asks, what it may be told, and how it is run on a corpus."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from dialoscope.corpus import Corpus, summarise
from dialoscope.errors import UsageError, unknown_name
from dialoscope.record import Origin
from dialoscope.report import write_run
from dialoscope.report.corpus import examples_of, section_of
from dialoscope.report.result import Result
from dialoscope.report.run import RESULT, read_json
from dialoscope.settings import BaseSettings

if TYPE_CHECKING:
    from dialoscope.distract.result import DistractResult
    from dialoscope.engage.examples import Examples
    from dialoscope.engage.predictor import Predictor
    from dialoscope.model.protocol import DialogueModel
    from dialoscope.probe.result import ProbeResult

Progress = Callable[[int, int], None]  # done, in all
OfModels = TypeVar("OfModels", "DistractResult", "ProbeResult")


@dataclass(frozen=True, eq=False)
class Bench:
    """What an instrument is given: a corpus, models by name, a folder for its run and one for what can be resumed."""

    corpus: Corpus
    out: Path
    work: Path
    models: Mapping[str, DialogueModel] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)  # where the models come from
    seed: int = 0
    device: str = "auto"
    progress: Progress | None = None


@dataclass(frozen=True)
class Instrument:
    """A question, the options it takes, and the function that answers it in a run's folder."""

    question: str
    wish: type
    run: Callable[[Bench, Any], Path]
    has_models: bool = False
    is_dealt: bool = True  # a corpus of one split is dealt to training, validation and test before it is asked
    reads: Callable[[Any], Sequence[str]] = lambda wish: ()  # paths in its options whose contents count


def with_weights(result: OfModels, weights: Mapping[str, str]) -> OfModels:
    """A result whose record says which weights were asked: the models' own names, with fingerprints."""
    return replace(
        result, origin=naming_models(result.origin, weights), about={**result.about, "weights": dict(weights)}
    )


def naming_models(origin: Origin, weights: Mapping[str, str]) -> Origin:
    """An origin that says which weights were asked, by the names that the models go under."""
    asked = ",".join(f"{name}={own}" for name, own in weights.items())
    return origin.having(models=asked or None)


# --- The corpus -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CorpusShown:
    """Nothing to choose."""


def describe_corpus(bench: Bench, wish: CorpusShown) -> Path:
    """What is in the corpus: the section every report starts with."""
    corpus = bench.corpus
    summary = summarise(corpus)
    return write_run(
        bench.out,
        instrument="corpus",
        data=summary.to_dict(),
        section=section_of(summary, examples=list(examples_of(corpus))),
        origin=Origin(corpus=f"{corpus.name}@{corpus.fingerprint}"),
    )


# --- Overlap ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OverlapWish:
    """How overlap is measured; a corpus of one split is held against itself."""

    unit: Literal["dialogue", "turn", "sample"] | None = None
    context_turns: int = 1
    tokeniser: str = "reference"
    threshold: float = 0.8
    train_split: str = "train"
    split: str = "test"

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise UsageError(f"[overlap] threshold: expected a number from 0 to 1, found {self.threshold:g}.")
        if self.tokeniser != "reference":  # the others lie behind an import of a second
            from dialoscope.overlap.tokens import TOKENISERS

            if self.tokeniser not in TOKENISERS:
                raise unknown_name("tokeniser in [overlap]", self.tokeniser, TOKENISERS)


def measure_overlap(bench: Bench, wish: OverlapWish) -> Path:
    """How much of the test split is in the training split."""
    from dialoscope.overlap.measure import Settings, measure_with_examples
    from dialoscope.overlap.output import write_result
    from dialoscope.overlap.report import chosen_examples

    corpus = bench.corpus
    is_whole = len(corpus.splits) == 1
    measured = measure_with_examples(
        corpus if is_whole else corpus.split(wish.train_split),
        None if is_whole else corpus.split(wish.split),
        choose=lambda result: chosen_examples(result, threshold=wish.threshold),
        unit=wish.unit,
        settings=Settings(wish.context_turns, wish.tokeniser),
    )
    return write_result(measured, bench.out, threshold=wish.threshold, overwrite=True)


# --- Distract ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DistractWish:
    """Which sets are made of the corpus, and what is measured on them."""

    sets: tuple[str, ...] = ("all",)
    split: str = "test"
    limit: int | None = None
    context_turns: int | None = None  # usually what the models were trained with
    last_only: bool = False
    responses: str | None = None  # of this speaker only
    sentences: tuple[str, ...] = ()
    influence: bool = False
    behaviour: bool = False

    def __post_init__(self) -> None:
        from dialoscope.distract.sets import SAID, chosen_names

        for word in self.sets:
            try:
                chosen_names([word])
            except UsageError as error:
                raise unknown_name("set in [distract]", word, SAID) from error


def measure_distraction(bench: Bench, wish: DistractWish) -> Path:
    """Where models look when something is put in that does not belong there."""
    from dialoscope.distract.examine import Wish, examine, make_sets
    from dialoscope.distract.output import write_result
    from dialoscope.model.checkpoint import shared_turns

    sets = make_sets(
        bench.corpus,
        names=wish.sets,
        seed=bench.seed,
        split=wish.split,
        context_turns=wish.context_turns or shared_turns(bench.paths),
        is_last_only=wish.last_only,
        sentences=wish.sentences,
        responses=wish.responses,
        limit=wish.limit,
    )
    asked = Wish(has_influence=wish.influence, has_behaviour=wish.behaviour)
    found = examine(bench.models, sets, wish=asked, work=bench.work, progress=bench.progress)
    weights = {one.model: one.identity for one in found.measured}
    result = with_weights(found.result, weights)
    return write_result(result, found.measured, bench.out, pictures=found.pictures, overwrite=True)


# --- Probe ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProbeWish:
    """Which tasks, on which dialogues."""

    tasks: tuple[str, ...] = ("all",)
    classifier: Literal["logistic", "mlp"] = "logistic"
    train_split: str = "train"
    split: str = "validation"
    train_limit: int | None = None
    limit: int | None = None
    context_tokens: int = 100  # 0: all
    scaled: bool = False
    controls: bool = True

    def __post_init__(self) -> None:
        from dialoscope.probe.tasks import chosen_tasks

        chosen_tasks(self.tasks)


def probe_encodings(bench: Bench, wish: ProbeWish) -> Path:
    """What the encodings of models know of a context."""
    from dialoscope.model.loading import choose_device
    from dialoscope.probe import Settings, chosen_tasks, examine, examples, write_result

    training, held_out = (
        examples(_first(bench.corpus.split(name), most))
        for name, most in ((wish.train_split, wish.train_limit), (wish.split, wish.limit))
    )
    settings = Settings(
        wish.classifier,
        wish.context_tokens or None,
        is_scaled=wish.scaled,
        has_controls=wish.controls,
        seed=bench.seed,
    )
    found = examine(
        bench.models,
        training,
        held_out,
        tasks=chosen_tasks(list(wish.tasks)),
        settings=settings,
        device=choose_device(bench.device),
        cache=bench.work,
        progress=bench.progress,
    )
    weights = {name: one.identity for name, one in found.result.models.items()}
    result = with_weights(found.result, weights)
    return write_result(result, found.measured, bench.out, pictures=found.pictures, overwrite=True)


# --- Engage -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EngageWish:
    """What learns how much of a conversation remains: a predictor of `dialoscope engage train`, or one made here."""

    predictor: str | None = None
    encoder: str = "minilm"
    history: int = 2
    human: tuple[str, ...] = ()  # rated turns to be held against
    split: str = "test"
    train_limit: int | None = None
    limit: int | None = None
    least_turns: int = 2
    most_turns: int | None = None

    def paths(self) -> list[str]:
        """What it reads besides the corpus."""
        return [one for one in (self.predictor, self.encoder, *self.human) if one is not None]


def predict_engagement(bench: Bench, wish: EngageWish) -> Path:
    """How much of held-out conversations remains; with rated turns, whether people agree."""
    from dialoscope.engage import BASELINES, evaluate, read_human
    from dialoscope.engage.depth import measure_depth
    from dialoscope.engage.output import write_depth, write_evaluation

    training, held_out, models = _predictors(bench, wish)
    if wish.human:
        controls = {"untrained": models.pop("untrained")} if "untrained" in models else {}
        sets = [read_human(path) for path in wish.human]
        found = evaluate(models, sets, baselines={**BASELINES, **controls})
        return write_evaluation(found, bench.out, overwrite=True)
    return write_depth(measure_depth(models, held_out, training=training), bench.out, overwrite=True)


def _predictors(bench: Bench, wish: EngageWish) -> tuple[Examples, Examples, dict[str, Predictor]]:
    """What is learnt from, what is predicted, and who predicts: with history, without, and untrained."""
    from dialoscope.model.loading import choose_device, require_torch

    require_torch("Engagement")
    from dialoscope.engage.encoder import Encoder
    from dialoscope.engage.examples import examples
    from dialoscope.engage.fitting import Material, fit_head
    from dialoscope.engage.predictor import Predictor
    from dialoscope.engage.settings import Settings

    corpus = _of_length(bench.corpus, wish.least_turns, wish.most_turns)
    training = examples(_first(corpus.split("train"), wish.train_limit))
    validation, held_out = (examples(_first(corpus.split(name), wish.limit)) for name in ("validation", wish.split))
    device = choose_device(bench.device)
    if wish.predictor is not None:
        from dialoscope.engage.storage import load

        return training, held_out, {"predictor": load(wish.predictor, device=device)}
    encoder = Encoder.load(wish.encoder, device=device)
    given = Material([training], validation)
    models = {}
    for name, history in {f"history {wish.history}": wish.history, "turn alone": 0}.items():
        start = Predictor.untrained(encoder, Settings(history=history), seed=bench.seed)
        models[name] = fit_head(given, start=start, seed=bench.seed, cache=bench.work, progress=bench.progress)
    control = Predictor.untrained(encoder, Settings(history=wish.history), seed=bench.seed)
    return training, held_out, {**models, "untrained": control}


def _of_length(corpus: Corpus, least: int, most: int | None) -> Corpus:
    lengths = corpus.turns_per_dialogue.tolist()
    kept = [place for place, turns in enumerate(lengths) if turns >= least and (most is None or turns <= most)]
    if not kept:
        raise UsageError(f"Corpus '{corpus.name}' has no dialogue of {least} to {most or 'any number of'} turns.")
    return corpus.select(kept)


def _first(corpus: Corpus, most: int | None) -> Corpus:
    return corpus if most is None else corpus[:most]


@dataclass(frozen=True)
class Question:
    """What Dialoscope can be asked: the module that answers, its function, its settings and its result, by name."""

    ask: str
    module: str
    function: str
    settings_name: str
    result_name: str
    has_models: bool = False  # it takes `models=`

    @property
    def measure(self) -> Callable[..., Any]:
        """`measure(corpus, *, against, settings, models, work, progress) -> Result`."""
        function: Callable[..., Any] = getattr(import_module(f"dialoscope.{self.module}"), self.function)
        return function

    @property
    def settings(self) -> type[BaseSettings]:
        """The class of its settings."""
        kind: type[BaseSettings] = getattr(import_module(f"dialoscope.{self.module}"), self.settings_name)
        return kind

    @property
    def result(self) -> type[Result]:
        """The class of its result."""
        kind: type[Result] = getattr(import_module(f"dialoscope.{self.module}"), self.result_name)
        return kind


QUESTIONS: dict[str, Question] = {
    "overlap": Question(
        "Is the test set in the training set?", "overlap", "measure", "OverlapSettings", "OverlapResult"
    ),
    "attention": Question(
        "Does the model attend to what matters?", "distract", "measure", "AttentionSettings", "AttentionResult", True
    ),
    "influence": Question(
        "Which turns change the response's probability?",
        "distract",
        "influence",
        "InfluenceSettings",
        "InfluenceResult",
        True,
    ),  # fmt: skip
    "behave": Question(
        "Do distractions change what the model says?", "distract", "behave", "BehaveSettings", "BehaveResult", True
    ),
    "probe": Question(
        "What does the encoding of a context know?", "probe", "measure", "ProbeSettings", "ProbeResult", True
    ),
    "depth": Question("How much of a conversation remains?", "engage", "depth", "DepthSettings", "DepthResult", True),
    "ratings": Question("Do scores agree with people?", "engage", "ratings", "RatingsSettings", "RatingsResult", True),
    "metrics": Question("How good are the responses?", "metrics", "measure", "MetricsSettings", "MetricsResult"),
}


def load_result(folder: str | Path) -> Result:
    """Read any result back from its folder."""
    head = read_json(Path(folder) / RESULT)
    if head.get("instrument") not in QUESTIONS:
        raise unknown_name("instrument in result.json", str(head.get("instrument")), QUESTIONS)
    return QUESTIONS[head["instrument"]].result.load(folder)


INSTRUMENTS: dict[str, Instrument] = {
    "corpus": Instrument("What is in the corpus?", CorpusShown, describe_corpus, is_dealt=False),
    "overlap": Instrument("Is the test set in the training set?", OverlapWish, measure_overlap, is_dealt=False),
    "distract": Instrument("Does the model look at what matters?", DistractWish, measure_distraction, has_models=True),
    "probe": Instrument("What does the encoding of a context know?", ProbeWish, probe_encodings, has_models=True),
    "engage": Instrument("Is the user engaged, turn by turn?", EngageWish, predict_engagement, reads=EngageWish.paths),
}
