"""Trials in a file, one JSON object per line; lines are only ever added."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from litesmith.errors import BadInput, os_reason
from litesmith.evidence.codec import (
    Malformed,
    Salvaged,
    decode,
    dump,
    is_object,
    parse,
    read_record,
    salvage,
)
from litesmith.evidence.measurement import Trial
from litesmith.phrases import phrase

D = TypeVar("D")

# The types of details by kind; "" for trials without a kind.
Kinds = Mapping[str, type[D]]

_APPENDING = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)  # Windows has it


@dataclass(frozen=True)
class Log:
    """The trials of one file.

    Readers skip a line that a crash cut short; the next line starts afresh.
    """

    path: Path

    def append(self, trial: Trial[object]) -> None:
        """Adds one line in one write, and waits until it is on disk."""
        line = f"{dump(trial)}\n".encode()
        try:
            handle = os.open(self.path, _APPENDING, 0o666)
            try:
                torn = _is_torn(handle)
                written = os.write(handle, b"\n" + line if torn else line)
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise BadInput(
                "{path}: cannot be written ({why})", self.path, os_reason(error)
            ) from None
        if written != len(line) + torn:
            raise BadInput("{path}: a line was cut short; is the disk full?", self.path)

    def read(self, kinds: Kinds[D]) -> tuple[Trial[D], ...]:
        """Reads every whole trial, oldest first; raises BadInput for a trial that was altered."""
        found: list[Trial[D]] = []
        for number, shown in self._lines():
            try:
                line = decode(_Line, shown)
                found.append(line.with_details(decode(_kind(kinds, line.details), line.details)))
            except Malformed as error:
                raise BadInput(
                    "{path}, line {number}: is not a trial ({error})", self.path, number, error
                ) from None
        return tuple(found)

    def salvage(self, kinds: Kinds[D]) -> Salvaged[tuple[Trial[D], ...]]:
        """Reads every trial as far as possible."""
        found: list[Trial[D]] = []
        losses: list[str] = []
        for number, shown in self._lines():
            place = phrase("{name}, line {number}", self.path.name, number)
            try:
                line, lost = salvage(_Line, shown)
                details, more = salvage(_kind(kinds, line.details), line.details)
            except Malformed as error:
                losses.append(phrase("{place}: {why}", place, error))
                continue
            losses += [phrase("{place}: {why}", place, why) for why in (*lost, *more)]
            found.append(line.with_details(details))
        return Salvaged(tuple(found), tuple(losses))

    def _lines(self) -> list[tuple[int, object]]:
        """The whole lines, each with its number."""
        try:
            lines = read_record(self.path).splitlines()
        except (OSError, Malformed) as error:
            why = os_reason(error) if isinstance(error, OSError) else str(error)
            raise BadInput("{path}: cannot be read ({why})", self.path, why) from None
        found: list[tuple[int, object]] = []
        for number, line in enumerate(lines, 1):
            try:
                found.append((number, parse(line)))
            except Malformed:  # a crash cut the line short
                continue
        return found


@dataclass(frozen=True)
class _Line(Trial[object]):
    """A trial before the type of its details is known."""


def _kind(kinds: Kinds[D], details: object) -> type[D]:
    kind = details.get("kind", "") if is_object(details) else ""
    if not isinstance(kind, str) or kind not in kinds:
        known = " or ".join(map(repr, kinds))
        raise Malformed("details.kind", phrase("is {kind!r}, not {known}", str(kind), known))
    return kinds[kind]


def _is_torn(handle: int) -> bool:
    """True where the last line has no end."""
    size = os.fstat(handle).st_size
    if not size:
        return False
    os.lseek(handle, size - 1, os.SEEK_SET)
    return os.read(handle, 1) != b"\n"
