from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    GPT2Config,
    GPT2LMHeadModel,
    T5Config,
    T5ForConditionalGeneration,
    Trainer,
    TrainingArguments,
)
from transformers.modeling_outputs import CausalLMOutput, Seq2SeqLMOutput

from dialoscope.distract import AttentionLoss, AttentionLossMixin
from dialoscope.distract.huggingface_loss import attention_on_mask, collate_with_mask, mark_spans
from dialoscope.errors import UsageError

MARKS: dict[str, Any] = {"decoder_start_token_id": 0, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}
GPT2 = GPT2Config(vocab_size=40, n_positions=32, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=1)
T5 = T5Config(vocab_size=40, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, **MARKS)
BART = BartConfig(
    vocab_size=40, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
    encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=32, **MARKS,
)  # fmt: skip
MODELS: dict[str, Any] = {
    "gpt2": (GPT2LMHeadModel, GPT2),
    "t5": (T5ForConditionalGeneration, T5),
    "bart": (BartForConditionalGeneration, BART),
}


class AttentionLossTrainer(AttentionLossMixin, Trainer):
    attention_loss = AttentionLoss(50.0, "sum")


def model(name: str) -> Any:
    torch.manual_seed(0)
    kind, config = MODELS[name]
    return kind(config)


def row(name: str, seed: int) -> dict[str, Any]:
    """Eight tokens of context, of which 2 to 5 are a distraction, and four of response."""
    drawn = torch.randint(2, 40, (12,), generator=torch.Generator().manual_seed(seed))
    context, response = drawn[:8], drawn[8:]
    mask = mark_spans([(2, 5)], 12 if name == "gpt2" else 8)
    if name != "gpt2":
        return {"input_ids": context, "attention_mask": torch.ones(8), "labels": response, "distraction_mask": mask}
    labels = torch.cat([torch.full((8,), -100), response])
    tokens = torch.cat([context, response])
    return {"input_ids": tokens, "attention_mask": torch.ones(12), "labels": labels, "distraction_mask": mask}


