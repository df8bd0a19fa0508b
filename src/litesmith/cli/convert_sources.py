"""Models of other tools in place of a .tflite: a command gets the .tflite of each source, which
stays beside the source.
"""

from collections.abc import Sequence
from pathlib import Path

import litesmith
from litesmith.cli.options.declare import Typed
from litesmith.cli.text.message import say
from litesmith.conversion.lower_model import SOURCE_DIGEST
from litesmith.conversion.other_formats import is_source, refuse_stranger
from litesmith.errors import BadInput, BadModel
from litesmith.passes.tidy.resize import split_shape
from litesmith.phrases import phrase
from litesmith.tflite.file import digest

# The arguments of commands that name models.
_ONE, _MANY = ("model", "a", "b", "against", "reference"), "models"


def convert_typed(command: str, typed: Typed) -> None:
    """Replaces each typed source by its .tflite."""
    if command == "convert":
        return
    shape = tuple(typed.get("shape", ()))
    used = False
    for name in _ONE:
        path = typed.get(name)
        if isinstance(path, Path) and _is_to_convert(path):
            typed[name], used = _convert_once(path, shape), True
    if isinstance(typed.get(_MANY), list | tuple):
        found = [isinstance(p, Path) and _is_to_convert(p) for p in typed[_MANY]]
        typed[_MANY] = [
            _convert_once(path, shape) if is_one else path
            for path, is_one in zip(typed[_MANY], found, strict=True)
        ]
        used = used or any(found)
    if used and shape:
        typed.pop("shape")  # the conversion applies the shape


def _is_to_convert(path: Path) -> bool:
    if not path.exists():
        return False
    if path.suffix.lower() != ".tflite":
        refuse_stranger(path)
    return is_source(path) and path.is_file()


def _convert_once(path: Path, shape: Sequence[str]) -> Path:
    """The .tflite of a source; an existing one where it was made from the same source."""
    marked = "".join("-" + "x".join(map(str, split_shape(text)[1])) for text in shape)
    place = path.with_name(f"{path.stem}{marked}.tflite")
    # through a dangling link, the file would land elsewhere
    if place.exists() or place.is_symlink():
        if not place.is_file() or _source_digest(place) != digest(path):
            raise BadInput(
                "{place} is there already, and was not made of {path}; move it away, or convert to "
                "another: litesmith convert {path} -o FILE",
                place,
                path,
            )
        say("note", phrase("{place} is {path}, converted before", place, path))
        return place
    result = litesmith.convert(path, out=place, shape=shape)
    if result.made is None:
        raise BadInput(
            "{path}: {told}; litesmith convert {path} -o FILE lists them",
            path,
            result.sentence,
        )
    say("note", phrase("{place} is {path}: {told}", place, path, result.sentence))
    return place


def _source_digest(place: Path) -> str:
    """The digest of the source that a .tflite states; "" where it states none."""
    try:
        metadata = dict(litesmith.load(place).metadata)
    except BadModel:
        return ""
    found = metadata.get(SOURCE_DIGEST)
    return "" if found is None else found.tobytes().decode("ascii", "replace")
