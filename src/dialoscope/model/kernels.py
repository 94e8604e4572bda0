"""One step, by whoever does it best: a fused Triton kernel on a GPU, PyTorch operations elsewhere."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from types import ModuleType

import torch
from torch import Tensor

from dialoscope.model import attention, cell
from dialoscope.model.attention import Attended, AttendedGradients
from dialoscope.model.cell import Gradients, Group, Tape

FUSED_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


@cache
def _fused_kernels() -> ModuleType | None:
    if find_spec("triton") is None:
        return None
    from dialoscope.model import fused

    return fused


def _fused(values: Tensor) -> ModuleType | None:
    return _fused_kernels() if values.is_cuda and values.dtype in FUSED_DTYPES else None


def cell_forward(tape: Tape, group: Group) -> None:
    """See `cell.cell_forward`."""
    (_fused(tape.gates) or cell).cell_forward(tape, group)


def cell_backward(tape: Tape, grads: Gradients, group: Group) -> None:
    """See `cell.cell_backward`."""
    (_fused(tape.gates) or cell).cell_backward(tape, grads, group)


def attend_forward(tape: Tape, attended: Attended, step: int) -> None:
    """See `attention.attend_forward`."""
    (_fused_attention(attended) or attention).attend_forward(tape, attended, step)


def attend_backward(tape: Tape, attended: Attended, grads: Gradients, seen: AttendedGradients, step: int) -> None:
    """See `attention.attend_backward`."""
    (_fused_attention(attended) or attention).attend_backward(tape, attended, grads, seen, step)


def _fused_attention(attended: Attended) -> ModuleType | None:
    """The kernel scores by dot product and holds a row's places in registers."""
    fits = attended.score is None and attended.memory.shape[1] <= 1024
    return _fused(attended.memory) if fits else None


def to_gradients(logits: Tensor, targets: Tensor, share: Tensor) -> Tensor:
    """Σ share · -log p(target) over rows; the logits (rows, words) become its gradient."""
    fused = _fused(logits)
    if fused is not None:
        loss: Tensor = fused.to_gradients(logits, targets, share)
        return loss
    rows = torch.arange(len(targets), device=targets.device)
    log = torch.log_softmax(cell.at_least_fp32(logits), dim=-1)
    loss = -(log[rows, targets] * share).sum()
    gradient = log.exp_()
    gradient[rows, targets] -= 1
    logits.copy_(gradient.mul_(share[:, None]))
    return loss
