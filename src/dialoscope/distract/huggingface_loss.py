"""The attention loss for Hugging Face's `Trainer`, on causal and on encoder-decoder models.

Mixed into a trainer, it asks the model for its attention weights, so the model must compute them: "eager" attention,
which it switches to. Every batch carries one more tensor, `distraction_mask` (batch, tokens of the context side), true
on the tokens of distractions; `mark_spans` makes one row of it, `collate_with_mask` pads it::

    class AttentionLossTrainer(AttentionLossMixin, Trainer): ...

    trainer = AttentionLossTrainer(model, args, train_dataset=…, data_collator=collate_with_mask(collator))
    trainer.attention_loss = AttentionLoss(weight=1.0, reduction="sum")

Attention is that of the positions that predict a response's tokens (labels other than -100), averaged over layers and
heads, on the tokens before them (causal) or on the encoder's tokens; equation 9 is then the same as everywhere. The
weights are those after the model's own attention dropout, which makes their squares larger by 1/(1 − p) on average.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dialoscope.distract.attention_loss import AttentionLoss, squared_attention
from dialoscope.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor

MASK = "distraction_mask"
IGNORED = -100  # a label that is no target


class AttentionLossMixin:
    """Put before `Trainer` in a class's bases; `attention_loss` holds the weight and the reduction."""

    attention_loss: AttentionLoss = AttentionLoss()

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        trainer: Any = self
        if trainer.args.remove_unused_columns:
            raise UsageError(f"The trainer would drop '{MASK}'. Give TrainingArguments(remove_unused_columns=False).")
        if hasattr(trainer.model, "set_attn_implementation"):
            trainer.model.set_attn_implementation("eager")  # other kernels return no weights

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The trainer's own loss, and in training, where a batch has a mask, the attention loss as well."""
        trainer: Any = super()
        inputs = dict(inputs)
        mask, labels = inputs.pop(MASK, None), inputs.get("labels")
        if mask is None or not model.training:  # the loss of an evaluation stays comparable with any other model's
            return trainer.compute_loss(model, inputs, return_outputs, num_items_in_batch)
        inputs["output_attentions"] = True
        loss, outputs = trainer.compute_loss(model, inputs, True, num_items_in_batch)
        extra = attention_on_mask(outputs, inputs, labels, mask.bool(), self.attention_loss)
        loss = loss + extra / self._pieces(num_items_in_batch)
        return (loss, outputs) if return_outputs else loss

    def _pieces(self, num_items_in_batch: Any) -> int:
        """How many losses the trainer adds up for this step: where it counts tokens, it no longer divides by this.

        An epoch's last step may have fewer than `gradient_accumulation_steps`.
        """
        trainer: Any = self
        return 1 if num_items_in_batch is None else int(trainer.current_gradient_accumulation_steps)


def attention_on_mask(
    outputs: Any, inputs: Mapping[str, Any], labels: Tensor | None, mask: Tensor, loss: AttentionLoss
) -> Tensor:
    """Equation 9 over a model's own attention weights."""
    import torch

    if labels is None:
        raise UsageError("The attention loss needs 'labels': they say which positions belong to the response.")
    is_causal = not getattr(outputs, "cross_attentions", None)  # GPT-2 has an empty tuple
    layers = getattr(outputs, "attentions" if is_causal else "cross_attentions", None)
    if not layers or layers[0] is None:
        raise UsageError("The model gives no attention weights. Load it with attn_implementation='eager'.")
    attention = torch.stack([layer.mean(dim=1) for layer in layers]).mean(dim=0)  # (batch, queries, keys)
    is_step, is_context = labels != IGNORED, _is_text(inputs, mask)
    if is_causal:  # position t - 1 predicts token t, and the response's own tokens are no context
        is_context = is_context & ~is_step
        is_step = torch.cat([is_step[:, 1:], torch.zeros_like(is_step[:, :1])], dim=1)
    return loss.weight * _mean_over(attention, is_step, mask & is_context, is_context, loss.reduction)


def _is_text(inputs: Mapping[str, Any], mask: Tensor) -> Tensor:
    """Which tokens are no padding."""
    import torch

    given = inputs.get("attention_mask")
    return torch.ones_like(mask) if given is None else given.bool()


def _mean_over(attention: Tensor, is_step: Tensor, mask: Tensor, is_own: Tensor, reduction: str) -> Tensor:
    """The mean over samples of the mean over the steps where `is_step`; those rows are moved to the front."""
    import torch

    order = torch.argsort(~is_step, dim=1, stable=True)
    moved = attention.gather(1, order[:, :, None].expand_as(attention))
    return squared_attention(moved, mask, is_own, steps=is_step.sum(dim=1), reduction=reduction).mean()


def mark_spans(spans: Sequence[tuple[int, int]], length: int) -> list[bool]:
    """One row of a mask: true from the first to before the last token of each span.

    >>> mark_spans([(1, 3)], 4)
    [False, True, True, False]
    """
    return [any(first <= place < last for first, last in spans) for place in range(length)]


def collate_with_mask(collator: Callable[[list[dict[str, Any]]], Any]) -> Callable[[list[dict[str, Any]]], Any]:
    """A data collator that also pads `distraction_mask`, on the side on which the collator padded the tokens."""

    def collate(rows: list[dict[str, Any]]) -> Any:
        import torch

        masks = [list(row[MASK]) for row in rows]
        batch = collator([{key: value for key, value in row.items() if key != MASK} for row in rows])
        width = batch["input_ids"].shape[1]
        is_left = any(not row[0] for row in batch["attention_mask"].tolist())
        padded = [
            [0] * (width - len(mask)) * is_left + mask + [0] * (width - len(mask)) * (not is_left) for mask in masks
        ]
        batch[MASK] = torch.tensor(padded, dtype=torch.bool)
        return batch

    return collate
