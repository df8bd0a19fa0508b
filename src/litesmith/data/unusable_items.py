"""Items that cannot be used are named, counted and left out; if they are many, the data is
refused.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from litesmith.data.images import in_parallel
from litesmith.data.readers import Rows
from litesmith.errors import BadInput
from litesmith.phrases import Phrase, phrase
from litesmith.units import percent_text, plain, total_text

# Where more than this share is unusable, the problem is not a few items.
_MOST = 0.05

_NAMED = 5


class ChosenItems(NamedTuple):
    """The numbers of the chosen items, and notes about the choice."""

    places: tuple[int, ...]
    notes: tuple[str, ...] = ()


def only_usable(
    rows: Rows, choose: Callable[[Sequence[int]], ChosenItems], source: str
) -> ChosenItems:
    """Lets `choose` choose among the usable items; only the items that it chooses are checked.

    It chooses again while its choice contains an unusable item.
    """
    every = range(len(rows.names))
    if rows.check is None:
        return choose(every)
    seen: dict[int, str] = {}
    while True:
        chosen = choose([place for place in every if not seen.get(place)])
        new = [place for place in chosen.places if place not in seen]
        if not new:
            return ChosenItems(chosen.places, (*chosen.notes, *_note_left_out(rows, seen)))
        seen.update(zip(new, in_parallel(rows.check.fault, new), strict=True))
        if sum(map(bool, seen.values())) > _MOST * len(seen):
            raise BadInput(
                "{source}: {counted}, more than {share}: {listed}; repair them or take them away",
                source,
                _count_unusable(rows, seen),
                percent_text(_MOST),
                _list_unusable(rows, seen),
            )


def tells_of_unusable(note: str) -> bool:
    """True for the note about items that were left out."""
    return isinstance(note, Phrase) and {*note.values} == {"counted", "listed"}


def _note_left_out(rows: Rows, seen: dict[int, str]) -> tuple[str, ...]:
    """A sentence about the items left out, and one for each class that has no others."""
    bad = [place for place, fault in seen.items() if fault]
    if not bad:
        return ()
    notes = [
        phrase(
            "{counted} and are left out: {listed}",
            _count_unusable(rows, seen),
            _list_unusable(rows, seen),
        )
    ]
    if rows.classes is not None:
        others = [place for place in range(len(rows.names)) if not seen.get(place)]
        for number in sorted(set(rows.classes[bad].tolist()) - set(rows.classes[others].tolist())):
            first = next(place for place in bad if rows.classes[place] == number)
            folder, _, file = rows.names[first].partition("/")
            named = (
                phrase(" ({folder})", plain(folder))
                if file and folder and folder != str(number)
                else ""
            )
            notes.append(phrase("class {number}{named} has no samples left", number, named))
    return tuple(notes)


def _count_unusable(rows: Rows, seen: dict[int, str]) -> str:
    count = sum(map(bool, seen.values()))
    what = "" if rows.check is None else rows.check.what
    return phrase("{count} of {count2} {what}", total_text(count), total_text(len(seen)), what)


def _list_unusable(rows: Rows, seen: dict[int, str]) -> str:
    bad = sorted(place for place, fault in seen.items() if fault)
    named = ", ".join(f"{plain(rows.names[place])} ({seen[place]})" for place in bad[:_NAMED])
    return (
        phrase("{named} and {count} more", named, total_text(len(bad) - _NAMED))
        if len(bad) > _NAMED
        else named
    )
