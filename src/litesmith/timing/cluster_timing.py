"""Times from the devices of a Ray cluster: a whole group takes turns on one device, which runs
nothing else.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar, cast

from litesmith.data.shipping import Content, send_model, source_digest
from litesmith.phrases import phrase
from litesmith.progress import Progress, silent
from litesmith.run.core.target import Target
from litesmith.run.devices.address import Address
from litesmith.run.session import Source
from litesmith.timing.host import machine_here
from litesmith.timing.latency import Bench, Rule, measure
from litesmith.timing.turns import Contender
from litesmith.workers.engine import Engine, host_name

T = TypeVar("T")


class Timed(NamedTuple):
    """The measurements, and the name of the device; "" for this machine."""

    bench: Bench
    device: str = ""


def machine_of(engine: Engine | None, target: Target | Address | None) -> str:
    """The machine that provides the times, without facts that change from minute to minute; raises
    where the cluster has none. Targets that a cluster cannot run are timed or compiled by this
    machine.
    """
    if engine is None or not isinstance(target, Target):
        return machine_here()
    return "; ".join(sorted({*engine.on_devices(phrase("a look at the machine"), machine_here)}))


def measure_on(
    engine: Engine | None,
    group: Sequence[Contender],
    rule: Rule,
    progress: Progress = silent,
    *,
    memory: bool = True,
) -> Timed:
    """Times contenders in turns: here, or on a device of the cluster. A target over ssh or adb has
    a device of its own, which this machine reaches."""
    if engine is None or not all(isinstance(one.target, Target) for one in group):
        return Timed(measure(group, rule, progress, memory))
    keys = list(dict.fromkeys(one.digest for one in group))
    sources = {one.digest: one.source for one in group}
    contents = [send_model(engine, sources[key], key) for key in keys]
    bare = [replace(one, source="") for one in group]
    words = phrase("timing {fromkeys}", ", ".join(dict.fromkeys(one.name for one in group)))
    rule_for_device = (bare, rule, memory, keys)
    found = engine.alone(words, _measure_on_device, rule_for_device, *contents, models=tuple(keys))
    named = {(one.name, str(one.target)): one for one in group}
    results = tuple(
        replace(own, contender=named[own.model, own.target]) for own in found.bench.results
    )
    return found._replace(bench=replace(found.bench, results=results))


def _measure_on_device(
    asked: tuple[list[Contender], Rule, bool, list[str]], *contents: Content
) -> Timed:
    bare, rule, memory, keys = asked
    held = {key: cast(bytes, one.data) for key, one in zip(keys, contents, strict=True)}
    group = [replace(one, source=held[one.digest]) for one in bare]
    found = measure(group, rule, memory=memory)
    results = tuple(
        replace(own, contender=one) for own, one in zip(found.results, bare, strict=True)
    )
    pairs = zip(found.comparisons, bare[1:], strict=True)
    comparisons = tuple(replace(pair, a=bare[0], b=other) for pair, other in pairs)
    return Timed(replace(found, results=results, comparisons=comparisons), host_name())


def run_alone(
    engine: Engine | None,
    what: str,
    work: Callable[..., T],
    source: Source,
    *more: object,
) -> T:
    """Calls `work(source, *more)`, which measures time or memory: here, or alone on a device."""
    if engine is None:
        return work(source, *more)
    key = source_digest(source)
    content = send_model(engine, source, key)
    return engine.alone(what, _open_on_device, work, more, content, models=(key,))


def _open_on_device(work: Callable[..., T], more: tuple[object, ...], content: Content) -> T:
    return work(content.data, *more)
