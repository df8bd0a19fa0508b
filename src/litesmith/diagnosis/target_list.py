"""`targets`: what a model can run on, here and elsewhere."""

from dataclasses import dataclass

from litesmith.anatomy.source_file import Source, open_source
from litesmith.arguments import check_types
from litesmith.diagnosis.all_targets import placement_facts
from litesmith.display import show_html, show_line
from litesmith.phrases import phrase
from litesmith.run.accelerators.probes import Usable
from litesmith.run.accelerators.targets import Delegate, with_custom
from litesmith.run.core.placement import Placement

Json = dict[str, object]


@dataclass(frozen=True)
class TargetRow:
    """One target.

    usable     whether it can be used here, why, and how to change that
    placement  which ops of the model it takes; None without a model, or where it takes every op
    """

    delegate: Delegate
    usable: Usable
    placement: Placement | None = None

    def to_json(self) -> Json:
        usable, why, how = self.usable
        told: Json = {
            "name": self.delegate.name,
            "title": self.delegate.title,
            "usable": usable,
            "why": why,
            "how": how,
            "runs": self.delegate.runs,
        }
        found = self.placement
        return told if found is None else told | {"placement": placement_facts(found)}


@dataclass(frozen=True, repr=False)
class Targets:
    """Every target; `model` is the name of the model that they were asked about, if one was."""

    rows: tuple[TargetRow, ...]
    model: str | None = None

    __repr__ = show_line
    _repr_html_ = show_html

    @property
    def sentence(self) -> str:
        usable = [row.delegate.name for row in self.rows if row.usable.usable]
        return phrase(
            "{count} of {count2} targets can be used here: {usable}",
            len(usable),
            len(self.rows),
            ", ".join(usable),
        )

    def to_rows(self) -> list[Json]:
        """One row a target; with a model, how many of its ops that takes and why not the others."""
        return [_row(row) for row in self.rows]

    def to_json(self) -> Json:
        return {"schema": 1, "targets": [row.to_json() for row in self.rows]}


@check_types
def targets(model: Source | None = None, *, compile: bool = False) -> Targets:
    """Every accelerator: usable here or why not, and which ops of a model it takes.

    >>> litesmith.targets("model.tflite").to_rows()                     # doctest: +SKIP

    Rules say what a target takes of a model; with `compile` the compilers that are installed do.
    """
    source = None if model is None else open_source(model)
    rows: list[TargetRow] = []
    for one in with_custom():
        way = one.place if compile else one.predict
        placement = way(source.model) if way is not None and source is not None else None
        rows.append(TargetRow(one, one.probe(), placement))
    return Targets(tuple(rows), None if source is None else str(source.path or source.name))


def _row(row: TargetRow) -> Json:
    told: Json = {"target": row.delegate.name, "usable": row.usable.usable}
    found = row.placement
    if found is None:
        return told | {"why": row.usable.why, "how": row.usable.how}
    counts: Json = {"taken": found.taken, "left": found.left, "parts": found.partitions}
    return told | counts | {"how": found.how, "why_left": found.main_reason}
