"""Loops of many small kernels as CUDA graphs: launched once, not a thousand times.

A run has a `forward` and a `backward` over its own buffers. Once the same shapes have been seen before, the run is
captured with its buffers, and later calls copy their tensors in, replay it, and copy the results out. A captured run
that can go back is lent to one forward pass at a time and comes back with its backward pass, so nothing it holds is
overwritten early; a pass that could run backward and never does takes its run with it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor

SHARE_OF_MEMORY = 0.3  # that waiting runs may hold; the longest unused go first
CAPTURES_WITHOUT_GRADIENTS = True  # a process that trains beside others spends its memory better on training
MOST_SEEN = 4096  # shapes that are remembered; then all are forgotten, and have to come twice again
captured = dropped = 0  # runs of this process; many dropped ones mean that the share of memory is too small
Tensors = Sequence[Tensor | None]
Key = tuple[object, ...]


class Run(Protocol):
    """A computation over its own buffers."""

    def forward(self) -> Tensors:
        """The results."""
        ...

    def backward(self, *gradients: Tensor | None) -> Tensors:
        """The gradients of what it was made from."""
        ...


Make = Callable[..., Run]
_seen: set[Key] = set()
_waiting: OrderedDict[Key, list[CapturedForward]] = OrderedDict()


def take(make: Make, given: Tensors, *, goes_back: bool) -> Run:
    """A run over these tensors: a captured one where the shapes came before, on a GPU; otherwise a plain one."""
    first = given[0]
    if first is None or not first.is_cuda or torch.cuda.is_current_stream_capturing():
        return make(*given)
    if not (goes_back or CAPTURES_WITHOUT_GRADIENTS):
        return make(*given)
    key = (goes_back, *_key(make, given))
    if not _came_before(key):
        return make(*given)
    runs = _waiting.get(key)
    kind = Captured if goes_back else CapturedForward
    return (runs.pop() if runs else kind(make, given, key)).load(given)


def _came_before(key: Key) -> bool:
    is_known = key in _seen
    if not is_known and len(_seen) >= MOST_SEEN:
        _seen.clear()
    _seen.add(key)
    return is_known


def clear() -> None:
    """Give the memory of all waiting runs back."""
    _waiting.clear()
    _seen.clear()


def give_way() -> bool:
    """Where memory has run out: give back what waiting runs hold, and hold half as much from now on.

    Whether there was anything to give: on a card that others use too, the share may be more than they leave.
    """
    global SHARE_OF_MEMORY
    if not any(_waiting.values()):
        return False
    SHARE_OF_MEMORY /= 2
    clear()
    torch.cuda.empty_cache()
    return True


def _key(make: Make, given: Tensors) -> Key:
    precision = torch.get_float32_matmul_precision()  # a captured product keeps the one it was captured with
    return (make, precision, *(None if one is None else (one.shape, one.dtype, one.device) for one in given))


class CapturedForward:
    """A run whose forward pass is a CUDA graph over fixed tensors."""

    def __init__(self, make: Make, given: Tensors, key: Key) -> None:
        self.key = key
        before = torch.cuda.memory_allocated()
        self.given = [None if one is None else _copied(one) for one in given]
        self.run = make(*self.given)
        self.bytes = torch.cuda.memory_allocated() - before
        self._warm_up()
        self._capture()
        global captured
        captured += 1

    def _warm_up(self) -> None:
        """Kernels are compiled and libraries set up before anything is captured; what it draws is drawn again."""
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.random.fork_rng(devices=[torch.cuda.current_device()]), torch.cuda.stream(stream):
            self._run_once()
        torch.cuda.current_stream().wait_stream(stream)

    def _run_once(self) -> None:
        self.run.forward()

    def _capture(self) -> None:
        self.ahead = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.ahead, capture_error_mode="thread_local"):
            before = torch.cuda.memory_reserved()  # here, for beginning a capture gives unused memory back
            self.results = self.run.forward()
        self._add_reserved_since(before)

    def _add_reserved_since(self, before: int) -> None:
        """A graph has a pool of its own, which keeps all it reserved, what was only used in between included."""
        self.bytes += torch.cuda.memory_reserved() - before

    def load(self, given: Tensors) -> CapturedForward:
        """Copy the tensors in."""
        _copy(self.given, given)
        return self

    def forward(self) -> Tensors:
        """Replay, copy the results out, and wait for the next pass."""
        found = self._replay()
        _wait(self)
        return found

    def backward(self, *gradients: Tensor | None) -> Tensors:
        """There is none."""
        raise RuntimeError("This run was made without gradients.")

    def _replay(self) -> Tensors:
        self.ahead.replay()
        return tuple(None if one is None else one.clone() for one in self.results)


class Captured(CapturedForward):
    """A run whose backward pass is captured as well."""

    def _run_once(self) -> None:
        results = self.run.forward()
        self.run.backward(*(None if one is None else _copied(one) for one in results))

    def _capture(self) -> None:
        super()._capture()
        self.outer = [None if one is None else _copied(one) for one in self.results]
        self.bytes += sum(one.nbytes for one in self.outer if one is not None)
        self.back = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.back, pool=self.ahead.pool(), capture_error_mode="thread_local"):
            before = torch.cuda.memory_reserved()
            self.gradients = self.run.backward(*self.outer)
        self._add_reserved_since(before)

    def forward(self) -> Tensors:
        """Replay, and copy the results out."""
        return self._replay()

    def backward(self, *gradients: Tensor | None) -> Tensors:
        """Copy the gradients in, replay, copy out; then wait for the next forward pass."""
        _copy(self.outer, gradients)
        self.back.replay()
        found = tuple(None if one is None else one.clone() for one in self.gradients)
        _wait(self)
        return found


def _copied(values: Tensor) -> Tensor:
    """A copy whose axes lie in order, however those of the original do."""
    return values.detach().clone(memory_format=torch.contiguous_format)


def _copy(places: Tensors, values: Tensors) -> None:
    for place, value in zip(places, values, strict=True):
        if place is not None and value is not None:
            place.copy_(value)


def _wait(run: CapturedForward) -> None:
    _waiting.setdefault(run.key, []).append(run)
    _waiting.move_to_end(run.key)
    limit = SHARE_OF_MEMORY * torch.cuda.get_device_properties(run.given[0].device).total_memory  # type: ignore[union-attr]
    while sum(one.bytes for runs in _waiting.values() for one in runs) > limit:
        oldest = next(key for key, runs in _waiting.items() if runs)  # those of a key may all be lent
        _waiting[oldest].pop()
        global dropped
        dropped += 1
