"""A Ray cluster of two workers and a device on this machine: all is as without it."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep
from typing import Any, NamedTuple

import pytest

from litesmith import choose, tune
from litesmith.accuracy.evaluate import evaluate_all
from litesmith.calibration import observed_cache as cache
from litesmith.calibration.context import CALIBRATION_SAMPLES
from litesmith.data.sample_splits import take_some
from litesmith.data.samples import Data
from litesmith.errors import BadInput, CannotApply, CannotRun
from litesmith.front.apply import apply
from litesmith.ray_engine.device_log import RESOURCE, VARIABLE
from litesmith.search.trial.remote_build import Order, RemoteBuilds
from litesmith.search.tuning.tune_trials import Built, build
from litesmith.tflite.file import digest
from litesmith.tflite.write import to_bytes
from litesmith.timing.cluster_timing import measure_on
from litesmith.timing.latency import Rule, list_contenders
from litesmith.workers.engine import Engine, Lost, Worker, host_name, open_engine
from tests.accuracy.test_sharded import bare
from tests.search.choosing.taught import examples, integer, opened, taught, written

ray = pytest.importorskip("ray", reason="ray is not installed")

STORE = 80_000_000


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("device") / "log.jsonl"


class Nodes(NamedTuple):
    """The cluster, and the node of it that times are taken on."""

    cluster: Any
    device: Any


@pytest.fixture(scope="module")
def nodes(log: Path) -> Iterator[Nodes]:
    """Two workers and a device, whose processes keep nothing of what they see on the disk."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv(VARIABLE, str(log))
        own = os.environ.get(cache.VARIABLE, "")
        patch.setenv(cache.VARIABLE, "")
        first = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": STORE}
        cluster = Cluster(initialize_head=True, head_node_args=first)
        cluster.add_node(num_cpus=1, object_store_memory=STORE)
        declared = {"num_cpus": 0, "resources": {RESOURCE: 1}, "object_store_memory": STORE}
        device = cluster.add_node(**declared)
        patch.setenv(cache.VARIABLE, own)
        patch.setenv("RAY_ADDRESS", cluster.address)
        try:
            yield Nodes(cluster, device)
        finally:
            cluster.shutdown()


@pytest.fixture(scope="module")
def engine(nodes: Nodes) -> Iterator[Engine]:
    with open_engine("ray") as found:
        assert found is not None
        yield found


# What is called there.


def raised(kind: type[Exception]) -> None:
    raise kind("'x': not so; otherwise")


def pid_of(_: int) -> int:
    sleep(0.2)
    return os.getpid()


def waits_for(mark: Path) -> None:
    """Ends once there is such a file; a minute is more than any test takes."""
    for _ in range(600):
        if mark.exists():
            return
        sleep(0.1)


def dies_first(mark: Path) -> str:
    """Ends its process, but only once."""
    if not mark.exists():
        mark.write_text("")
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"


def dies() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("kind", [BadInput, CannotApply, CannotRun])
def test_errors_of_ours_come_as_themselves(engine: Engine, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=r"^'x': not so; otherwise$") as caught:
        list(engine.gathered([engine.call("", raised, kind)]))
    assert type(caught.value) is kind
    with pytest.raises(kind, match=r"^'x': not so; otherwise$"):
        engine.alone("", raised, kind)


def test_two_work_at_a_time_and_results_are_in_order(engine: Engine) -> None:
    assert engine.width == 2
    found = list(engine.gathered(engine.call("", pid_of, number) for number in range(6)))
    assert len({*found}) >= 2
    assert os.getpid() not in found
    numbers = list(engine.gathered(engine.call("", divmod, number, 7) for number in range(30)))
    assert numbers == [divmod(number, 7) for number in range(30)]


@pytest.mark.full  # a search whose worker is killed asserts it too
def test_a_worker_that_dies_is_replaced(engine: Engine, tmp_path: Path) -> None:
    assert list(engine.gathered([engine.call("", dies_first, tmp_path / "a")])) == ["alive"]
    assert engine.alone("", dies_first, tmp_path / "b") == "alive"


@pytest.mark.full  # four workers start and die, a quarter of a minute
def test_work_that_kills_every_worker_is_told(engine: Engine) -> None:
    with pytest.raises(CannotRun, match="a worker died 4 times at the same work") as caught:
        list(engine.gathered([engine.call("", dies)]))
    assert not isinstance(caught.value, Lost)  # the cluster is not at fault


