"""A contender while it is loaded: in this process, on a device over ssh, or on a phone."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from math import nan
from statistics import median
from time import perf_counter_ns, process_time, sleep
from typing import NamedTuple, Protocol, Self

from litesmith.errors import CannotRun
from litesmith.operating_system import Heat, read_heat
from litesmith.phrases import join, phrase
from litesmith.run.core.target import Target
from litesmith.run.devices import adb, ssh
from litesmith.run.devices.address import Address
from litesmith.run.devices.condition import Condition
from litesmith.run.session import ReadModel, Session, fill_inputs, read_once
from litesmith.timing.chosen_cores import choose_cores, describe_cores, mixed_text
from litesmith.timing.clock import time_call
from litesmith.timing.host import energy_joules, is_held_back, unsteady
from litesmith.units import percent_text

_WINDOW_SECONDS = 0.004
_MOST_WARM_UP_SECONDS = 1.0
_STEADY = 0.98  # the warm-up ends with a window that is less than 2 % faster than the best so far

_LOOK_SECONDS = 1.0  # between two looks at a machine that is to cool

# The least number of runs on a phone, where starting the program takes longer.
_LEAST_ON_A_PHONE = 20


class Taken(NamedTuple):
    """The times of consecutive runs, the CPU time of each (NaN where unknown), and the energy."""

    times_us: tuple[float, ...]
    cpu_us: float
    joules: float | None


class LoadedModel(Protocol):
    """A loaded and warmed-up model, ready for its turns."""

    create_us: float
    first_us: float
    warmup_us: list[float]
    note: str

    def take(self, runs: int, settle: bool) -> Taken: ...
    def close(self) -> None: ...


def run_seconds(seat: LoadedModel) -> float:
    """The approximate time of a run, from the end of the warm-up."""
    return median(seat.warmup_us[-5:] or [seat.first_us]) / 1e6


class _Here:
    """A model loaded in this process."""

    def __init__(self, source: ReadModel, target: Target, warmup_runs: int | None) -> None:
        start = perf_counter_ns()
        self._session = Session(source, target)
        self.create_us = (perf_counter_ns() - start) / 1e3
        try:
            fill_inputs(self._session)
            self.first_us = time_call(self._session.run)
            self.warmup_us = _warm_up(self._session.run, warmup_runs)
        except BaseException:
            self._session.close()
            raise
        self.note = self._session.note

    def take(self, runs: int, settle: bool) -> Taken:
        run = self._session.run
        if settle:
            run()
        joules, cpu = energy_joules(), process_time()
        times = tuple(time_call(run) for _ in range(runs))
        cpu_us = (process_time() - cpu) * 1e6 / runs
        after = None if joules is None else energy_joules()
        if joules is None or after is None or after < joules:
            return Taken(times, cpu_us, None)
        return Taken(times, cpu_us, (after - joules) / runs)

    def close(self) -> None:
        self._session.close()


class _OverSsh:
    """A model loaded in a process on a device, which times the runs itself."""

    def __init__(
        self, device: ssh.Device, source: str | bytes, target: Target, warmup_runs: int | None
    ) -> None:
        self._session = device.opened(source, target)
        self.create_us, self.first_us = self._session.create_us, self._session.first_us
        self.warmup_us = self._session.warm_up(warmup_runs)
        self.note = ""

    def take(self, runs: int, settle: bool) -> Taken:
        return Taken(*self._session.take(runs, settle=settle), None)

    def close(self) -> None:
        self._session.close()


class _OnPhone:
    """A model on a phone, where each turn starts a program that reports one time for all
    its runs."""

    def __init__(self, phone: adb.Phone, source: str | bytes, target: Target) -> None:
        self._phone, self._source, self._target = phone, source, target
        report = phone.benchmark(source, target, runs=_LEAST_ON_A_PHONE)
        self.create_us, self.first_us, self.note = report.create_us, report.first_us, report.note
        self.warmup_us = [report.typical_us]

    def take(self, runs: int, settle: bool) -> Taken:
        report = self._phone.benchmark(
            self._source, self._target, runs=max(runs, _LEAST_ON_A_PHONE)
        )
        return Taken((report.typical_us,), nan, None)

    def close(self) -> None:
        """Nothing stays open."""


class Devices:
    """The devices of a run, each connected on first use; and the models that run here, each read
    once.

    cores  those to run on, on devices: big, little or numbers
    """

    def __init__(self, cores: str | None = None) -> None:
        self._stack = ExitStack()
        self._cores = cores
        self._ssh: dict[str, ssh.Device] = {}
        self._phones: dict[str, adb.Phone] = {}
        self._looks: dict[str, list[Condition]] = {}  # by the device's name
        self._read: dict[str | int, tuple[str | bytes, ReadModel]] = {}  # by name, or identity

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def load(
        self, source: str | bytes, place: Target | Address, warmup_runs: int | None
    ) -> LoadedModel:
        """Loads a model where it is to run."""
        if isinstance(place, Target):
            known = source if isinstance(source, str) else id(source)
            # the runtime loads the model anew each time, and that is timed
            if known not in self._read:
                self._read[known] = source, read_once(source)
            return _Here(self._read[known][1], place, warmup_runs)
        device = self._device(place)
        loaded: LoadedModel
        if isinstance(device, ssh.Device):
            loaded = _OverSsh(device, source, place.target, warmup_runs)
        else:
            loaded = _OnPhone(device, source, place.target)
        last = self._looks.get(device.name, ())[-1:]
        loaded.note = join(
            filter(None, (loaded.note, *(_describe(device, one) for one in last))), "; "
        )
        return loaded

    def _device(self, place: Address) -> ssh.Device | adb.Phone:
        """The device at an address, connected, with the cores that it is to use."""
        key = f"{place.device} {place.program}"
        found = self._ssh.get(key) or self._phones.get(key)
        if found is not None:
            return found
        if place.transport == "ssh":
            made = self._ssh[key] = self._stack.enter_context(ssh.connect(place))
        elif place.transport == "adb":
            made = self._phones[key] = adb.connect(place)
        else:
            raise CannotRun("{place}: no way to reach it", place)
        if self._cores is not None:
            known = made.look().cores
            every = frozenset(core for kind in known.kinds for core in kind)
            made.pin(choose_cores(self._cores, known, every))
        return made

    def rest(self, places: Iterable[Target | Address], seconds: float) -> float:
        """Looks at every device, and waits up to so many seconds while one of the places holds a
        core back; returns how long."""
        slept = 0.0
        every = [p for p in dict.fromkeys(places) if seconds > 0 or isinstance(p, Address)]
        while True:
            heats = [self._heat(place) for place in every]
            if slept >= seconds or not any(map(is_held_back, heats)):
                return slept
            sleep(min(seconds - slept, _LOOK_SECONDS))
            slept += min(seconds - slept, _LOOK_SECONDS)

    def _heat(self, place: Target | Address) -> Heat:
        if isinstance(place, Target):
            return read_heat()
        device = self._device(place)
        seen = device.look()
        self._looks.setdefault(device.name, []).append(seen)
        return seen.heat

    def warnings(self, places: Iterable[Target | Address]) -> tuple[str, ...]:
        """What made the times of devices unsteady, each with its cure."""
        found: list[str] = []
        for place in dict.fromkeys(one for one in places if isinstance(one, Address)):
            device = self._device(place)
            told = _warnings(device, self._looks.get(device.name, ()), place)
            found += [phrase("{device}: {warning}", device.name, one) for one in told]
            if self._cores is None:
                found += _mixed(self._looks.get(device.name, ()), place)
        return tuple(dict.fromkeys(found))


def _describe(device: ssh.Device | adb.Phone, seen: Condition) -> str:
    """The device in a few words, with its heat and its clock."""
    return phrase(
        "{cpu}, {cores} cores{heat}, {clock} of the highest clock, {system}",
        device.facts["cpu"],
        device.facts["cores"],
        phrase(" at {celsius:.0f} °C", seen.heat.celsius) if seen.heat.celsius else "",
        percent_text(seen.heat.clock),
        device.facts["system"],
    )


def _warnings(
    device: ssh.Device | adb.Phone, looks: Sequence[Condition], place: Address
) -> list[str]:
    facts = device.facts
    heats = [seen.heat for seen in looks] or [Heat(0.0, 1.0)]
    worst = min(heats, key=lambda heat: (heat.clock, -heat.celsius))
    found = unsteady(float(facts["busy"]), int(facts["cores"]), str(facts["governor"]), worst)
    dark = next((seen.screen for seen in looks if seen.screen), "")
    if dark:
        found.append(
            phrase(
                "its screen is off ({state}), and Android slows down what runs then: `{command}` "
                "wakes it",
                dark,
                f"adb -s {place.host} shell input keyevent KEYCODE_WAKEUP",
            )
        )
    return found


def _mixed(looks: Sequence[Condition], place: Address) -> list[str]:
    """Which cores a target's threads may land on, where a device has several kinds."""
    if not looks or place.target.kind != "cpu":
        return []
    known = looks[0].cores
    told = describe_cores(known, frozenset(core for kind in known.kinds for core in kind))
    return [mixed_text(place, told)] if told else []


def _warm_up(run: Callable[[], None], runs: int | None) -> list[float]:
    """Warms up for this many runs, or until a window of runs is no faster than the windows before
    it."""
    if runs is not None:
        return [time_call(run) for _ in range(runs)]
    times: list[float] = []
    best = float("inf")
    while sum(times) < _MOST_WARM_UP_SECONDS * 1e6:
        window: list[float] = []
        left = _WINDOW_SECONDS * 1e6
        while left > 0:
            window.append(time_call(run))
            left -= window[-1]
        times += window
        if median(window) > _STEADY * best:
            break
        best = min(best, median(window))
    return times
