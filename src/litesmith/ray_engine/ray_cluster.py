"""The engine `ray`: joining a cluster and leaving it, functions as its tasks, and the board that
tells of them."""

# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# ray leaves parts of its types open.

import logging
import os
import warnings
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from tempfile import gettempdir
from time import monotonic
from typing import Any, NoReturn, TypeVar, cast

# Read when ray is imported: it sends nothing home, joins nothing by itself once a cluster is lost,
# and waits seconds, not minutes, for what is not there.
for _name_of, _value in {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_AUTO_CONNECT": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_CLIENT_RECONNECT_GRACE_PERIOD": "5",
    "RAY_CLIENT_INITIAL_CONNECTION_TIMEOUT_S": "1",
    "RAY_CLIENT_MAX_CONNECTION_TIMEOUT_S": "1",
}.items():
    os.environ.setdefault(_name_of, _value)

import ray  # noqa: E402  # pyright: ignore[reportMissingImports]
from ray import exceptions  # noqa: E402  # pyright: ignore[reportMissingImports]
from ray.util.scheduling_strategies import (  # noqa: E402  # pyright: ignore[reportMissingImports]
    NodeAffinitySchedulingStrategy,
)

from litesmith._version import VERSION  # noqa: E402
from litesmith.errors import BadInput, CannotRun, LitesmithError  # noqa: E402
from litesmith.operating_system import usable_cores  # noqa: E402
from litesmith.phrases import phrase  # noqa: E402
from litesmith.ray_engine.device_log import DECLARE, RESOURCE, timed_alone  # noqa: E402
from litesmith.run.litert.capi import installed_version  # noqa: E402
from litesmith.workers.engine import (  # noqa: E402
    RAY,
    Engine,
    Held,
    Lost,
    Tell,
    Worker,
    address_of,
    host_name,
    why_no_answer,
)

T = TypeVar("T")

Node = dict[str, Any]

# A store of our own for the values of calls.
_STORE_BYTES = 1_000_000_000


def join(text: str) -> None:
    logging.getLogger("ray").setLevel(logging.ERROR)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    address = text if text != RAY else _running()
    if not address:
        quiet |= {
            "num_cpus": usable_cores(),
            "resources": {RESOURCE: 1},
            "object_store_memory": _STORE_BYTES,
            "include_dashboard": False,
        }
    try:
        with warnings.catch_warnings(), nullcontext() if address else _on_loopback():
            warnings.simplefilter("ignore")  # an error says the same
            ray.init(address or "local", **quiet)
        for name in ("ray", "ray.util.client", "ray.util.client.logsclient"):
            logging.getLogger(name).setLevel(logging.CRITICAL)  # an error says it in one line
    except (ConnectionError, RuntimeError, OSError, ValueError, exceptions.RayError) as error:
        leave()
        raise CannotRun(
            "--engine {what}: cannot be joined ({first_line}); is it a Ray cluster with ray "
            "{version}, and RAY_AUTH_TOKEN the token it was started with?",
            text,
            first_line(error),
            ray.__version__,
        ) from None


@contextmanager
def _on_loopback() -> Generator[None]:
    """A cluster that is started meanwhile is reached from this machine alone: else it would take
    work, which is code, from all of the network. Ray has that for macOS and Windows."""
    from ray._private import ray_constants  # pyright: ignore[reportMissingImports]

    variable, name = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "ENABLE_RAY_CLUSTER"
    before, known = os.environ.get(variable), getattr(ray_constants, name)
    os.environ[variable] = "0"
    setattr(ray_constants, name, False)
    try:
        yield
    finally:
        setattr(ray_constants, name, known)
        os.environ.pop(variable)
        if before is not None:
            os.environ[variable] = before


@contextmanager
def unprinted() -> Generator[None]:
    """Without what ray tells of workers that it replaces: it goes to standard output, where
    results go, and there is no option for it."""
    from ray._private import worker  # pyright: ignore[reportMissingImports]

    name = "print_to_stdstream"
    known = getattr(worker, name, None)
    if known is None:
        yield
        return
    setattr(worker, name, lambda *_, **__: None)
    try:
        yield
    finally:
        setattr(worker, name, known)


