"""Ray, as it is set up here: joining a cluster and leaving it, and the machines that it has."""

# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# ray leaves parts of its types open.

import logging
import os
import warnings
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import gettempdir
from typing import Any

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

from litesmith.errors import BadInput, CannotRun  # noqa: E402
from litesmith.ray_engine.device_log import RESOURCE  # noqa: E402
from litesmith.run.core.target import usable_cores  # noqa: E402
from litesmith.workers.engine import RAY, address_of, unanswered  # noqa: E402

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
        with warnings.catch_warnings():
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
        why = unanswered(*address_of(named))
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
        return "" if unanswered(*address_of(known)) else known
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
