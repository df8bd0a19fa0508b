"""The sweep over threads, and the load that it starts and stops."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from litesmith.operating_system import usable_cores
from litesmith.run.core.target import Target
from litesmith.timing.host import host
from litesmith.timing.latency import Bench, Rule, list_contenders, results_of
from litesmith.timing.threads import _situation, competing_load, sweep
from litesmith.timing.turns import Load, Turn
from tests import zoo
from tests.platforms import has_proc

MODEL = zoo.convnet()


def alive(process: int) -> bool:
    """False once it has ended, whether or not anybody has asked for its status."""
    try:
        told = Path(f"/proc/{process}/stat").read_text("utf-8")
    except OSError:
        return False
    return told.rpartition(")")[2].split()[0] != "Z"


def seen(*medians: float) -> Bench:
    """A sweep in which 1, 2, … threads took so long."""
    targets = [Target("cpu", place) for place, _ in enumerate(medians, 1)]
    loads = [
        tuple(
            Load(1, 1, (), (Turn((m * (1 + n / 1e4),), place, m, None),), "")
            for place, m in enumerate(medians)
        )
        for n in range(24)
    ]
    group, machine = list_contenders(MODEL, targets), host()
    return Bench(results_of(group, loads, machine, [None] * len(group)), (), machine, ())


@pytest.mark.parametrize("competitors", [0, 1])
@pytest.mark.parametrize(
    ("medians", "threads", "loses"),
    [
        ((100, 60, 40), 3, ""),
        ((100, 60, 90), 2, "3 threads lose: 1.50 × slower"),
        ((100, 100, 99.9), 1, ""),  # more threads for nothing
        ((100, 130, 170), 1, "2 threads lose: 1.30 × slower"),
    ],
)
def test_the_fewest_threads_that_are_fastest(
    medians: tuple[float, ...], threads: int, loses: str, competitors: int
) -> None:
    found = _situation(seen(*medians), competitors)
    assert found.threads == threads
    assert loses in " ".join(found.reasons)
    assert ("lose" in " ".join(found.reasons)) == bool(loses)
    assert (f"p{95 if competitors else 50}") in found.reasons[0]
    assert [row["threads"] for row in found.rows()] == [1, 2, 3]


def test_a_sweep_counts_up_to_the_cores() -> None:
    alone, beside = sweep(MODEL, Rule(runs=12, warmup_runs=0))
    assert (alone.competitors, alone.name) == (0, "alone")
    assert beside.competitors >= 1
    assert "busy process" in beside.name
    for situation in (alone, beside):
        counts = [row["threads"] for row in situation.rows()]
        assert counts[0] == 1
        assert counts[-1] == usable_cores()
        assert situation.threads in counts
        assert situation.reasons


@has_proc
def test_the_load_spins_and_ends_with_its_block() -> None:
    with competing_load(2) as spinning:
        assert len(spinning) == 2
        assert all(map(alive, spinning))
    assert not any(map(alive, spinning))


@has_proc
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError])
def test_the_load_ends_with_an_error(error: type[BaseException]) -> None:
    spinning: list[int] = []

    def interrupted() -> None:
        with competing_load(1) as started:
            spinning.extend(started)
            raise error

    with pytest.raises(error):
        interrupted()
    assert spinning
    assert not any(map(alive, spinning))


@has_proc
def test_the_load_ends_when_its_parent_is_killed() -> None:
    code = (
        "import time\n"
        "from litesmith.timing.threads import competing_load\n"
        "with competing_load(1) as (spinning,):\n"
        "    print(spinning, flush=True)\n"
        "    time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    spinning = int(parent.stdout.readline())
    assert alive(spinning)
    parent.kill()
    parent.communicate()
    for _ in range(200):
        if not alive(spinning):
            break
        time.sleep(0.05)
    assert not alive(spinning)