# Scores, files, searches.


def test_scores_are_the_same_to_the_last_digit(engine: Engine) -> None:
    model, data = taught(), opened(taught(), 200)
    worse = integer(model)
    here = evaluate_all([worse], data, against=model)[0]
    there = evaluate_all([worse], data, against=model, engine=engine)[0]
    assert bare(there) == bare(here)


@pytest.mark.parametrize(
    "recipe",
    [
        pytest.param("cleanup | fold | fuse", marks=pytest.mark.full),
        pytest.param("quantize(to=float16)", marks=pytest.mark.full),
        pytest.param("quantize | correct", marks=pytest.mark.full),
        pytest.param("quantize(ranges=mse) | correct", marks=pytest.mark.full),
        "equalize | quantize | round(samples=32)",
    ],
)
def test_files_are_the_same_to_the_byte(engine: Engine, tmp_path: Path, recipe: str) -> None:
    path, _ = written(tmp_path)
    data = opened(taught(), 120)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(cache.VARIABLE, "")  # nothing was seen before
        here = apply(taught(), recipe, data)
    there = built(engine, path, data, recipe)
    assert there.content.tobytes() == to_bytes(here.model)
    assert there.skipped == here.skipped


def built(engine: Engine, path: Path, data: Data, recipe: str) -> Built:
    """What a worker makes of a model."""
    builds = RemoteBuilds(engine, build)
    few = take_some(data, CALIBRATION_SAMPLES)
    builds.begin("made", Order(recipe, few, path, digest(path), "making it"))
    found = builds.finish("made")
    assert found is not None
    return found


def test_a_recipe_that_does_not_fit_is_refused_as_here(engine: Engine, tmp_path: Path) -> None:
    path, _ = written(tmp_path, integer(taught()))
    data = opened(taught(), 40)
    told: list[str] = []
    with pytest.raises((BadInput, CannotApply)) as here:
        apply(integer(taught()), "quantize", data)
    told.append(str(here.value))
    with pytest.raises(here.type) as there:
        built(engine, path, data, "quantize")
    assert str(there.value) == told[0]


def searched(place: Path, **more: Any) -> tuple[object, ...]:
    """The smallest file within a budget, which no time decides, and how good each candidate is."""
    folder = place / ("there" if "engine" in more else "here")
    model, _ = written(folder)
    found = tune(
        model,
        examples(200),
        max_drop="5pt",
        minimize="size",
        runs=2,
        out=folder / "out",
        **more,
    )
    assert found.best is not None
    scores = [(r.name, r.digest, r.status, r.accuracy, r.cost("size")) for r in found.records]
    return digest(found.best), found.facts["verdict"], scores


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> tuple[object, ...]:
    return searched(tmp_path_factory.mktemp("wanted"))


@pytest.mark.full  # the next one asserts it too, of a search that has to go on without a worker
def test_a_search_ends_with_the_same(
    engine: Engine, tmp_path: Path, wanted: tuple[object, ...]
) -> None:
    assert searched(tmp_path, engine=engine) == wanted


@contextmanager
def killing() -> Iterator[list[int]]:
    """Ends the process of a worker while it is at work, once."""
    killed: list[int] = []
    done = threading.Event()

    def kill() -> None:
        while not done.is_set() and not killed:
            for place in Path("/proc").glob("[0-9]*"):
                if is_worker_at_work(place):
                    os.kill(int(place.name), signal.SIGKILL)
                    killed.append(int(place.name))
                    return
            sleep(0.002)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        done.set()
        thread.join()


def is_worker_at_work(place: Path) -> bool:
    """True for a process of this cluster that does what it was called for."""
    try:
        name = (place / "cmdline").read_bytes().split(b"\0")[0]
        parent = (place / "stat").read_text("utf-8").rpartition(")")[2].split()[1]
        own = (Path("/proc") / parent / "cmdline").read_bytes()
    except OSError:  # it has ended meanwhile
        return False
    return name == b"ray::called_task" and session().encode() in own