def _running() -> str:
    """The address of the cluster that the environment names, or that was started here; "" where
    none runs. Raises where the one that is named does not answer."""
    named = os.environ.get("RAY_ADDRESS", "")
    if named == "local":
        return ""
    if named and named != "auto":
        why = why_no_answer(*address_of(named))
        if why:
            raise CannotRun(
                "--engine ray: nothing answers at {named}, which RAY_ADDRESS names ({why}); "
                "start that cluster, or unset RAY_ADDRESS",
                named,
                why,
            )
        return named
    place = Path(os.environ.get("RAY_TMPDIR", gettempdir())) / "ray" / "ray_current_cluster"
    with suppress(OSError, BadInput):  # what ray leaves there may be of a cluster that is gone
        known = place.read_text().strip()
        return "" if why_no_answer(*address_of(known)) else known
    return ""


def leave() -> None:
    with suppress(Exception):  # whatever a cluster that is gone raises
        ray.shutdown()


def head(text: str) -> tuple[str, int]:
    if text != RAY:
        return address_of(text)
    return address_of(ray.get_runtime_context().gcs_address)


def alive() -> list[Node]:
    return [node for node in ray.nodes() if node["Alive"]]


def cpus(node: Node) -> float:
    return node["Resources"].get("CPU", 0.0)


def is_device(node: Node) -> bool:
    return node["Resources"].get(RESOURCE, 0.0) > 0


def node_name(node: Node) -> str:
    return str(node.get("NodeManagerHostname") or node["NodeName"])


def store_bytes() -> float:
    return max((n["Resources"].get("object_store_memory", 0.0) for n in alive()), default=0.0)


def there(node: Node, **more: object) -> dict[str, object]:
    """Options of a task that runs on one machine, or not at all."""
    pinned = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
    return {"num_cpus": 0, **more, "scheduling_strategy": pinned}


def first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:200].rstrip(".") if lines else type(error).__name__


# A call whose worker dies is made again so often, elsewhere where there is an elsewhere.
RETRIES = 3


def own_versions() -> tuple[str, ...]:
    return VERSION, installed_version()


def versions_text(versions: tuple[str, ...]) -> str:
    return f"litesmith {versions[0]} with LiteRT {versions[1]}"


def _node_id() -> str:
    return ray.get_runtime_context().get_node_id()


@ray.remote(num_cpus=0, max_retries=RETRIES)
def versions_task() -> tuple[str, ...]:
    return own_versions()


@ray.remote(num_cpus=1, max_retries=RETRIES)
def called_task(board: Any, what: str, work: Callable[..., T], *given: object) -> T:
    with _noted(board, what, False):
        return work(*given)


@ray.remote(max_retries=0)
def alone_task(
    board: Any, named: tuple[str, tuple[str, ...]], work: Callable[..., T], *given: object
) -> T:
    what, models = named
    with _noted(board, what, True), timed_alone(_node_id(), what, models):
        return work(*given)


@contextmanager
def _noted(board: Any, what: str, device: bool) -> Generator[None]:
    """Tells the board what this process does, where there is one; nothing waits for it."""
    place = (_node_id()[:6], os.getpid(), host_name(), device)
    if board is not None:
        board.note.remote(*place, what)
    try:
        yield
    finally:
        if board is not None:
            board.note.remote(*place, "")


