"""A folder that `tune` wrote, read into one record; and the files of any folder."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from litesmith.errors import BadInput, os_reason
from litesmith.evidence import Log, Trial
from litesmith.pages.records.tolerant_json import (
    Fields,
    fields,
    number,
    positive,
    rows,
    text,
    texts,
)
from litesmith.pages.records.tune_record import (
    Entry,
    Inside,
    Record,
    Sizes,
    chosen_of,
    inside_of,
    path_of,
    request_of,
    score_of,
    sizes_of,
    speed_of,
)
from litesmith.phrases import phrase

SUMMARY = "tune.json"


def read_folder(folder: Path) -> Record:
    """Everything that a folder holds; of a tuning that was stopped, what there is so far."""
    summary = read_summary(folder / SUMMARY, "tune")
    log = folder / "trials.jsonl"
    entries = entries_of(_of_search(Log(log).read(), summary)) if log.exists() else ()
    digest = text(summary.get("model_digest"))
    digests = {digest, *(entry.digest for entry in entries)}
    insides = {one: _inside(folder, one) for one in sorted(digests) if one}
    words = ("model", "version", "command", "state", "verdict", "sentence")
    return Record(
        **{word: text(summary.get(word)) for word in words},
        digest=digest,
        request=request_of(summary.get("request")),
        data=fields(summary.get("data")),
        best=chosen_of(summary.get("best")),
        nearest=chosen_of(summary.get("nearest")),
        base=chosen_of(summary.get("float")),
        front=texts(summary.get("front")),
        path=path_of(summary.get("path")),
        threads=rows(summary.get("threads")),
        next=texts(summary.get("next")),
        environment=fields(summary.get("environment")),
        seconds=positive(summary.get("seconds")),
        entries=tuple(_with_takers(entry, insides) for entry in entries),
        replay=text(read_optional(folder / "recipe.json").get("command")),
        inside={one: inside for one, inside in insides.items() if inside.ops or inside.layers},
    )


def _with_takers(entry: Entry, insides: Mapping[str, Inside]) -> Entry:
    found = insides.get(entry.digest)
    return replace(entry, takers=found.takers) if found else entry


def _of_search(trials: tuple[Trial, ...], summary: Fields) -> tuple[Trial, ...]:
    """The trials that the summary is about: a folder may hold those of other requests too."""
    keys = {*texts(summary.get("keys"))}
    own = (trial for trial in trials if text(fields(trial.details).get("key")) in keys)
    return tuple(own) if keys else trials


def entries_of(trials: tuple[Trial, ...]) -> tuple[Entry, ...]:
    """The trials by name, in the order in which the names were first seen; the last line counts."""
    kept: dict[str, dict[str, Trial]] = {}
    for place, trial in enumerate(trials, 1):
        details = fields(trial.details)
        name = text(details.get("name")) or phrase("trial {place}", place)
        kept.setdefault(name, {})[text(details.get("kind"))] = trial
    return tuple(_entry(name, kinds) for name, kinds in kept.items())


def _entry(name: str, kinds: dict[str, Trial]) -> Entry:
    proven = kinds.get("verified")
    trial = next((kinds[kind] for kind in kinds if kind != "verified"), proven)
    assert trial is not None
    own = fields(trial.details)
    later = fields(proven.details) if proven is not None else {}
    return Entry(
        name=name,
        branch=text(own.get("branch")) or text(later.get("branch")),
        status=text(later.get("status")) or text(own.get("status")),
        recipe=text(trial.recipe),
        digest=text(trial.model_digest),
        reasons=_reasons(own, kinds),
        sizes=_either(sizes_of(own), sizes_of(later)),
        score=None if trial is proven else score_of(own.get("accuracy")),
        room=None if trial is proven else number(fields(own.get("room")).get("estimate")),
        proof=score_of(later.get("accuracy")),
        speed=speed_of(later.get("latency")) or speed_of(own.get("latency")),
        is_integer=own.get("is_integer") is True or later.get("is_integer") is True,
        notes=tuple(dict.fromkeys(texts(own.get("notes")) + texts(later.get("notes")))),
        skipped=tuple((text(where), text(why)) for where, why in trial.skipped),
        seconds=_sum(number(own.get("seconds")), number(later.get("seconds"))),
    )


def _reasons(own: Fields, kinds: dict[str, Trial]) -> tuple[str, ...]:
    """Why it was tried; and what came of it, where no column has it."""
    why = text(own.get("why"))
    told = [text(one.reason) for one in kinds.values()]
    shown = [why] if why and own.get("accuracy") else [why, *told]
    return tuple(dict.fromkeys(one for one in shown if one))


def _either(first: Sizes, second: Sizes) -> Sizes:
    return Sizes(first.file or second.file, first.gzip or second.gzip, first.peak or second.peak)


def _sum(*terms: float | None) -> float | None:
    known = [term for term in terms if term is not None]
    return sum(known) if known else None


def read_summary(path: Path, command: str) -> Fields:
    """The record that a command left; raises where it is damaged."""
    try:
        shown = json.loads(path.read_bytes())
    except (ValueError, RecursionError, OSError) as error:
        why = os_reason(error) if isinstance(error, OSError) else phrase("it is not JSON")
        raise BadInput(
            "{path}: cannot be read ({why}); run `litesmith {command}` again", path, why, command
        ) from None
    if not isinstance(shown, dict):
        raise BadInput(
            "{path}: is not what `litesmith {command}` writes; run it again", path, command
        )
    return fields(shown)


def _inside(folder: Path, digest: str) -> Inside:
    """The details of a model; empty where there are none, and for a name that leads elsewhere."""
    if not digest.isalnum():
        return Inside()
    return inside_of(read_optional(folder / "evidence" / f"{digest}.json"))


def read_optional(path: Path) -> Fields:
    """A file that need not be there, nor be whole."""
    try:
        return fields(json.loads(path.read_bytes()))
    except (ValueError, RecursionError, OSError):
        return {}
