"""The interface to a Ray cluster, and the engine that `--engine` names."""

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

# The seconds after which a silent port counts as closed.
_PATIENCE = 4.0


class Lost(CannotRun):
    """The cluster failed, not the work that it was given; whether that would have succeeded is
    unknown.
    """


class Held(Protocol, Generic[T_co]):
    """A value that lies with the workers or will; a call that takes it as an argument need not ship
    it.
    """


class Worker(NamedTuple):
    """A working process, as the progress display shows it.

    node    the name of its machine
    device  True where times are taken on that machine
    doing   the present work; "" while it waits
    done    the number of finished calls
    """

    node: str
    device: bool
    doing: str
    done: int


class Engine(Protocol):
    """Calls functions of this package on other machines; None stands for this process.

    text   as the user typed it
    width  the number of calls that run at a time
    """

    @property
    def text(self) -> str: ...
    @property
    def width(self) -> int: ...

    def hold(self, key: str, make: Callable[[], T], nbytes: Callable[[T], int]) -> Held[T]:
        """The result of `make`, shipped once and kept as long as there is room for it."""
        ...

    def once(self, key: str, start: "Callable[[], Held[T]]") -> Held[T]:
        """The result of a call, which is started only if its result is not there yet."""
        ...

    def call(self, what: str, work: Callable[..., T], *given: object) -> Held[T]:
        """Starts `work(*given)` on a worker, which receives the values of `Held` arguments."""
        ...

    def gathered(self, started: Iterable[Held[T]]) -> Iterator[T]:
        """Results in the order of the calls, of which only a few are started ahead."""
        ...

    def alone(
        self, what: str, work: Callable[..., T], *given: object, models: tuple[str, ...] = ()
    ) -> T:
        """The result of a call on a device that times nothing else meanwhile; the device's log
        names the digests of the models.
        """
        ...

    def on_devices(self, what: str, work: Callable[..., T], *given: object) -> list[T]:
        """The results of a call on every device, timed or not."""
        ...

    def cancel(self, started: "Iterable[Held[object]]") -> None:
        """Cancels calls whose results are no longer needed."""
        ...

    def watch(self, tell: "Tell | None") -> None:
        """Reports worker status to the progress callback."""
        ...


Tell = Callable[[tuple[Worker, ...]], None]


def host_name() -> str:
    """The name of this machine."""
    return socket.gethostname()


class RayRoom(Protocol):
    """The interface of the room with the Ray engine.

    connect  joins the cluster at an address for the time of a block
    inside   the engine that called the function that this process runs
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
    """Opens the engine that a text names for the time of a block; None is this process.

    An engine that is already open stays open.
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
    """The engine that called the function that this process runs."""
    return _ray_room().inside()


def refuse_engine(text: str) -> None:
    """Raises where a text names no engine or one that cannot be reached; takes a few seconds at
    most.
    """
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
        why = why_no_answer(*address)
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


def why_no_answer(host: str, port: int) -> str:
    """Why a port does not answer; "" where it does."""
    try:
        socket.create_connection((host, port), timeout=_PATIENCE).close()
    except TimeoutError:
        return phrase("no answer in {patience:.0f} s", _PATIENCE)
    except OSError as error:
        return os_reason(error)
    return ""
