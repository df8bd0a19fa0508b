"""How far long work has come, for whoever watches: a terminal, a notebook, a program, nobody.

Every long function of the package takes `progress`, a function that is called with each Status, and
with each Note at the moment it is known.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

NOTE, WARNING = "note", "warning"

T = TypeVar("T")


@dataclass(frozen=True)
class Status:
    """What is being done, and how much of it has been done; `of` is 0 where nobody knows.

    more  what else is worth a look, such as the loss of a training
    """

    what: str
    done: int = 0
    of: int = 0
    more: str = ""


@dataclass(frozen=True)
class Note:
    """A sentence for the user: a choice made on their behalf (note), or a doubt (warning)."""

    text: str
    kind: str = NOTE


Progress = Callable[[Status | Note], None]


def silent(_: object) -> None:
    """Shows nothing."""


def watch(items: Iterable[T], status: Status, progress: Progress) -> Iterator[T]:
    """The same items, one by one; the beginning is told, and each item that was taken counts as
    done."""
    progress(status)
    for done, item in enumerate(items, 1):
        yield item
        progress(Status(status.what, done, status.of, status.more))


def tell_once(notes: Iterable[str], known: Iterable[str], progress: Progress) -> None:
    """Passes on the notes that have not been told."""
    told = {*known}
    for text in notes:
        if text not in told:
            progress(Note(text))
            told.add(text)
