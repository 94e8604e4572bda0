"""A network that learns: one step of it, its optimiser's memory, and what it draws from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from dialoscope.errors import ModelError
from dialoscope.model.batch import Batch, Output
from dialoscope.model.structure import Recipe

if TYPE_CHECKING:
    from accelerate import Accelerator

    from dialoscope.model.network import Seq2Seq

ExtraLoss = Callable[[Output, Batch], Tensor]  # a mean over the samples of a batch
# What PyTorch says where its error has no type; the last: more bytes than can be counted.
NO_MEMORY = ("out of memory", "can't allocate memory", "not enough memory", "storage size calculation overflowed")


class Objective(nn.Module):
    """A network with its loss as one module, so that whatever wraps it (precision, several GPUs) wraps both."""

    def __init__(self, network: nn.Module, extra_loss: ExtraLoss | None = None) -> None:
        super().__init__()
        self.network = network
        self.extra_loss = extra_loss

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """The cross-entropy of a response token, in nats, and in training the extra loss; their sum is minimised.

        Over responses, both are multiplied by the batch's mean length: cross-entropy is summed over tokens then, and
        the extra loss keeps its part in it.
        """
        network: Any = self.network
        extra_loss = self.extra_loss if self.training else None
        output = network(batch, attention=extra_loss is not None)
        return network.loss(output, batch), None if extra_loss is None else extra_loss(output, batch)


class Learner:
    """A network, its optimiser, and Accelerate around both."""

    def __init__(
        self, network: Seq2Seq, recipe: Recipe, accelerator: Accelerator, *, extra_loss: ExtraLoss | None = None
    ) -> None:
        self.network, self.recipe, self.accelerator = network, recipe, accelerator
        self.objective = accelerator.prepare(Objective(network, extra_loss))
        self.optimiser: Any = accelerator.prepare(make_optimiser(self.objective, recipe))

    def backward(
        self,
        batch: Batch,
        *,
        own_tokens: int,
        own_samples: int,
        token_share: float = 1.0,
        sample_share: float = 1.0,
        scale: float = 1.0,
    ) -> tuple[Tensor, Tensor | None]:
        """The gradients of this process's share of a batch; other processes compute the rest.

        Gives the summed cross-entropy of its own tokens, and the summed extra loss of its own samples.
        """
        loss, extra = self.objective(batch)
        alone, beside = loss.detach(), None if extra is None else extra.detach()
        processes = self.accelerator.num_processes
        if processes > 1:  # gradients are averaged: one loss is a mean over tokens, the other a mean over samples
            loss = loss * (token_share * processes)
            extra = None if extra is None else extra * (sample_share * processes)
        self.accelerator.backward((loss if extra is None else loss + extra) * scale)
        return alone * own_tokens, None if beside is None else beside * own_samples

    def update(self) -> None:
        """Move the weights by their gradients."""
        if self.recipe.clip is not None:
            self.accelerator.clip_grad_norm_(self.objective.parameters(), self.recipe.clip)
        self.optimiser.step()
        self.forget()

    def forget(self) -> None:
        """Drop the gradients."""
        self.optimiser.zero_grad(set_to_none=True)

    def resting(self) -> nn.Module:
        """The objective without what several processes need, and without dropout."""
        unwrapped: nn.Module = self.accelerator.unwrap_model(self.objective, keep_fp32_wrapper=True)
        return unwrapped.eval()

    def set_rate(self, rate: float) -> None:
        """Change the learning rate."""
        for group in self.optimiser.param_groups:
            group["lr"] = rate

    def is_finite(self) -> bool:
        """Whether all weights are still numbers."""
        return all(bool(weight.isfinite().all()) for weight in self.network.parameters())

    def memory(self) -> dict[str, Tensor]:
        """What the optimiser remembers, by parameter and name, as safetensors can hold it."""
        return memory_of(self.optimiser.optimizer)

    def remember(self, tensors: Mapping[str, Tensor]) -> None:
        """Give the optimiser its memory back."""
        give_back(self.optimiser.optimizer, tensors)


def memory_of(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """What an optimiser remembers, by parameter and name, as safetensors can hold it."""
    held = optimiser.state_dict()["state"]
    return {f"{place}.{name}": torch.as_tensor(one) for place, by in held.items() for name, one in by.items()}


def give_back(optimiser: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Give an optimiser its memory back."""
    groups = optimiser.state_dict()["param_groups"]
    count = sum(len(group["params"]) for group in groups)
    held: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        place, _, name = key.partition(".")
        if not (place.isdigit() and int(place) < count and name):
            raise ModelError(f"Expected an optimiser's memory of {count} weights, found '{key}'.")
        held.setdefault(int(place), {})[name] = tensor
    optimiser.load_state_dict({"state": held, "param_groups": groups})


def make_optimiser(objective: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """SGD or Adam, as the recipe says."""
    parameters = list(objective.parameters())
    kind: Any = torch.optim.SGD if recipe.optimiser == "sgd" else torch.optim.Adam
    is_fused = all(one.is_cuda for one in parameters)
    made: torch.optim.Optimizer = kind(parameters, lr=recipe.learning_rate, **({"fused": True} if is_fused else {}))
    return made


def make_accelerator(device: str, precision: str) -> Accelerator:
    """Accelerate for one device of this process, or for all processes of a launch."""
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState

    if not torch.distributed.is_initialized():
        AcceleratorState._reset_state(reset_partial_state=True)  # it would keep the last run's precision and device
    if device.startswith("cuda:"):
        torch.cuda.set_device(device)
    return Accelerator(cpu=device == "cpu", mixed_precision={"fp32": "no"}.get(precision, precision))


def seed_step(seed: int, *place: int) -> None:
    """Make dropout depend on where we are, not on how we came here: a resumed run draws what an unbroken one does."""
    drawn = np.random.SeedSequence([seed, *place]).generate_state(1, np.uint64)[0]
    torch.manual_seed(int(drawn))


def is_out_of_memory(error: BaseException) -> bool:
    """Whether this error says that a GPU, or the machine, has no memory left."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or any(
        sign in str(error).lower() for sign in NO_MEMORY
    )
