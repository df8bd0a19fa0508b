"""Models on a device over ssh: a real sshd on this machine, with keys and settings of its own."""

import ast
import hashlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import litesmith
from litesmith.errors import BadInput, CannotRun
from litesmith.evidence.bench_record import PartialBench
from litesmith.evidence.log import Log
from litesmith.ir.types import Model
from litesmith.operating_system import core_kinds
from litesmith.run.core.target import Target
from litesmith.run.devices import agent
from litesmith.run.devices.address import Address, Lost, is_address, parse
from litesmith.run.devices.ssh import Device, connect
from litesmith.tflite.file import save
from litesmith.tflite.write import to_bytes
from tests import zoo
from tests.slowness import patient
from tools.sshd import MISSING, Server, make_key, serving


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    if MISSING:
        pytest.skip(MISSING)
    with serving(tmp_path) as started:
        monkeypatch.setenv("PATH", started.path)
        yield started


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    """The runner on this machine, behind a pipe instead of a network."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if os.name != "posix":
        pytest.skip("the device's side needs a POSIX shell")
    with Device("here", ["sh", "-c"], {"python": sys.executable}) as device:
        yield device


def _saved(tmp_path: Path, model: Model) -> Path:
    path = tmp_path / f"{hashlib.sha256(to_bytes(model)).hexdigest()[:8]}.tflite"
    save(model, path)
    return path


def test_two_models_take_turns_over_one_connection(server: Server, tmp_path: Path) -> None:
    with connect(server.address()) as device:
        assert str(device.facts["runtime"]).startswith("ai-edge-litert ")
        assert device.facts["cores"]
        one = device.opened(_saved(tmp_path, zoo.convnet()), "cpu:1")
        other = device.opened(to_bytes(zoo.careless()), "cpu:2:builtin")
        with one, other:
            assert min(one.create_us, one.first_us, *one.warm_up(), *other.warm_up(3)) > 0
            taken = one.take(5, settle=True), other.take(3), other.take(2), one.take(1)
            assert [len(times_us) for times_us, _ in taken] == [5, 3, 2, 1]
            assert min(cpu_us for _, cpu_us in taken) >= 0
            assert len(one.take(7)[0]) == 7
        assert [len(samples) for samples in device.samples] == [13, 5]


def test_a_model_is_copied_once_and_a_damaged_copy_is_replaced(server: Server) -> None:
    content = to_bytes(zoo.convnet())
    copy = server.cache / f"{hashlib.sha256(content).hexdigest()}.tflite"
    with connect(server.address()) as device:
        device.opened(content).close()
        assert copy.read_bytes() == content
        first = copy.stat().st_ino
        device.opened(content).close()
        assert copy.stat().st_ino == first
        copy.write_bytes(content[:-1])
        assert len(device.opened(content).take(2)[0]) == 2
        assert copy.read_bytes() == content
    assert os.listdir(server.cache) == [copy.name]


def test_a_lost_connection_keeps_what_was_measured(server: Server) -> None:
    with connect(server.address()) as device:
        session = device.opened(to_bytes(zoo.convnet()))
        session.take(5)[0]

        def kill_mid_run() -> None:
            while len(device.samples[0]) <= 5:
                time.sleep(0.01)
            server.kill()

        killer = threading.Thread(target=kill_mid_run)
        killer.start()
        with pytest.raises(Lost) as caught:
            session.take(1_000_000_000)[0]
        killer.join()
        message, (samples,) = str(caught.value), caught.value.samples
        assert re.fullmatch(
            rf"ssh://127\.0\.0\.1:{server.port}: the connection was lost after [\d,]+ runs; .+",
            message,
        )
        assert len(samples) > 5
        assert f"after {len(samples):,} runs" in message
        with pytest.raises(Lost, match="connection was lost"):
            device.opened(to_bytes(zoo.careless()))
        session.close()


def test_the_runner_ends_with_its_connection(here: Device) -> None:
    session = here.opened(to_bytes(zoo.convnet()))
    threading.Timer(0.3, here._process.stdin.close).start()  # pyright: ignore[reportOptionalMemberAccess]
    assert len(session.take(1_000_000_000)[0]) < 1_000_000_000
    assert here._process.wait(10) == 0


def test_a_device_tells_its_cores_and_keeps_to_those_that_are_chosen(here: Device) -> None:
    """It is this machine, so that what it tells is known."""
    known = core_kinds()
    assert here.look().cores == known
    one = min(os.sched_getaffinity(0))
    here.pin(frozenset({one}))
    told = here.ask(do="look", script="grep Cpus_allowed_list /proc/self/status")["text"]
    assert told.split()[1:] == [str(one)]
    with pytest.raises(CannotRun, match=r"here: .*Invalid argument"):
        here.pin(frozenset({4095}))
    with here.opened(to_bytes(zoo.convnet())) as session:
        assert len(session.take(3)[0]) == 3


def test_a_copy_that_breaks_off_leaves_nothing(here: Device, tmp_path: Path) -> None:
    here.ask(do="put", digest="0" * 64, size=1000)
    here._write(b"too little")
    here.close()
    assert os.listdir(tmp_path / "cache" / "litesmith-agent") == []
    with pytest.raises(CannotRun, match=r"^here: the connection is closed; connect again$"):
        here.opened(to_bytes(zoo.convnet()))


@pytest.mark.parametrize(
    ("python", "message"),
    [
        ("no/such/python", "there is no no/such/python there; install Python 3.9 or later"),
        ("bare", "has no ai-edge-litert; run there: python3 -m venv"),
        ("broken", "no connection: it is broken today; try `ssh -p"),
    ],
)
def test_what_the_device_lacks_is_one_line(server: Server, python: str, message: str) -> None:
    _program(server.folder / "bare", f'exec {sys.executable} -I -S "$@"')
    _program(server.folder / "broken", "echo it is broken today >&2; exit 3")
    where = python if "/" in python else server.folder / python
    with pytest.raises(CannotRun, match=re.escape(message)) as caught:
        connect(server.address(where))
    assert "\n" not in str(caught.value)


def test_what_a_login_prints_is_skipped(server: Server) -> None:
    noisy = _program(server.folder / "noisy", f'echo Welcome; echo; exec {sys.executable} "$@"')
    with connect(server.address(noisy)) as device:
        assert device.opened(to_bytes(zoo.convnet())).take(2)[0]


def _program(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_a_refused_login_names_the_way_out(server: Server) -> None:
    (server.folder / "accepted").write_text("")
    with pytest.raises(CannotRun, match=f"run ssh-copy-id -p {server.port} 127.0.0.1$"):
        connect(server.address())
    (server.folder / "known").write_text("")
    with pytest.raises(CannotRun, match="its host key is not known yet; run `ssh -p"):
        connect(server.address())
    (server.folder / "other.pub").write_text(make_key(server.folder / "other"))
    (server.folder / "known").write_text(
        f"[127.0.0.1]:{server.port} {(server.folder / 'other.pub').read_text('utf-8')}"
    )
    with pytest.raises(CannotRun, match=r"run ssh-keygen -R '?\[127.0.0.1\]:"):
        connect(server.address())
    server.kill()
    with pytest.raises(CannotRun, match="nothing answers on that port; start sshd there"):
        connect(server.address())


def test_without_ssh_the_line_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotRun, match="ssh://pi: ssh is not installed here; install an OpenSSH"):
        connect("ssh://pi/cpu:1")


def test_a_model_that_does_not_open_leaves_the_device_usable(here: Device) -> None:
    with pytest.raises(CannotRun, match=r"^here: the model does not open: ") as caught:
        here.opened(b"not a model")
    assert "\n" not in str(caught.value)
    with pytest.raises(BadInput, match="here: no target gpu there; use cpu:THREADS"):
        here.opened(b"", "gpu")
    assert len(here.opened(to_bytes(zoo.convnet())).take(3)[0]) == 3


def test_every_model_that_runs_here_runs_in_the_runner(here: Device) -> None:
    for name, make in zoo.MODELS.items():
        content = to_bytes(make())
        if name in zoo.NOT_RUNNABLE:
            with pytest.raises(CannotRun, match="here: the model does not open: "):
                here.opened(content)
        else:
            with here.opened(content) as session:
                assert len(session.take(2)[0]) == 2, name


def test_a_crash_of_the_runtime_is_told_from_a_lost_connection(server: Server) -> None:
    with connect(server.address()) as device:
        device.opened(to_bytes(zoo.convnet())).take(2)[0]
        (runner,) = server.processes("python")
        os.kill(runner, signal.SIGSEGV)
        with pytest.raises(Lost, match=r"the runtime crashed there after 2 runs \(Segmentation"):
            device.opened(to_bytes(zoo.convnet())).take(2)[0]


def test_the_runner_stands_alone_on_python_3_9() -> None:
    tree = ast.parse(Path(agent.__file__).read_text("utf-8"), feature_version=(3, 9))
    modules = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else _names(node))
    }
    assert modules - sys.stdlib_module_names == {"ai_edge_litert", "numpy"}


def _names(node: ast.Import) -> list[str]:
    return [alias.name for alias in node.names]


def test_old_models_are_forgotten_first(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / str(number)).write_bytes(bytes(10))
        os.utime(tmp_path / str(number), (number, number))
    agent.forget_old(str(tmp_path), kept_bytes=25)
    assert sorted(os.listdir(tmp_path)) == ["3", "4"]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("ssh://pi/cpu:4", Address("ssh", "pi", Target("cpu", 4))),
        (
            "ssh://me@10.0.0.7:2222/cpu:1:builtin",
            Address("ssh", "10.0.0.7", Target("cpu", 1, "builtin"), "me", 2222),
        ),
        ("ssh://[fe80::1]:22/cpu:1", Address("ssh", "[fe80::1]", Target(), "", 22)),
        (
            "ssh://pi/cpu:2?python=~/litert/bin/python",
            Address("ssh", "pi", Target("cpu", 2), program="~/litert/bin/python"),
        ),
    ],
)
def test_an_address_reads_back_as_itself(text: str, address: Address) -> None:
    assert is_address(text)
    assert parse(text) == address
    assert parse(str(address)) == address


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ssh://pi", "no target after it; write it like ssh://pi@raspberrypi.local/cpu:4"),
        ("ssh://pi/", "no target after it"),
        ("ssh:///cpu:1", "'' names no device"),
        ("ssh://-oProxyCommand=x/cpu:1", "'-oProxyCommand=x' names no device"),
        ("ssh://me:secret@pi/cpu:1", "a password has no place here, use a key"),
        ("ssh://pi:0/cpu:1", "no port 0; ports go from 1 to 65535"),
        ("ssh://pi:70000/cpu:1", "no port 70000"),
        ("ssh://pi/cpu:x", "after cpu comes a number of threads"),
        ("ssh://pi/gpu", "no target 'gpu' there; use cpu:THREADS:builtin"),
        ("ssh://pi/cpu:1?port=1", "after '?' comes python=PATH"),
        ("ssh://pi/cpu:1?python=a;b", "after '?' comes python=PATH"),
        ("ssh://pi/cpu:1?python=-c", "after '?' comes python=PATH"),
        ("http://pi/cpu:1", "no device 'http://pi/cpu:1'; devices are written like adb://"),
    ],
)
def test_a_wrong_address_is_one_line(text: str, message: str) -> None:
    with pytest.raises(BadInput, match=re.escape(message)) as caught:
        parse(text)
    assert "\n" not in str(caught.value)


def test_bench_compares_a_device_with_this_machine(server: Server, tmp_path: Path) -> None:
    """In one run of turns; the device's own clock tells its times."""
    path = _saved(tmp_path, zoo.convnet())
    done = litesmith.bench(path, on=["cpu:1", str(server.address())], runs=24)
    assert [r.target for r in done.results] == ["cpu:1", str(server.address())]
    assert [r.runs for r in done.results] == [24, 24]
    assert all(min(r.samples_us) > 0 for r in done.results)
    assert done.results[1].peak_bytes is None
    (comparison,) = done.comparisons
    assert len(comparison.ratio.blocks) == 12


def _kill_in_the_middle(server: Server) -> None:
    """Once the model has been there for some seconds, so that it runs."""
    for _ in range(600):
        if any(server.cache.glob("*.tflite")):
            break
        time.sleep(0.1)
    time.sleep(4)
    server.kill()


def test_times_before_a_loss_are_kept(server: Server, tmp_path: Path) -> None:
    path, log = _saved(tmp_path, zoo.convnet()), tmp_path / "log.jsonl"
    watcher = threading.Thread(target=_kill_in_the_middle, args=(server,))
    watcher.start()
    words = ["bench", str(path), "--on", str(server.address()), "--seconds", "60"]
    shown = subprocess.run(
        [sys.executable, "-m", "litesmith", *words, "--log", str(log)],
        capture_output=True,
        text=True,
        timeout=patient(150),
        check=False,
    )
    watcher.join()
    assert shown.returncode == 2 and "the connection was lost" in shown.stderr
    assert f"times are in {log}" in " ".join(shown.stderr.split())
    kept = Log(log).read({"": PartialBench})
    assert kept and all(trial.details.is_partial for trial in kept)
    assert {trial.model_digest for trial in kept} == {hashlib.sha256(path.read_bytes()).hexdigest()}
