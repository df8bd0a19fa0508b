"""How many threads a model should use on this machine, alone and beside other programs."""

import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from litesmith.errors import CannotRun
from litesmith.operating_system import usable_cores
from litesmith.phrases import phrase
from litesmith.progress import Progress, silent
from litesmith.run.core.target import Target
from litesmith.run.session import Source
from litesmith.timing.latency import (
    Bench,
    Result,
    Rule,
    Situation,
    list_contenders,
    measure,
    ratio,
)
from litesmith.timing.statistics import FASTER, SLOWER, UNCLEAR
from litesmith.units import factor_text, time_text

# Beyond eight threads, trying every count would take longer than the answer is worth.
_COUNTS = (*range(1, 9), 12, 16, 24, 32, 48, 64, 96, 128)
_RULE = Rule(seconds=5.0)

# A competitor spins until it is killed, or until the process that started it is gone.
_SPIN = """
import os, sys
parent = os.getppid()
print("spinning", flush=True)
while os.getppid() == parent:
    for _ in range(100_000):
        pass
"""


def sweep(model: Source, rule: Rule = _RULE, progress: Progress = silent) -> tuple[Situation, ...]:
    """Times thread counts up to the cores of this process, alone and beside a load started here."""
    cores = usable_cores()
    counts = sorted({count for count in _COUNTS if count < cores} | {cores})
    group = list_contenders(model, [Target("cpu", count) for count in counts])
    found: list[Situation] = []
    for competitors in (0, max(1, cores // 2)):
        with competing_load(competitors):
            bench = measure(group, rule, progress, memory=not competitors)
        found.append(_situation(bench, competitors))
    return tuple(found)


@contextmanager
def competing_load(count: int) -> Generator[tuple[int, ...]]:
    """Starts this many spinning processes and yields their ids; they end with the block, even by an
    error.
    """
    children: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(count):
            command = [sys.executable, "-I", "-S", "-c", _SPIN]
            children.append(
                subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            )
        for child in children:
            if child.stdout is None or not child.stdout.readline():
                raise CannotRun("{executable}: cannot start a competing process", sys.executable)
        yield tuple(child.pid for child in children)
    finally:
        for child in children:
            child.kill()
        for child in children:
            child.communicate()


def _situation(bench: Bench, competitors: int) -> Situation:
    """Recommends a thread count: alone, by the usual time; beside other programs, by the slow runs,
    which matter there.
    """
    rank = 95 if competitors else 50
    best = bench.results[0]
    for result in bench.results[1:]:
        if ratio(best, result, rank).verdict == FASTER:
            best = result
    reasons = _reasons(bench.results, best, rank)
    return Situation(competitors, bench, best.contender.target.threads, reasons)


def _reasons(results: Sequence[Result], best: Result, rank: int) -> tuple[str, ...]:
    first, more = results[0], [r for r in results if _threads(r) > _threads(best)]
    reasons: list[str] = []
    if best is first:
        reasons.append(
            phrase("one thread takes {time} (p{rank})", time_text(best.percentile_us(rank)), rank)
        )
        reasons[0] += _beside(best, more, rank)
    else:
        gain = ratio(first, best, rank)
        cost = best.cpu_us / first.cpu_us if first.cpu_us else 1.0
        reasons.append(
            phrase(
                "{threads} threads are {speed} than one (p{rank}), and take {cost}",
                _threads(best),
                gain.words,
                rank,
                factor_text(cost, phrase("the CPU time")),
            )
        )
    for result in more:
        loss = ratio(best, result, rank)
        if loss.verdict == SLOWER:
            reasons.append(
                phrase(
                    "{threads} threads lose: {speed} (p{rank})", _threads(result), loss.words, rank
                )
            )
    return tuple(reasons)


def _beside(best: Result, more: Sequence[Result], rank: int) -> str:
    """A remark on using more threads than the fewest that are as good."""
    if not more:
        return phrase("; there is no other core")
    if any(ratio(best, result, rank).verdict == UNCLEAR for result in more):
        return phrase("; whether more are faster is {unclear}", UNCLEAR)
    return phrase(", and more are not faster")


def _threads(result: Result) -> int:
    return result.contender.target.threads
