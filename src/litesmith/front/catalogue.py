"""`catalogue`: networks by name, what is known of them, and as files."""

import os
from dataclasses import dataclass
from pathlib import Path

from litesmith.anatomy.footprint import Footprint, footprint
from litesmith.arguments import argument, check_types
from litesmith.display import show_html, show_line
from litesmith.errors import BadInput
from litesmith.ir.types import Model
from litesmith.known_networks import NetworkFamily, NetworkSpec, Published, catalogue_room
from litesmith.phrases import phrase
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
        }


@dataclass(frozen=True, repr=False)
class NetworkFile:
    """A network that was written as a file; `origin` is where its weights come from."""

    network: Network
    out: Path
    model: Model
    origin: str

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
    head: bool = True,
    seed: int = 0,
) -> Catalogue | Network | NetworkFile:
    """Networks by name: all of them, one of them, or one written as a .tflite.

    >>> litesmith.catalogue("mobilenet_v2:0.5@160", classes=10, out="m.tflite")  # doctest: +SKIP

    `weights` are yours: a .tflite, a torch state dict or an .npz; without `head` the classifier
    among them is left out. Without weights they are random, by `seed`.
    """
    if not name:
        _refuse_lonely(out, classes, weights)
        room = catalogue_room()
        return Catalogue(tuple(_count(room.parse(row.name)) for row in room.families()))
    spec = catalogue_room().parse(name, classes)
    if out is None:
        if weights is not None:
            given = argument("weights", weights)
            raise BadInput(
                "{given}: give the file to write too, with {argument}", given, argument("out")
            )
        return _count(spec)
    place, file = Path(out), None if weights is None else Path(weights)
    refuse_output(place, *([] if file is None else [file]))
    if file is None:
        model = catalogue_room().build(str(spec), seed=seed)
    else:
        model = catalogue_room().load_weights(str(spec), file, head=head)
    save(model, place)
    origin = (
        phrase("random weights, seed {seed}", seed)
        if file is None
        else phrase("weights of {name}", file.name)
    )
    return NetworkFile(Network(spec, footprint(model)), place, model, origin)


def size_of(row: NetworkFamily, printed: Published) -> NetworkSpec:
    """The size of a network that a published row is of."""
    return catalogue_room().at_size(row.name, printed.width, printed.resolution)


def _count(spec: NetworkSpec) -> Network:
    return Network(spec, footprint(catalogue_room().build(str(spec), seed=None)))


def _refuse_lonely(out: object, classes: object, weights: object) -> None:
    for name, value in (("out", out), ("classes", classes), ("weights", weights)):
        if value is not None:
            raise BadInput(
                "{argument}: of which network? give its name first", argument(name, value)
            )
