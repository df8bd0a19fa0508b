"""Kernels of this package, as the rest of it knows them: a room that can be taken away."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from litesmith.errors import CannotRun
from litesmith.ir.types import Graph, Model, Op
from litesmith.ops.delegate import Delegate
from litesmith.plugins import find_plugin, why_missing
from litesmith.run.core.placement import Placement
from litesmith.run.core.runner import Runner
from litesmith.run.litert.capi import Event

Names = tuple[Sequence[str], Sequence[str]]  # of inputs and of outputs


class SparseLayer(NamedTuple):
    """A layer that could be computed without its zeros.

    zeros     the share of blocks of four inputs that are zero
    even      the share from which sparse is faster than dense; None where it never is
    gain      how many times faster the layer should be as it is
    dense_us  microseconds that the dense layer should take
    """

    rows: int
    inputs: int
    channels: int
    dtype: str
    zeros: float
    even: float | None
    gain: float
    dense_us: float

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.rows, self.inputs, self.channels

    @property
    def products(self) -> int:
        """Multiplications of the dense layer."""
        return self.rows * self.inputs * self.channels


class ProfiledRunner(Runner, Protocol):
    """A runner that can record an event for every op."""

    def start_profile(self) -> None: ...
    def stop_profile(self) -> list[Event]: ...


class OwnDelegate(Delegate, Protocol):
    """Takes the ops that are faster in kernels of this package.

    takes_all   True where a whole graph can be one program, and something is won by it
    open_graph  a whole graph as one program, without the runtime; `number` is the graph's
    taken_note  how many ops of a model are taken, and why not the others
    """

    def takes_all(self, graph: Graph) -> bool: ...
    def open_graph(self, graph: Graph, *, names: Names, number: int = 0) -> ProfiledRunner: ...
    def taken_note(self, model: Model) -> str: ...


class OwnKernels(Protocol):
    """The interface of the room of kernels.

    why_not       why kernels cannot be compiled here; "" where they can
    is_cold       True where kernels must be compiled first, some seconds once per machine
    place         which ops of a model have a kernel
    sparse_facts  the expected times of a layer without its zeros; raises where it has no kernel
    """

    def why_not(self) -> str: ...
    def is_cold(self) -> bool: ...
    def delegate(self, threads: int = 1) -> OwnDelegate: ...
    def place(self, model: Model) -> Placement: ...
    def sparse_facts(self, op: Op) -> SparseLayer: ...


def find_own_kernels() -> OwnKernels | None:
    """The room of kernels; None where it is not installed."""
    found = find_plugin("kernels")
    return None if found is None else found.PLUG


def own_kernels() -> OwnKernels:
    """The room of kernels; raises where it is not installed."""
    found = find_own_kernels()
    if found is None:
        raise CannotRun(why_missing("kernels"))
    return found
