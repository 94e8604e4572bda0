"""The twelve models of the papers in one table: what each is made of and how it is trained."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dialoscope.errors import unknown_name
from dialoscope.model.structure import Recipe, Structure


@dataclass(frozen=True)
class Preset:
    """A named model: its structure, its training, and the paper it comes from."""

    settings: Structure
    recipe: Recipe
    paper: str
    millions: float | None = None  # of weights, as printed in the paper, for corpora of 13k and 16k words
    best_by: str = "perplexity"  # what the best checkpoint is chosen by


# Xing and Gulla, section 4.2. Contexts and responses share the word embedding E of equation 2. "Until it converges":
# four halvings of the rate without a gain end it. Weights and word vectors start as PyTorch, which they used, has it,
# but for one bias where its LSTM adds two.
# A rate of 1.0 with a clip of 5 fits a loss summed over a response's tokens, as TensorFlow's NMT tutorial has it with
# these numbers; with a mean over tokens, gradients are over ten times smaller. The paper does not print which it is.
DISTRACT = Structure(layers=4, width=512, embedding=512, dropout=0.2, vocabulary=25_000)
DISTRACT_RECIPE = Recipe(
    "sgd", 1.0, halve_when_stalled=True, epochs=40, batch_size=256, loss_over="responses", clip=5.0, patience=4
)

# Parthasarathi et al., appendix A. Table 3's counts fit separate embeddings of contexts and responses, untied from the
# output layer. The batch size, clipping and start are not printed; that untrained LSTMs know a little (Tables 6 and 7)
# fits word vectors that start as PyTorch, which they used, has them: smaller ones leave encodings that a penalised
# classifier makes nothing of. Models are chosen by BLEU on the validation split.
PROBE = Structure(
    layers=2,
    width=256,
    embedding=128,
    vocabulary=16_000,
    scoring="additive",
    shared_embedding=False,
    context_tokens=100,
)
PROBE_RECIPE = Recipe("adam", 4e-3, epochs=25, batch_size=64, clip=5.0)
PROBE_TRANSFORMER = replace(
    PROBE, encoder="transformer", attention="token", scoring="dot", width=512, embedding=512, heads=2, norm="pre"
)  # 4 layers in all: 2 read, 2 write

# Wen et al., section 5.2: fairseq models, whose LSTMs' words start within ±0.1, and Adam; rates and batch size are not
# printed. A transformer of six layers that is normalised after its blocks learns nothing unless its rate rises slowly.
OVERLAP = Structure(
    attention="token", layers=1, width=512, embedding=512, dropout=0.1, shared_embedding=False, words_within=0.1
)
OVERLAP_RECIPE = Recipe("adam", 1e-3, halve_when_stalled=True, epochs=40, batch_size=128, clip=5.0, patience=4)


def _probed(settings: Structure, *, millions: float) -> Preset:
    return Preset(settings, PROBE_RECIPE, "probe_tasks", millions, best_by="bleu-2")


PRESETS = {
    "non-hier": Preset(replace(DISTRACT, attention="token"), DISTRACT_RECIPE, "das_ratio"),
    "static": Preset(replace(DISTRACT, attention="static"), DISTRACT_RECIPE, "das_ratio"),
    "static-ui": Preset(replace(DISTRACT, attention="static", integration=True), DISTRACT_RECIPE, "das_ratio"),
    "dynamic": Preset(replace(DISTRACT, attention="dynamic"), DISTRACT_RECIPE, "das_ratio"),
    "dynamic-ui": Preset(replace(DISTRACT, attention="dynamic", integration=True), DISTRACT_RECIPE, "das_ratio"),
    "lstm": _probed(PROBE, millions=11),
    "lstm-attn": _probed(replace(PROBE, attention="token"), millions=11),
    "bilstm-attn": _probed(replace(PROBE, encoder="bilstm", attention="token"), millions=12),
    "hred": _probed(replace(PROBE, encoder="hierarchical", attention="dynamic"), millions=12),
    "transformer": _probed(PROBE_TRANSFORMER, millions=41),
    "overlap-lstm": Preset(replace(OVERLAP, scoring="additive"), OVERLAP_RECIPE, "overlap"),
    "overlap-transformer": Preset(
        replace(OVERLAP, encoder="transformer", layers=6, heads=8),
        replace(OVERLAP_RECIPE, learning_rate=5e-4, warmup=4000),
        "overlap",
    ),
}


def preset(name: str) -> Preset:
    """The preset of that name; an unknown one names the closest."""
    if name not in PRESETS:
        raise unknown_name("preset", name, PRESETS)
    return PRESETS[name]
