"""One step of training. On a GPU it is recorded once and replayed, because Python takes longer to
launch the kernels of a small network than the GPU takes to run them.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# torch leaves parts of its types open.

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import torch

from litesmith.ir.types import Array

# Runs before a recording, in which torch chooses its kernels.
_WARM_UP = 3


@runtime_checkable
class Replayable(Protocol):
    """A problem whose steps differ only in a few numbers, with everything else on the device.

    draw     the numbers of a step, of the same shapes in every step; None where they are not
    loss_of  the loss from these numbers, computed on the device
    """

    @property
    def device(self) -> torch.device: ...
    def draw(self, places: Array, turn: int) -> list[Array] | None: ...
    def loss_of(self, drawn: Sequence[torch.Tensor]) -> torch.Tensor: ...


class PlainProblem(Protocol):
    """A problem with a loss by the places of samples."""

    def loss(self, places: Array, turn: int) -> torch.Tensor: ...


def make_optimizer(parameters: list[torch.nn.Parameter], rate: float) -> torch.optim.Optimizer:
    """Adam, in a form that can be recorded where the parameters are on a GPU."""
    if not parameters or not parameters[0].is_cuda:
        return torch.optim.Adam(parameters, lr=rate, fused=True)
    pace = torch.tensor(rate, device=parameters[0].device)
    return torch.optim.Adam(parameters, lr=pace, fused=True, capturable=True)


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Sets the rate of the next step in place, where the recorded step reads it."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], torch.Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


class Stepper:
    """Steps of one optimizer on one problem."""

    def __init__(
        self, problem: PlainProblem, parameters: list[torch.nn.Parameter], optimizer: object
    ) -> None:
        assert isinstance(optimizer, torch.optim.Optimizer)
        self._problem, self._parameters, self._optimizer = problem, parameters, optimizer
        self._graph: torch.cuda.CUDAGraph | None = None
        self._given: list[torch.Tensor] = []
        self._is_plain = not (
            isinstance(problem, Replayable) and problem.device.type == "cuda" and parameters
        )

    def __call__(self, places: Array, turn: int) -> None:
        drawn = None
        if not self._is_plain:
            assert isinstance(self._problem, Replayable)
            drawn = self._problem.draw(places, turn)
            self._is_plain = drawn is None
        if drawn is None:
            self._take(self._problem.loss(places, turn))
            return
        if self._graph is None:
            self._record(drawn)
        if self._graph is None:
            self._take(self._problem.loss(places, turn))
            return
        for given, value in zip(self._given, drawn, strict=True):
            given.copy_(torch.from_numpy(value), non_blocking=True)
        self._graph.replay()

    def _take(self, loss: torch.Tensor) -> None:
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self._optimizer.step()

    def _record(self, drawn: Sequence[Array]) -> None:
        """The step as a graph of the device; steps stay plain where it cannot be recorded."""
        problem = self._problem
        assert isinstance(problem, Replayable)
        self._given = [torch.from_numpy(value).to(problem.device) for value in drawn]
        before = [parameter.detach().clone() for parameter in self._parameters]
        state = {p: {k: v.clone() for k, v in s.items()} for p, s in self._optimizer.state.items()}
        try:
            stream = torch.cuda.Stream(problem.device)
            stream.wait_stream(torch.cuda.current_stream(problem.device))
            with torch.cuda.stream(stream):
                for _ in range(_WARM_UP):
                    self._take(problem.loss_of(self._given))
            torch.cuda.current_stream(problem.device).wait_stream(stream)
            self._optimizer.zero_grad(set_to_none=True)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self._take(problem.loss_of(self._given))
            self._graph = graph
        except RuntimeError:  # some op waits for the device, or copies from the host
            self._is_plain = True
        self._restore(before, state)

    @torch.no_grad()
    def _restore(
        self,
        before: Sequence[torch.Tensor],
        state: dict[torch.Tensor, dict[str, torch.Tensor]],
    ) -> None:
        """Undoes the changes of the warm-up in place: the recording refers to these addresses."""
        for parameter, value in zip(self._parameters, before, strict=True):
            parameter.copy_(value)
        for parameter, own in self._optimizer.state.items():
            for name, value in own.items():
                was = state.get(parameter, {}).get(name)
                value.zero_() if was is None else value.copy_(was)
