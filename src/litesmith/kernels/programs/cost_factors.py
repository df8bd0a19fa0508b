"""How this machine differs from the one that the constants of sparse layers were fitted on.

A short calibration (`learn_costs.py`) learns it once a processor; the cache keeps it, under a name
made of the processor, the runtime and our sources. Where nothing was learned, the constants hold.
"""

import json
import os
from contextlib import suppress
from functools import cache
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from litesmith.errors import BadInput
from litesmith.native.sealed_file import read_sealed, write_sealed
from litesmith.native.user_cache import folder, sources_digest
from litesmith.operating_system import cpu_name
from litesmith.run.litert.capi import installed_version
from litesmith.type_guards import is_mapping

# The variables by which numba compiles for another processor.
_VARIABLES = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")
_ENDING = ".times"  # of the files in the cache that hold times

# A small core is 100 times slower than that machine; further off is no measurement.
_MOST = 10_000.0


class Factors(NamedTuple):
    """How many times as long as the constants say the runtime's dense kernel takes, and our sparse
    one."""

    dense: float = 1.0
    sparse: float = 1.0


Learned = dict[str, Factors]  # "float32 many", "float32 few" …: the kernels differ

# What this process learned and could not keep, as in a folder that others may write to.
_unkept: dict[Path, Learned] = {}


def kind_of(dtype: str, is_few: bool) -> str:
    return f"{dtype} {'few' if is_few else 'many'}"


def factors(dtype: str, is_few: bool) -> Factors:
    """What was learned of one kind of layers here; ones where nothing was."""
    return (_found(_place()) or {}).get(kind_of(dtype, is_few), Factors())


def is_learned() -> bool:
    """True where nothing is left to learn: it is known, or there is nowhere to keep it."""
    place = _place()
    return place is None or _found(place) is not None


def keep(learned: Learned) -> None:
    """Keeps what was learned for this process and, where that can be written, for later ones."""
    place = _place()
    if place is None:
        return
    content = {kind: list(found) for kind, found in learned.items()}
    with suppress(OSError, BadInput):  # a full or write-protected disk costs time, nothing else
        write_sealed(place, json.dumps(content).encode())
    _kept.cache_clear()
    if _kept(place) is None:
        _unkept[place] = learned


def _place() -> Path | None:
    place = folder()
    named = tuple(os.environ.get(name, "") for name in _VARIABLES)
    return None if place is None else place / f"sparse-{_digest(named)}{_ENDING}"


@cache
def _digest(named: tuple[str, ...]) -> str:
    about = "\n".join((cpu_name(), installed_version(), sources_digest("kernels"), *named))
    return sha256(about.encode()).hexdigest()[:16]


def _found(place: Path | None) -> Learned | None:
    kept = None if place is None else _kept(place)
    return kept if kept is not None or place is None else _unkept.get(place)


@cache
def _kept(place: Path) -> Learned | None:
    content = read_sealed(place)
    read: object = None if content is None else json.loads(bytes(content))
    if not is_mapping(read):
        return None
    return {str(kind): found for kind, pair in read.items() if (found := _factors(pair))}


def _factors(pair: object) -> Factors | None:
    match pair:
        case [int() | float() as dense, int() | float() as sparse]:
            found = Factors(float(dense), float(sparse))
            return found if is_possible(found) else None
        case _:
            return None


def is_possible(found: Factors) -> bool:
    return all(isfinite(factor) and 1 / _MOST < factor < _MOST for factor in found)
