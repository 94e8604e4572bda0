"""A transformer's layers in training as one captured run: a thousand small kernels, launched once.

Weights are not copied: a captured pass reads them where they lie, and there the optimiser changes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from dialoscope.model import graphs

Weight = TypeVar("Weight", bound=Tensor)


class Layers(Protocol):
    """What computes one tensor from several; equal where its weights are the same ones."""

    def parameters(self) -> Sequence[nn.Parameter]:
        """The weights."""
        ...

    @property
    def __call__(self) -> Callable[..., Tensor]:
        """Over weights, in the order of `parameters`, and some tensors."""
        ...


def is_worth_it(module: nn.Module, like: Tensor) -> bool:
    """Whether a pass is one of thousands that go back, on a GPU."""
    return module.training and torch.is_grad_enabled() and like.is_cuda


def replay(layers: Layers, *given: Tensor) -> Tensor:
    """What the layers compute; differentiable once, by the tensors and by the weights."""
    kind, weights = given[0].device.type, layers.parameters()
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None
    make = Make(layers, dtype, tuple((one.data_ptr(), one.requires_grad) for one in weights))
    out: Tensor = _Replayed.apply(make, len(given), *given, *_learning(weights))  # type: ignore[no-untyped-call]
    return out


def _learning(weights: Sequence[Weight]) -> list[Weight]:
    """Those that are not frozen."""
    return [one for one in weights if one.requires_grad]


@dataclass(frozen=True)
class Make:
    """Makes runs of some layers; the layers themselves, the precision and where the weights lie tell them apart."""

    layers: Layers
    dtype: torch.dtype | None  # of autocast
    places: tuple[tuple[int, bool], ...]  # where a captured graph reads each weight, and whether it learns

    def __call__(self, *given: Tensor | None) -> Pass:
        """A run over these tensors."""
        return Pass(self, [one for one in given if one is not None])


class Pass:
    """One pass forward and backward, recorded by autograd.

    Weights and tensors take part under other names, new in every pass: autograd ties a name to the stream that it was
    first used in, which is the one that trains or the one that warms up, and a capture must not wait for those.
    """

    def __init__(self, make: Make, given: Sequence[Tensor]) -> None:
        self.make, self.taken = make, given
        self.out: Tensor | None = None

    def forward(self) -> tuple[Tensor]:
        """What the layers compute."""
        self.weights = [one.detach().requires_grad_(one.requires_grad) for one in self.make.layers.parameters()]
        self.given = [one.detach().requires_grad_(one.is_floating_point()) for one in self.taken]
        with torch.enable_grad(), self._precision():
            self.out = self.make.layers(self.weights, *self.given)
        return (self.out.detach(),)

    def _precision(self) -> AbstractContextManager[Any]:
        """Weights in short precision are not kept from an earlier pass: a captured one would read old weights."""
        kind, dtype = self.given[0].device.type, self.make.dtype
        return torch.autocast(kind, dtype=dtype, enabled=dtype is not None, cache_enabled=False)

    def backward(self, *gradients: Tensor | None) -> list[Tensor | None]:
        """The gradients of what is given, and then of the weights."""
        assert self.out is not None
        wanted = [one for one in self.given if one.requires_grad]
        both = [*wanted, *_learning(self.weights)]
        found = iter(torch.autograd.grad(self.out, both, gradients[0], allow_unused=True))
        return [*(next(found) if one.requires_grad else None for one in self.given), *found]


class _Replayed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, make: Make, count: int, *tensors: Tensor) -> Tensor:
        ctx.run = run = graphs.take(make, tensors[:count], goes_back=True)
        out = run.forward()[0]
        assert out is not None
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        run, ctx.run = ctx.run, None
        if run is None:
            raise RuntimeError("These layers run backward once: what they computed is gone afterwards.")
        return (None, None, *run.backward(gradient))