def session() -> str:
    """The name that the processes of this cluster have in common."""
    return str(ray.get_runtime_context().get_session_name())


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are listed by /proc")
def test_a_worker_killed_in_a_search_changes_nothing(
    engine: Engine, tmp_path: Path, wanted: tuple[object, ...]
) -> None:
    with killing() as killed:
        assert searched(tmp_path, engine=engine) == wanted
    assert killed


@pytest.mark.full  # a search goes the same way, with a worker killed on it
def test_a_choice_ends_with_the_same(engine: Engine, tmp_path: Path) -> None:
    written(tmp_path)
    found = [
        choose(
            tmp_path / "model.tflite",
            examples(400),
            quantized=True,
            minimize="size",
            seconds=0.3,
            out=tmp_path / str(number),
            engine=one,
        )
        for number, one in enumerate((None, engine))
    ]
    rows = [
        [
            (row["model"], row["value"], row["low"], row["high"], row["bytes"])
            for row in one.candidates
        ]
        for one in found
    ]
    assert rows[0] == rows[1]
    picks = [one.pick for one in found]
    assert picks[0] is not None and picks[1] is not None
    assert digest(picks[0]) == digest(picks[1])


def test_a_view_shows_the_workers(engine: Engine, tmp_path: Path) -> None:
    """Work that ends once it was seen."""
    mark = tmp_path / "seen"
    seen: list[Worker] = []

    def look(rows: tuple[Worker, ...]) -> None:
        seen.extend(row for row in rows if row.doing == "a nap")
        if seen:
            mark.touch()

    engine.watch(look)
    try:
        list(engine.gathered([engine.call("a nap", waits_for, mark)]))
    finally:
        engine.watch(None)
    assert seen and not any(row.device for row in seen)


def test_the_device_never_times_two_at_once(engine: Engine, log: Path, tmp_path: Path) -> None:
    """From its own log, where three want it at once."""
    path, _ = written(tmp_path)

    def timed() -> None:
        measure_on(engine, list_contenders([path, path]), Rule(runs=12))

    def napped() -> None:
        for number in range(3):
            engine.alone("a nap", pid_of, number)

    threads = [threading.Thread(target=work) for work in (timed, napped, napped)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    assert len({line["node"] for line in lines}) == 1
    assert [digest(path)] in [line["models"] for line in lines]
    assert len(lines) >= 7
    times = sorted((line["start"], line["end"]) for line in lines)
    assert all(before[1] <= after[0] for before, after in pairwise(times))


@pytest.mark.full  # the device's own log is read above
def test_a_record_names_the_device(engine: Engine, tmp_path: Path) -> None:
    path, _ = written(tmp_path)
    group = list_contenders([path, integer(taught())])
    found = measure_on(engine, group, Rule(runs=6))
    assert found.device == host_name()
    assert [result.contender for result in found.bench.results] == list(group)


def test_a_cluster_without_a_device_says_how_to_get_one(
    engine: Engine, nodes: Nodes, tmp_path: Path
) -> None:
    """The last of these tests: the device is gone after it."""
    nodes.cluster.remove_node(nodes.device)
    model, _ = written(tmp_path / "in")
    with pytest.raises(Lost, match=r"no node is a device .* `ray start .*litesmith_device"):
        tune(model, examples(200), max_drop="5pt", out=tmp_path / "out", engine=engine)
    assert not (tmp_path / "out").exists()
    data = opened(taught(), 60)
    assert evaluate_all([model], data, engine=engine)[0].n == 60  # which needs none


_LISTENING = """
import psutil
from litesmith.workers.engine import open_engine
with open_engine("ray"):
    mine = psutil.Process()
    for one in (mine, *mine.children(recursive=True)):
        for each in one.net_connections("inet"):
            if each.status == psutil.CONN_LISTEN:
                print(each.laddr.ip.removeprefix("::ffff:"))
"""


def test_a_cluster_of_our_own_is_reached_from_this_machine_alone() -> None:
    pytest.importorskip("psutil", reason="it tells who listens where")
    with TemporaryDirectory(dir="/tmp", prefix="ray") as folder:  # names of sockets are short
        environment = {**os.environ, "RAY_TMPDIR": folder, "TMPDIR": folder}
        environment.pop("RAY_ADDRESS", None)
        shown = subprocess.run(
            [sys.executable, "-c", _LISTENING],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    assert {*shown.stdout.split()} == {"127.0.0.1"}
