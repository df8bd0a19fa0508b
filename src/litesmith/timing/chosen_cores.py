"""Chooses the cores that threads run on, where a processor has fast and slow ones."""

import os
import re
from collections.abc import Generator
from contextlib import contextmanager

from litesmith.arguments import argument
from litesmith.errors import BadInput, CannotRun
from litesmith.operating_system import CoreKinds, can_pin, core_kinds, pin
from litesmith.phrases import phrase

BIG, LITTLE = "big", "little"
_RANGE = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")


@contextmanager
def on_cores(text: str | None) -> Generator[None]:
    """Pins everything started inside the block to these cores: big, little, or numbers such as
    0-3,6. None leaves the choice to the system."""
    if text is None:
        yield
        return
    if not can_pin():
        raise CannotRun(
            "{cores}: this system does not let a program choose its cores; Linux does",
            argument("cores", text),
        )
    with pin(choose_cores(text, core_kinds(), frozenset(os.sched_getaffinity(0)))):
        yield


def choose_cores(text: str, known: CoreKinds, usable: frozenset[int]) -> frozenset[int]:
    """Parses a text into cores, all of which this process may use."""
    kinds = _usable(known, usable)
    if text in (BIG, LITTLE):
        if len(kinds) < 2:
            raise CannotRun(
                "{cores}: all {count} cores that this process may use are alike",
                argument("cores", text),
                len(usable),
            )
        return frozenset(kinds[0] if text == BIG else kinds[-1])
    found: set[int] = set()
    for part in text.split(","):
        numbers = _RANGE.fullmatch(part.strip())
        if numbers is None:
            raise BadInput(
                "{cores}: give {big}, {little}, or numbers such as 0-3,6",
                argument("cores", text),
                BIG,
                LITTLE,
            )
        found |= {*range(int(numbers[1]), int(numbers[2] or numbers[1]) + 1)}
    if not found or not found <= usable:
        raise BadInput(
            "{cores}: this process may use the cores {usable}",
            argument("cores", text),
            list_cores(usable),
        )
    return frozenset(found)


def describe_cores(known: CoreKinds, usable: frozenset[int]) -> str:
    """The kinds of cores that threads may run on, fastest first; "" where all cores are alike."""
    kinds = _usable(known, usable)
    return " + ".join(f"{len(kind)} ({list_cores(kind)})" for kind in kinds) if kinds[1:] else ""


def mixed_cores(target: object) -> str:
    """Says which cores a target's threads may land on, where that is unclear; "" elsewhere."""
    if not can_pin():
        return ""
    kinds = describe_cores(core_kinds(), frozenset(os.sched_getaffinity(0)))
    return mixed_text(target, kinds) if kinds else ""


def mixed_text(target: object, kinds: str) -> str:
    """Says which kinds of cores a target's threads may land on."""
    return phrase(
        "{target} may run on any of {kinds} cores, the fastest kind first, and its times with "
        "them; {cores} chooses",
        target,
        kinds,
        argument("cores", BIG),
    )


def list_cores(cores: frozenset[int] | tuple[int, ...]) -> str:
    """Abbreviates core numbers, as in 0-3,6."""
    parts: list[list[int]] = []
    for core in sorted(cores):
        if parts and core == parts[-1][-1] + 1:
            parts[-1].append(core)
        else:
            parts.append([core])
    return ",".join(str(p[0]) if len(p) == 1 else f"{p[0]}-{p[-1]}" for p in parts)


def _usable(known: CoreKinds, usable: frozenset[int]) -> list[tuple[int, ...]]:
    kinds = [tuple(core for core in kind if core in usable) for kind in known.kinds]
    return [kind for kind in kinds if kind]