@ray.remote
class Board:
    """What each worker does, by node and process."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, int], Worker] = {}

    def note(self, node: str, pid: int, host: str, device: bool, doing: str) -> None:
        known = self._rows.get((node, pid))
        done = (known.done if known else 0) + (not doing)
        self._rows[node, pid] = Worker(f"{host} {node}", device, doing, done)

    def rows(self) -> list[Worker]:
        return [row for _, row in sorted(self._rows.items())]


# Results that are on their way for each worker.
_AHEAD = 3

# A result is waited for so long before the cluster is asked whether it is still there, and it is
# given up once it has been silent, or without a worker, for so many seconds.
_LOOK_SECONDS, _LOST_SECONDS = 1.0, 10.0

# The first call on every machine.
_GREET_SECONDS = 60.0

# Of the store that values lie in, this much is for what may be asked for again.
_KEPT_SHARE = 0.5

# Results that may be asked for again.
_MOST_RESULTS = 20_000

_BOARD_SECONDS = 0.5


@contextmanager
def connect(text: str) -> Generator["Cluster"]:
    """The cluster at an address; `ray` is the one that runs here, or one that ends with us."""
    found = Cluster(text)
    if ray.is_initialized():  # by the program that calls us: it stays joined
        found.greet()
        yield found
        return
    with unprinted():
        join(text)
        try:
            found.greet()
            yield found
        finally:
            leave()


class Cluster:
    """A cluster that this process has joined."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._kept: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self._results: OrderedDict[str, Any] = OrderedDict()
        self._tell: Tell | None = None
        self._board: Any = None
        self._told = 0.0
        self._last_node = 0

    def greet(self) -> None:
        """Raises where a machine does not answer, or has another version of what computes."""
        nodes = alive()
        if not any(map(cpus, nodes)):
            more = phrase("start one with `ray start --address=HEAD:6379`")
            raise CannotRun(
                "--engine {what}: the cluster has no worker; {more_workers}", self.text, more
            )
        asked = {node["NodeID"]: versions_task.options(**there(node)).remote() for node in nodes}
        done, late = ray.wait(list(asked.values()), num_returns=len(asked), timeout=_GREET_SECONDS)
        names = {ref: node_name(node) for node, ref in zip(nodes, asked.values(), strict=True)}
        if late:
            raise CannotRun(
                "--engine {what}: {names} does not answer; take it out of the cluster, or "
                "look into its logs",
                self.text,
                names[late[0]],
            )
        own = own_versions()
        for ref in done:
            versions = self._result(ref)
            if versions != own:
                raise CannotRun(
                    "--engine {what}: {names} has {versions}, this machine {versions2}; "
                    "install the same on all",
                    self.text,
                    names[ref],
                    versions_text(versions),
                    versions_text(own),
                )

    # What others ask for.

    @property
    def width(self) -> int:
        return max(1, int(sum(map(cpus, alive()))))

    def cancel(self, started: Iterable[Held[object]]) -> None:
        for held in started:
            with suppress(Exception):  # what has ended, or went with the cluster
                ray.cancel(cast(Any, held), force=True)

    def watch(self, tell: Tell | None) -> None:
        """Tells what the workers do, while results are waited for."""
        self._tell = tell
        if tell is not None and self._board is None:
            self._board = Board.options(num_cpus=0, max_restarts=-1).remote()

    def hold(self, key: str, make: Callable[[], T], nbytes: Callable[[T], int]) -> Held[T]:
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key][0]
        with self._told_of_loss():
            value = make()
            size = nbytes(value)
            self._kept[key] = (ray.put(value), size)
            room = _KEPT_SHARE * store_bytes()
        while len(self._kept) > 1 and sum(size for _, size in self._kept.values()) > room:
            self._kept.popitem(last=False)  # calls that were given it still have it
        return self._kept[key][0]

    def once(self, key: str, start: Callable[[], Held[T]]) -> Held[T]:
        if key not in self._results:
            self._results[key] = start()
        self._results.move_to_end(key)
        while len(self._results) > _MOST_RESULTS:
            self._results.popitem(last=False)
        return self._results[key]

    def call(self, what: str, work: Callable[..., T], *given: object) -> Held[T]:
        with self._told_of_loss():
            return called_task.remote(self._board, what, work, *given)

    def gathered(self, started: Iterable[Held[T]]) -> Iterator[T]:
        with self._told_of_loss():
            most = _AHEAD * self.width
        waiting: deque[Any] = deque()
        source = iter(started)
        try:
            for held in source:
                waiting.append(held)
                if len(waiting) > most:
                    yield self._result(waiting.popleft())
            while waiting:
                yield self._result(waiting.popleft())
        finally:  # an error, a Ctrl-C, or a reader that has enough
            self.cancel(waiting)

    def on_devices(self, what: str, work: Callable[..., T], *given: object) -> list[T]:
        with self._told_of_loss():
            nodes = self._devices()
            asked = [
                called_task.options(**there(n)).remote(None, what, work, *given) for n in nodes
            ]
        return [cast(T, self._result(held)) for held in asked]

    def alone(
        self, what: str, work: Callable[..., T], *given: object, models: tuple[str, ...] = ()
    ) -> T:
        for attempt in range(RETRIES):
            with self._told_of_loss():
                devices = self._devices()
            self._last_node += 1
            node = devices[self._last_node % len(devices)]
            place = there(node, num_cpus=cpus(node), resources={RESOURCE: 1})
            with self._told_of_loss():
                held = alone_task.options(**place).remote(self._board, (what, models), work, *given)
            try:
                return cast(T, self._result(held, is_retried=True))
            except _Gone as error:
                if attempt == RETRIES - 1:
                    raise CannotRun(
                        "--engine {what}: {node_name} was lost {retries} times while it was "
                        "timing {what2} ({error}); what is on record stays",
                        self.text,
                        node_name(node),
                        RETRIES,
                        what,
                        error,
                    ) from None
        raise AssertionError  # the last attempt returns or raises

    def _devices(self) -> list[Node]:
        """The machines that times are taken on; raises where there is none."""
        devices = [node for node in alive() if is_device(node)]
        if not devices:
            raise Lost(
                phrase(
                    "--engine {what}: no node is a device to take times on; start one with "
                    "`{declare}`",
                    self.text,
                    DECLARE,
                )
            )
        return devices

    # Waiting.

    def _result(self, held: Any, *, is_retried: bool = False) -> Any:
        """What a call ended with; errors of ours come as themselves."""
        try:
            self._wait(held)
            return ray.get(held)
        except exceptions.RayTaskError as error:
            _raise_cause(error)
        except exceptions.TaskCancelledError:
            raise KeyboardInterrupt from None
        except (exceptions.RaySystemError, ConnectionError) as error:
            raise self._lost(first_line(error)) from None
        except exceptions.RayError as error:
            if is_retried:
                raise _Gone(first_line(error)) from None
            raise CannotRun(
                "--engine {what}: a worker died {retries} times at the same work "
                "({first_line}); is its memory too small?",
                self.text,
                RETRIES + 1,
                first_line(error),
            ) from None

    def _wait(self, held: Any) -> None:
        silent_since: float | None = None
        while not ray.wait([held], timeout=_LOOK_SECONDS, fetch_local=False)[0]:
            self._show()
            why = self._why_lost()
            now = monotonic()
            silent_since = None if not why else silent_since or now
            if silent_since is not None and now - silent_since > _LOST_SECONDS:
                raise self._lost(why)
        self._show()

    def _why_lost(self) -> str:
        """Why nothing will come any more; "" where something may."""
        why = why_no_answer(*head(self.text))
        if why:
            return why
        return "" if any(map(cpus, alive())) else phrase("no worker is left")

    def _lost(self, why: str) -> Lost:
        return Lost(
            phrase(
                "--engine {what}: the cluster is lost ({why}); start it again, or go on with "
                "--engine local",
                self.text,
                why,
            )
        )

    @contextmanager
    def _told_of_loss(self) -> Generator[None]:
        try:
            yield
        except (exceptions.RaySystemError, ConnectionError) as error:
            raise self._lost(first_line(error)) from None

    def _show(self) -> None:
        now = monotonic()
        if self._tell is None or now - self._told < _BOARD_SECONDS:
            return
        self._told = now
        with suppress(exceptions.RayError, ConnectionError):
            self._tell(tuple(ray.get(self._board.rows.remote(), timeout=_LOOK_SECONDS)))


class _Gone(Exception):
    """A worker, with its machine or alone, ended before its call did."""


def _raise_cause(error: Exception) -> NoReturn:
    """What the call itself has raised, without the traceback of another machine."""
    cause = getattr(error, "cause", None)
    while isinstance(cause, exceptions.RayTaskError):
        cause = cause.cause
    if isinstance(cause, LitesmithError):
        raise type(cause)(*cause.args) from None
    if isinstance(cause, ModuleNotFoundError):
        raise CannotRun(
            "a worker has no module {name!r}; install the same litesmith on every node", cause.name
        ) from None
    if isinstance(cause, (KeyboardInterrupt, exceptions.TaskCancelledError)):
        raise KeyboardInterrupt from None
    raise error


def inside() -> Engine:
    """The cluster that has called the work of this process."""
    return Cluster(RAY)