def stack(rows: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    return {key: torch.stack([one[key] for one in rows]) for key in rows[0]}


def arguments(folder: Path, **named: Any) -> TrainingArguments:
    options = {
        "max_steps": 20,
        "learning_rate": 0.02,
        "per_device_train_batch_size": 4,
        "lr_scheduler_type": "constant",
    }
    quiet = {"report_to": [], "save_strategy": "no", "disable_tqdm": True, "use_cpu": True, "logging_steps": 1000}
    return TrainingArguments(str(folder), **{**options, **quiet, "remove_unused_columns": False, **named})


def attention_of(trained: Any, batch: dict[str, Any]) -> float:
    inputs = {key: value for key, value in batch.items() if key != "distraction_mask"}
    with torch.no_grad():
        outputs = trained.eval()(**inputs, output_attentions=True)
    found = attention_on_mask(outputs, inputs, batch["labels"], batch["distraction_mask"], AttentionLoss(1.0, "sum"))
    return float(found)


@pytest.mark.parametrize("name", list(MODELS))
def test_a_short_run_lowers_attention_on_distractions(name: str, tmp_path: Path) -> None:
    rows, trained = [row(name, seed) for seed in range(8)], model(name)
    collator = collate_with_mask(stack)
    batch = collator(rows)
    trainer = AttentionLossTrainer(trained, arguments(tmp_path), train_dataset=rows, data_collator=collator)
    before = attention_of(trained, batch)
    trainer.train()
    assert attention_of(trained, batch) < 0.7 * before


def test_causal_attention_by_hand() -> None:
    # Tokens: context 0 1 2, response 3. Its one target, token 3, is predicted at position 2, which reads 0.5, 0.3, 0.2.
    weights = torch.tensor([[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.5, 0.3, 0.2, 0], [0.9, 0, 0, 0.1]])
    both_heads: Any = torch.stack([weights, weights])[None]
    outputs = CausalLMOutput(attentions=(both_heads,))
    labels, mask = torch.tensor([[-100, -100, -100, 7]]), torch.tensor([[False, True, True, False]])
    found = attention_on_mask(outputs, {}, labels, mask, AttentionLoss())
    assert found.item() == pytest.approx((0.09 + 0.04) / 3)  # three tokens of context


def test_cross_attention_by_hand() -> None:
    first, second = torch.tensor([[0.2, 0.8, 0.0], [0.6, 0.4, 0.0]]), torch.tensor([[0.4, 0.6, 0.0], [0.6, 0.4, 0.0]])
    layers: Any = (first[None, None], second[None, None])  # their mean at step 1: 0.3, 0.7
    outputs = Seq2SeqLMOutput(cross_attentions=layers)
    inputs = {"attention_mask": torch.tensor([[1, 1, 0]])}
    labels, mask = torch.tensor([[7, -100]]), torch.tensor([[True, False, True]])
    assert attention_on_mask(outputs, inputs, labels, mask, AttentionLoss()).item() == pytest.approx(0.09 / 2)
    assert attention_on_mask(outputs, inputs, labels, mask, AttentionLoss(2.0, "sum")).item() == pytest.approx(0.18)


def test_the_loss_of_an_evaluation_has_no_attention_term(tmp_path: Path) -> None:
    rows = [row("gpt2", seed) for seed in range(2)]
    trainer = AttentionLossTrainer(
        model("gpt2"), arguments(tmp_path), eval_dataset=rows, data_collator=collate_with_mask(stack)
    )
    plain = Trainer(model("gpt2"), arguments(tmp_path), eval_dataset=rows, data_collator=stack_without_mask)
    assert trainer.evaluate()["eval_loss"] == pytest.approx(plain.evaluate()["eval_loss"])


def stack_without_mask(rows: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    return stack([{key: value for key, value in one.items() if key != "distraction_mask"} for one in rows])


def test_accumulated_steps_weigh_the_attention_once(tmp_path: Path) -> None:
    named = {"max_steps": 1, "gradient_accumulation_steps": 2, "per_device_train_batch_size": 2, "optim": "sgd"}
    rows = [row("gpt2", seed) for seed in range(4)]
    one, two = (_step(tmp_path, rows, **options) for options in ({"max_steps": 1, "optim": "sgd"}, named))
    assert torch.allclose(one, two, atol=1e-6)


def test_the_attention_weighs_as_much_in_an_epochs_last_and_partial_step(tmp_path: Path) -> None:
    """Four rows in one micro-batch, where four micro-batches would make a whole step."""
    named = {"num_train_epochs": 1, "per_device_train_batch_size": 4, "optim": "sgd"}
    rows = [row("gpt2", seed) for seed in range(4)]
    one, two = (_step(tmp_path, rows, **named, gradient_accumulation_steps=steps) for steps in (1, 4))
    assert torch.allclose(one, two, atol=1e-6)


def _step(folder: Path, rows: list[dict[str, Any]], **named: Any) -> torch.Tensor:
    trained = model("gpt2").apply(_without_dropout)
    options = arguments(folder, learning_rate=0.1, max_grad_norm=0.0, **named)
    AttentionLossTrainer(trained, options, train_dataset=rows, data_collator=collate_with_mask(stack)).train()
    weight: torch.Tensor = trained.transformer.h[0].attn.c_attn.weight
    return weight.detach().clone()


def _without_dropout(module: torch.nn.Module) -> None:
    if isinstance(module, torch.nn.Dropout):
        module.p = 0.0


def test_a_mask_is_padded_on_the_side_of_the_tokens() -> None:
    def padded(rows: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        return {"input_ids": torch.tensor([[0, 5], [6, 7]]), "attention_mask": torch.tensor([[0, 1], [1, 1]])}

    batch = collate_with_mask(padded)([{"distraction_mask": [True]}, {"distraction_mask": [False, True]}])
    assert batch["distraction_mask"].tolist() == [[False, True], [False, True]]


def test_a_trainer_that_drops_the_mask_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="remove_unused_columns=False"):
        AttentionLossTrainer(model("gpt2"), arguments(tmp_path, remove_unused_columns=True))


def test_a_model_without_weights_says_what_to_do() -> None:
    with pytest.raises(UsageError, match="eager"):
        attention_on_mask(CausalLMOutput(), {}, torch.zeros(1, 1), torch.ones(1, 1, dtype=torch.bool), AttentionLoss())
