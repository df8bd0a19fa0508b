"""What is told of the machine, and when it is called noisy."""

from dataclasses import replace

import pytest

from litesmith._version import VERSION
from litesmith.operating_system import THIS, usable_cores
from litesmith.run.core.target import Target
from litesmith.timing.host import Host, energy_joules, host, noise

QUIET = Host("a CPU", 4, "performance", 0.1, 0.0, 10**9, "Linux", "3.11", "1", "ai-edge-litert 2")


def test_this_machine() -> None:
    here = host()
    assert here.cores == usable_cores()
    assert here.litesmith == VERSION
    assert here.cpu
    assert 0 <= here.busy <= 1
    assert here.runtime.startswith("ai-edge-litert ")
    assert set(here.facts()) >= {"cpu", "cores", "governor", "load", "python", "runtime"}
    assert "\n" not in str(here)


def test_a_quiet_machine_has_no_warning() -> None:
    assert noise(QUIET, [Target()]) == ()


@pytest.mark.parametrize(
    ("facts", "target", "cure"),
    [
        (replace(QUIET, busy=0.5), Target(), f"close what {THIS.lists_programs} lists"),
        (replace(QUIET, governor="powersave"), Target(), "cpupower frequency-set -g performance"),
        (QUIET, Target("cpu", 1000), "use cpu:4 or fewer"),
    ],
)
def test_noise_names_its_cure(facts: Host, target: Target, cure: str) -> None:
    (warning,) = noise(facts, [target, target])
    assert cure in warning


def test_energy_grows_where_it_is_told() -> None:
    first = energy_joules()
    assert first is None or first >= 0
