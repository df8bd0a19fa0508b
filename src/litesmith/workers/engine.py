"""What work asks of a cluster: functions called elsewhere, with what they are given kept there."""

import socket
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, Protocol, TypeVar

from litesmith.errors import CannotRun

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Lost(CannotRun):
    """The cluster is at fault, not what it was asked to do: nothing is known of that."""


class Held(Protocol, Generic[T_co]):
    """A value that lies with the workers, or will: given to a call, it is there already."""


class Worker(NamedTuple):
    """A process at work, for whoever watches.

    node    the name of its machine
    device  True where that machine is one that times are taken on
    doing   what it does; "" where it waits
    done    calls that it has ended
    """

    node: str
    device: bool
    doing: str
    done: int


class Engine(Protocol):
    """Calls functions of this package on other machines; None in its place is this process.

    text   as the user typed it
    width  how many calls run at a time
    """

    @property
    def text(self) -> str: ...
    @property
    def width(self) -> int: ...

    def hold(self, key: str, make: Callable[[], T], nbytes: Callable[[T], int]) -> Held[T]:
        """What `make` gives, shipped once for as long as there is room for it."""
        ...

    def once(self, key: str, start: "Callable[[], Held[T]]") -> Held[T]:
        """The result of a call that is made unless its result is there."""
        ...

    def call(self, what: str, work: Callable[..., T], *given: object) -> Held[T]:
        """Starts `work(*given)` on a worker; what is held is handed over as what it stands for."""
        ...

    def gathered(self, started: Iterable[Held[T]]) -> Iterator[T]:
        """Results in the order of the calls, of which only so many are started ahead."""
        ...

    def alone(
        self, what: str, work: Callable[..., T], *given: object, models: tuple[str, ...] = ()
    ) -> T:
        """The result of a call on a device, where nothing else is timed meanwhile; its log names
        the digests of the models."""
        ...

    def on_devices(self, what: str, work: Callable[..., T], *given: object) -> list[T]:
        """The results of a call on every device, timed or not."""
        ...

    def cancel(self, started: "Iterable[Held[object]]") -> None:
        """Ends calls whose results nobody waits for any more."""
        ...

    def watch(self, tell: "Tell | None") -> None:
        """Has whoever waits told what the workers do."""
        ...


Tell = Callable[[tuple[Worker, ...]], None]


def host_name() -> str:
    """What this machine is called."""
    return socket.gethostname()
