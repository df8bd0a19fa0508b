"""The machine that measures, and what makes it noisy."""

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from time import monotonic, sleep

import numpy as np

from litesmith._version import VERSION
from litesmith.arguments import argument
from litesmith.errors import CannotRun
from litesmith.operating_system import (
    THIS,
    Heat,
    core_ticks,
    cpu_name,
    describe_system,
    memory_bytes,
    read_heat,
    read_text,
    usable_cores,
)
from litesmith.phrases import phrase
from litesmith.run.core.target import THREADED, Target
from litesmith.run.litert.capi import WHEEL, installed_version
from litesmith.timing.chosen_cores import mixed_cores
from litesmith.units import bytes_text, percent_text

_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
_RAPL = Path("/sys/class/powercap")

# A core below this share of its highest clock is held back, as systems do against heat.
_WHOLE_CLOCK = 0.95

# Other programs disturb measurements when they use more than this share of the cores' time.
_BUSY = 0.1

# How long the machine is observed, and how long the observation stays valid, so that a command that
# measures ten times in a row observes once.
LOOK_SECONDS, _LOOK_STANDS_SECONDS = 0.2, 5.0


@dataclass(frozen=True)
class Host:
    """The facts about the machine without which a time means nothing; "" and 0 stand for what the
    system does not report.
    """

    cpu: str
    cores: int
    governor: str
    load: float  # processes that want to run, over the last minute
    # the share of the cores' time used by other programs, shortly before the measurement
    busy: float
    memory_bytes: int
    system: str
    python: str
    litesmith: str
    runtime: str

    def __str__(self) -> str:
        memory = phrase(", {size}", bytes_text(self.memory_bytes)) if self.memory_bytes else ""
        governor = phrase(", governor {governor}", self.governor) if self.governor else ""
        return phrase(
            "{cpu}, {cores} cores{memory}{governor}, {share} busy with other things, "
            "{system}, Python {python}, litesmith {litesmith}, {runtime}",
            self.cpu,
            self.cores,
            memory,
            governor,
            percent_text(self.busy),
            self.system,
            self.python,
            self.litesmith,
            self.runtime,
        )

    def facts(self) -> dict[str, str | int | float]:
        """The facts by name, for JSON."""
        return asdict(self)


def host(look_seconds: float = LOOK_SECONDS) -> Host:
    """Describes this machine as it is now; observes its load for `look_seconds`, or not at all for
    0."""
    return Host(
        cpu=cpu_name(),
        cores=usable_cores(),
        governor=read_text(_GOVERNOR),
        load=_load(),
        busy=_busy(look_seconds, int(monotonic() / _LOOK_STANDS_SECONDS)) if look_seconds else 0.0,
        memory_bytes=memory_bytes(),
        system=describe_system(),
        python=platform.python_version(),
        litesmith=VERSION,
        runtime=_runtime(),
    )


def machine_here() -> str:
    """This machine in one line, without facts that change from minute to minute."""
    return str(replace(host(look_seconds=0), load=0.0))


def noise(facts: Host, targets: Sequence[Target]) -> tuple[str, ...]:
    """What makes times on this machine unsteady, each with its cure."""
    found = unsteady(facts.busy, facts.cores, facts.governor, read_heat())
    found += [
        phrase(
            "{warning}: they wait for each other; use cpu:{cores} or fewer",
            target.warning,
            facts.cores,
        )
        for target in dict.fromkeys(targets)
        if target.warning
    ]
    found += [mixed_cores(target) for target in dict.fromkeys(targets) if target.kind in THREADED]
    found = [*filter(None, found)]
    return tuple(found)


def unsteady(busy: float, cores: int, governor: str, heat: Heat) -> list[str]:
    """What makes times unsteady on a machine like this, each with its cure."""
    found: list[str] = []
    if busy > _BUSY:
        found.append(
            phrase(
                "other programs use {share} of the {cores} cores: close what {program} lists "
                "first, then measure again",
                percent_text(busy),
                cores,
                THIS.lists_programs,
            )
        )
    if is_held_back(heat):
        found.append(
            phrase(
                "the system holds a core at {share} of its highest clock{heat}: let the machine "
                "cool, or undo the limit, then measure again; {cool} waits for it",
                percent_text(heat.clock),
                phrase(" at {celsius:.0f} °C", heat.celsius) if heat.celsius else "",
                argument("cool", 60),
            )
        )
    if governor in ("powersave", "ondemand", "conservative"):
        found.append(
            phrase(
                "the clock changes with load (governor {governor}): `sudo cpupower "
                "frequency-set -g performance` steadies it",
                governor,
            )
        )
    return found


def is_held_back(heat: Heat) -> bool:
    """True where a core may not reach its highest clock."""
    return heat.clock < _WHOLE_CLOCK


def energy_joules() -> float | None:
    """The energy in joules that the processor packages have used since an arbitrary start; None
    where it cannot be read.

    The counters wrap around after minutes to hours; a negative difference must be dropped.
    """
    # Zones of the whole platform contain the packages; summing all zones would count these twice.
    zones = [
        zone
        for zone in _RAPL.glob("intel-rapl:*")
        if read_text(zone / "name").startswith("package")
    ]
    counters = [read_text(zone / "energy_uj") for zone in zones]
    if not counters or not all(counter.isdecimal() for counter in counters):
        return None
    return sum(map(int, counters)) / 1e6


def _runtime() -> str:
    try:
        return f"{WHEEL} {installed_version()}"
    except CannotRun:  # the target `numpy` works without the runtime
        return ""


def _load() -> float:
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


@lru_cache(maxsize=1)
def _busy(look_seconds: float, period: int) -> float:
    """The share of busy cores while this process sleeps, once per period; where the system does not
    report it, the load of the last minute. The load alone would include the preceding run."""
    before = core_ticks()
    if before is None:
        return min(1.0, _load() / usable_cores())
    sleep(look_seconds)
    idle, every = np.subtract(core_ticks() or before, before).tolist()
    return max(0.0, 1 - idle / every) if every else 0.0
