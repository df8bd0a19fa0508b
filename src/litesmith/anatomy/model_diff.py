"""`diff`: what changed in the graph between two models."""

from dataclasses import dataclass

from litesmith.anatomy.source_file import Source, open_source
from litesmith.display import show_html, show_line
from litesmith.ir.diff import Difference, differences
from litesmith.phrases import phrase


@dataclass(frozen=True, repr=False)
class Diff:
    """What differs between two models, from the coarse to the fine."""

    a: str
    b: str
    differences: tuple[Difference, ...]

    __repr__ = show_line
    _repr_html_ = show_html

    @property
    def is_same(self) -> bool:
        return not self.differences

    @property
    def sentence(self) -> str:
        if self.is_same:
            return phrase("{a} and {b}: the same graph, constants and metadata", self.a, self.b)
        return phrase("{a} -> {b}: {count} differences", self.a, self.b, len(self.differences))

    def to_rows(self) -> list[dict[str, object]]:
        return [one._asdict() for one in self.differences]

    def to_json(self) -> dict[str, object]:
        return {"schema": 1, "same": self.is_same, "differences": self.to_rows()}


def diff(a: Source, b: Source) -> Diff:
    """What changed in the graph between two models.

    >>> litesmith.diff("before.tflite", "after.tflite").is_same         # doctest: +SKIP
    """
    before, after = open_source(a), open_source(b)
    found = tuple(differences(before.model, after.model))
    return Diff(str(before.path or "a"), str(after.path or "b"), found)
