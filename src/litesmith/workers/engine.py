"""Where work is done: what is asked of a cluster, and `--engine`, which names one."""

import socket
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from typing import Generic, NamedTuple, Protocol, TypeVar

from litesmith.errors import BadInput, CannotRun, os_reason
from litesmith.installing import install_command
from litesmith.phrases import phrase
from litesmith.plugins import find_plugin, why_missing
from litesmith.type_guards import is_whole

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

LOCAL, RAY = "local", "ray"
ENGINES = (LOCAL, RAY, "ray://HOST:PORT")

_SCHEME = "ray://"

# A port that does not answer in so many seconds is not there.
_PATIENCE = 4.0


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


class RayRoom(Protocol):
    """What the room of the Ray engine offers.

    connect  joins the cluster at an address, until it is left
    inside   the engine that has called the work of this process
    """

    def connect(self, text: str) -> AbstractContextManager[Engine]: ...
    def inside(self) -> Engine: ...


def _ray_room() -> RayRoom:
    found = find_plugin("ray")
    if found is None:
        raise CannotRun(why_missing("ray"))
    return found.PLUG


@contextmanager
def open_engine(engine: "str | Engine | None") -> Generator[Engine | None]:
    """The engine that a text names, until it is left; None is this process.

    One that is open already stays open.
    """
    if engine is None or engine == LOCAL:
        yield None
        return
    if not isinstance(engine, str):
        yield engine
        return
    refuse_engine(engine)
    with _ray_room().connect(engine) as found:
        yield found


def inside() -> Engine:
    """The engine that has called the work that this process does."""
    return _ray_room().inside()


def refuse_engine(text: str) -> None:
    """Raises where a text names no engine, or one that cannot be had; takes seconds at the most."""
    if text == LOCAL:
        return
    if text != RAY and not text.startswith(_SCHEME):
        raise BadInput("no engine {what!r}; there are {engines}", text, ", ".join(ENGINES))
    address = address_of(text) if text.startswith(_SCHEME) else None
    missing = why_missing("ray")
    if missing:
        raise CannotRun("--engine {what}: {missing}", text, missing)
    if find_spec("ray") is None:
        raise CannotRun(
            "--engine {what}: it needs ray, which is not installed; {install}",
            text,
            install_command("ray"),
        )
    if address is not None:
        why = unanswered(*address)
        if why:
            raise CannotRun(
                "--engine {what}: nothing answers there ({why}); on that machine, `ray "
                "start --head` starts a cluster that listens on port 10001",
                text,
                why,
            )


def address_of(text: str) -> tuple[str, int]:
    """The host and the port of `ray://HOST:PORT` or `HOST:PORT`."""
    host, _, port = text.removeprefix(_SCHEME).rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not is_whole(port) or not 0 < int(port) < 65536:
        raise BadInput("--engine {what}: give a host and a port, as in ray://head:10001", text)
    return host, int(port)


def unanswered(host: str, port: int) -> str:
    """Why nothing listens on a port; "" where something does."""
    try:
        socket.create_connection((host, port), timeout=_PATIENCE).close()
    except TimeoutError:
        return phrase("no answer in {patience:.0f} s", _PATIENCE)
    except OSError as error:
        return os_reason(error)
    return ""
