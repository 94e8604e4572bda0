"""Tiny checkpoints with random weights, built once and read from disk as real ones are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from dialoscope.model.huggingface import load_huggingface
from dialoscope.model.huggingface.adapter import HuggingFaceModel

CHAT = (
    "{{ bos_token }}{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] | trim }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
WORDS = [
    "hello there, how are you today?",
    "i am fine, thank you. and you?",
    "where is the station?",
    "it is over there, near the old bridge.",
    "user assistant system",
]
SMALL = {"vocab_size": 512, "hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2}
LLAMA = {**SMALL, "intermediate_size": 48, "num_key_value_heads": 2, "max_position_embeddings": 256}


def byte_level(chat_template: str | None = None) -> Any:
    """Byte-level BPE, which can write any text, with chat markers."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<s>", "</s>", "<pad>", "<|im_start|>", "<|im_end|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(WORDS * 4, trainer)
    made: Any = PreTrainedTokenizerFast
    return made(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        additional_special_tokens=special[3:],
        chat_template=chat_template,
    )


def sentence_piece() -> Any:
    """Unigram with a space before words, as T5 and BART's multilingual kin have it; it adds </s> after a text."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    special = ["<pad>", "</s>", "<unk>", "<s>"]
    trainer = trainers.UnigramTrainer(vocab_size=120, special_tokens=special, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(WORDS * 4, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    made: Any = PreTrainedTokenizerFast
    return made(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token="<unk>")


def word_piece() -> Any:
    """BERT's own pipeline over a small vocabulary."""
    from tokenizers import BertWordPieceTokenizer
    from tokenizers.processors import BertProcessing
    from transformers import PreTrainedTokenizerFast

    inner = BertWordPieceTokenizer()
    inner.train_from_iterator(WORDS * 4, vocab_size=200, show_progress=False)
    ids = {name: inner.token_to_id(name) for name in ("[SEP]", "[CLS]")}
    inner._tokenizer.post_processor = BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    made: Any = PreTrainedTokenizerFast
    names = {f"{name.lower()}_token": f"[{name}]" for name in ("CLS", "SEP", "PAD", "UNK", "MASK")}
    return made(tokenizer_object=inner._tokenizer, model_max_length=64, **names)


def build(name: str, folder: Path) -> None:
    """Write one checkpoint: weights as safetensors, configuration, tokenizer."""
    import torch

    t: Any = import_module("transformers")
    torch.manual_seed(0)
    tokenizers: dict[str, Callable[[], Any]] = {
        "gpt2": byte_level,
        "llama": lambda: byte_level(CHAT),
        "mistral": byte_level,
        "gemma2": byte_level,
        "bloom": byte_level,
        "mamba": byte_level,
        "bart": sentence_piece,
        "t5": t.ByT5Tokenizer,
        "bert": word_piece,
        "prophetnet": sentence_piece,
        "xlnet": byte_level,
    }
    tokenizer = tokenizers[name]()
    networks(name, tokenizer).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def networks(name: str, tokenizer: Any) -> Any:
    """One network of each kind of attention: plain, grouped, sliding, soft-capped, ALiBi, cross, relative."""
    t: Any = import_module("transformers")
    ids = {
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    start = {**ids, "decoder_start_token_id": tokenizer.eos_token_id}
    bart = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "vocab_size": 512}
    bart |= {"decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 256}
    t5 = {
        "d_model": 32,
        "d_kv": 8,
        "d_ff": 48,
        "num_layers": 2,
        "num_heads": 4,
        "vocab_size": 384,
        "initializer_factor": 1.0,
    }
    prophetnet = {"vocab_size": 512, "hidden_size": 32, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "ngram": 2}
    prophetnet |= {f"num_{side}_layers": 2 for side in ("encoder", "decoder")}
    prophetnet |= {f"num_{side}_attention_heads": 4 for side in ("encoder", "decoder")}
    wide = {"initializer_range": 0.3}  # attention that is far from even
    makers: dict[str, Callable[[], Any]] = {
        "gpt2": lambda: t.GPT2LMHeadModel(t.GPT2Config(**SMALL, **ids, **wide, n_positions=128)),
        "llama": lambda: t.LlamaForCausalLM(t.LlamaConfig(**LLAMA, **ids, **wide)),
        "mistral": lambda: t.MistralForCausalLM(t.MistralConfig(**LLAMA, **ids, **wide, sliding_window=24)),
        "gemma2": lambda: t.Gemma2ForCausalLM(t.Gemma2Config(**LLAMA, **ids, **wide, head_dim=8, sliding_window=24)),
        "bloom": lambda: t.BloomForCausalLM(
            t.BloomConfig(vocab_size=512, hidden_size=32, n_layer=2, n_head=4, **ids, **wide)
        ),
        "mamba": lambda: t.MambaForCausalLM(t.MambaConfig(vocab_size=512, hidden_size=16, num_hidden_layers=1, **ids)),
        "bart": lambda: t.BartForConditionalGeneration(t.BartConfig(**bart, **start, init_std=0.2)),
        "t5": lambda: t.T5ForConditionalGeneration(t.T5Config(**t5, **{**start, "decoder_start_token_id": 0})),
        "prophetnet": lambda: t.ProphetNetForConditionalGeneration(t.ProphetNetConfig(**prophetnet, **start)),
        "xlnet": lambda: t.XLNetLMHeadModel(
            t.XLNetConfig(vocab_size=512, d_model=32, n_layer=2, n_head=4, d_inner=48, **ids, **wide)
        ),
        "bert": lambda: t.BertModel(t.BertConfig(**SMALL, **wide, intermediate_size=48, max_position_embeddings=64)),
    }
    return makers[name]().eval()


@pytest.fixture(scope="package", autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny networks gain nothing from threads, which only wait for each other on busy cores."""
    import torch

    usual = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(usual)


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a tiny checkpoint, by name."""

    @cache
    def folder(name: str) -> Path:
        place = tmp_path_factory.mktemp("checkpoints") / name
        build(name, place)
        return place

    return folder


@pytest.fixture(scope="session")
def model(checkpoint: Callable[[str], Path]) -> Callable[..., HuggingFaceModel]:
    """A tiny checkpoint, loaded."""

    @cache
    def load(name: str, **options: Any) -> HuggingFaceModel:
        return load_huggingface(checkpoint(name), **options)

    return load
