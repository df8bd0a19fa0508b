"""`--engine`: from what a user types to where work is done."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec

from litesmith.errors import BadInput, CannotRun
from litesmith.phrases import phrase
from litesmith.workers.engine import Engine

LOCAL, RAY = "local", "ray"
ENGINES = (LOCAL, RAY, "ray://HOST:PORT")

_SCHEME = "ray://"
_RAY_ROOM = "litesmith.ray_engine.ray_cluster"
_NO_RAY = phrase('it needs ray, which is not installed; pip install "litesmith[ray]"')

# A port that does not answer in so many seconds is not there.
_PATIENCE = 4.0


@contextmanager
def opened(engine: "str | Engine | None") -> Iterator[Engine | None]:
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
    with import_module(_RAY_ROOM).connected(engine) as found:
        yield found


def inside() -> Engine:
    """The engine that has called the work that this process does."""
    return import_module(_RAY_ROOM).inside()


def refuse_engine(text: str) -> None:
    """Raises where a text names no engine, or one that cannot be had; takes seconds at the most."""
    if text == LOCAL:
        return
    if text != RAY and not text.startswith(_SCHEME):
        raise BadInput("no engine {what!r}; there are {engines}", text, ", ".join(ENGINES))
    address = address_of(text) if text.startswith(_SCHEME) else None
    if find_spec("ray") is None:
        raise CannotRun("--engine {what}: {no_ray}", text, _NO_RAY)
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
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise BadInput("--engine {what}: give a host and a port, as in ray://head:10001", text)
    return host, int(port)


def unanswered(host: str, port: int) -> str:
    """Why nothing listens on a port; "" where something does."""
    try:
        socket.create_connection((host, port), timeout=_PATIENCE).close()
    except TimeoutError:
        return phrase("no answer in {patience:.0f} s", _PATIENCE)
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return ""
