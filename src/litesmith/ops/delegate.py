"""What computes ops in place of the runtime: a kernel for one op, a delegate for many."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from litesmith.ir.types import Array, Graph, Op

Shape = tuple[int, ...]

# Computes outputs from inputs: arrays that are there already, inputs read-only, in C order.
Run = Callable[[Sequence[Array], Sequence[Array]], None]


class Native(NamedTuple):
    """Machine code that computes an op, called by the runtime without the interpreter.

    address  of a C function `int32 f(int64 user, int64 *room)`; not 0 says that it failed
    user     its first argument
    room     a number for each input, then each output: their addresses are put there before each
             call; what is behind them is the function's own. int64, contiguous
    kept     what must live as long
    """

    address: int
    user: int
    room: Array
    kept: object = None


class Kernel(Protocol):
    """One op of one opened model. Inputs are those that are computed: constants it has already.

    shapes  of the outputs, for these shapes of the inputs; called before the first run and after
            each resize
    run     computes; raises where it cannot
    native  the same as machine code, as of the last call of `shapes`; None where there is none
    note    what is to be said to the user; "" where nothing is
    """

    note: str

    def shapes(self, inputs: Sequence[Shape]) -> Sequence[Shape]: ...
    def run(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None: ...
    def native(self) -> Native | None: ...


class Delegate(Protocol):
    """Takes ops of a model over, as many neighbours at once as it can.

    claims   True for an op that it takes; a text, or False, says why it does not
    program  what computes a graph of claimed ops; its inputs are the graph's own, and constants
             are in the graph. Called again where a resize changes shapes
    """

    def claims(self, op: Op) -> bool | str: ...
    def program(self, graph: Graph) -> Run: ...
