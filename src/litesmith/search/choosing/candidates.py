"""The models to choose from: files, patterns and names of the catalogue, each listed once."""

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from glob import glob, has_magic
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import NamedTuple

from litesmith.arguments import argument
from litesmith.errors import BadInput, CannotApply
from litesmith.evidence.choose_record import PublishedScore
from litesmith.ir.types import Model
from litesmith.known_networks import NetworkSpec, catalogue_room, is_network
from litesmith.passes.core.step import Context
from litesmith.passes.tidy.resize import Resize
from litesmith.phrases import phrase
from litesmith.tflite.file import digest, load
from litesmith.tflite.write import to_bytes
from litesmith.units import typed_share


@dataclass(frozen=True)
class ModelCandidate:
    """A model to choose from.

    name       short and unique among the candidates
    path       the model's file; None for a catalogue network that has not been written yet
    digest     the digest of the file
    parent     the name of the candidate this one was made from, by `recipe`; "" for a given model
    is_taught  False where the weights are random numbers
    notes      what was decided for the user while the candidate was made
    """

    name: str
    model: Model
    path: Path | None
    digest: str
    parent: str = ""
    recipe: str = ""
    is_taught: bool = True
    published: PublishedScore | None = None
    notes: tuple[str, ...] = ()

    @property
    def file(self) -> Path:
        """The file of a candidate that has been written."""
        assert self.path is not None, f"{self.name} is not written yet"
        return self.path


class Listed(NamedTuple):
    """The candidates, with notes and warnings about them."""

    candidates: tuple[ModelCandidate, ...]
    notes: tuple[str, ...]


def list_candidates(
    texts: Sequence[str | os.PathLike[str]],
    shape: tuple[str, ...] = (),
    *,
    pretrained: bool = False,
) -> Listed:
    """Lists the candidates that the texts name, in the same order; each file is opened, and listed
    once.

    shape       argument of the step `resize`: files are rewritten with inputs of these sizes
    pretrained  whether catalogue networks come with published weights instead of random ones
    """
    if not texts:
        raise BadInput("nothing to choose from: give .tflite files, patterns or catalogue names")
    paths = [path for text in texts for path in _paths(os.fspath(text))]
    if pretrained and all(isinstance(path, Path) for path in paths):
        raise BadInput(
            "{pretrained}: all candidates are files; give names of `litesmith catalogue`, or leave "
            "it out",
            argument("pretrained", True),
        )
    names = iter(_names(paths))
    kept: dict[str, ModelCandidate] = {}
    notes: list[str] = []
    for path in paths:
        if isinstance(path, Path):
            found = _opened(next(names), path, shape)
        else:
            found = _build(path, pretrained)
        twin = kept.setdefault(found.digest, found)
        if twin.path and found.path and not os.path.samefile(twin.path, found.path):
            notes.append(
                phrase(
                    "{path} is the same file as {path2}; it is measured once", found.path, twin.path
                )
            )
    return Listed(tuple(kept.values()), tuple(notes))


def _opened(name: str, path: Path, shape: tuple[str, ...]) -> ModelCandidate:
    model = load(path)
    if not shape:
        return ModelCandidate(name, model, path, digest(path))
    try:
        resized = Resize(shape).apply(model, Context()).model
    except (BadInput, CannotApply) as error:
        raise type(error)("{path}: {error}", path, error) from None
    return ModelCandidate(name, resized, None, content_digest(resized))


def _names(paths: Sequence[Path | NetworkSpec]) -> list[str]:
    """Gives each file a name that no network of the catalogue has."""
    files = [path for path in paths if isinstance(path, Path)]
    taken = {str(path) for path in paths if not isinstance(path, Path)}
    found: list[str] = []
    for name, path in zip(short_names(files), files, strict=True):
        found.append(make_distinct(name if name not in taken else f"{name}{path.suffix}", taken))
        taken.add(found[-1])
    return found


def make_distinct(name: str, taken: Collection[str]) -> str:
    """Returns the name, with a number added if the name is already taken."""
    numbered = (f"{name} {number}" for number in count(2))
    return name if name not in taken else next(one for one in numbered if one not in taken)


def _build(network: NetworkSpec, pretrained: bool) -> ModelCandidate:
    """Builds a network of the catalogue, with published weights or with random numbers."""
    room, text = catalogue_room(), str(network)
    model = room.load_pretrained(text) if pretrained else room.build(text)
    own = room.find_pretrained(text) if pretrained else None
    size = network.width, network.resolution
    sizes = network.row.published if own is None else (own,)
    told = next((p for p in sizes if (p.width, p.resolution) == size), None)
    share = None if told is None else typed_share(told.accuracy)
    source = network.row.source if own is None else own.source
    source = phrase("{source}, on {data}", source, network.row.data)
    published = None if share is None else PublishedScore(share, source)
    return ModelCandidate(
        text, model, None, content_digest(model), is_taught=pretrained, published=published
    )


def _paths(text: str) -> Sequence[Path | NetworkSpec]:
    """The files that a path or pattern matches, or the catalogue network of that name."""
    path = Path(text)
    if is_network(text) and not path.exists():
        return [catalogue_room().parse(text)]
    if path.is_dir():
        raise BadInput("{path}: is a folder; give its files, as in '{path}/*.tflite'", path)
    if path.exists():
        return [path]
    if not has_magic(text):
        raise BadInput(
            "{what}: no such file, and no network that `litesmith catalogue` lists is so called",
            text,
        )
    found = sorted(Path(name) for name in glob(text, recursive=True) if os.path.isfile(name))
    if not found:
        raise BadInput("{what}: no file is so called; give .tflite files or another pattern", text)
    return found


def short_names(paths: Sequence[Path]) -> list[str]:
    """Names each file by its stem, and adds folders where several files share a stem."""
    whole = [Path(os.path.abspath(path)) for path in paths]
    parts = [(p.with_suffix("") if p.suffix == ".tflite" else p).parts for p in whole]
    parts = [
        own
        if not any(other == own and w != p for other, w in zip(parts, whole, strict=True))
        else p.parts
        for own, p in zip(parts, whole, strict=True)
    ]
    return [Path(*own[-_depth(own, parts) :]).as_posix() for own in parts]


def _depth(own: tuple[str, ...], everyone: Sequence[tuple[str, ...]]) -> int:
    """The number of trailing path parts that distinguish a path from all the others."""
    others = [other for other in everyone if other != own]
    for depth in range(1, len(own)):
        if not any(other[-depth:] == own[-depth:] for other in others):
            return depth
    return len(own)


def content_digest(model: Model) -> str:
    """The digest of the file that `save` would write for a model."""
    return sha256(to_bytes(model)).hexdigest()
