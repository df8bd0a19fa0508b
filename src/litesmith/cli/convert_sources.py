"""Sources of other tools in the place of a model: a command is handed the .tflite of each, which
stays beside it."""

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

# What names a model among the arguments of a command.
_ONE, _MANY = ("model", "a", "b", "against", "reference"), "models"


def convert_typed(command: str, typed: Typed) -> None:
    """Puts the .tflite of each source that was typed in its place."""
    if command == "convert":
        return
    shape = tuple(typed.get("shape", ()))
    used = False
    for name in _ONE:
        path = typed.get(name)
        if isinstance(path, Path) and _is_to_convert(path):
            typed[name], used = _converted(path, shape), True
    if isinstance(typed.get(_MANY), list | tuple):
        found = [isinstance(p, Path) and _is_to_convert(p) for p in typed[_MANY]]
        typed[_MANY] = [
            _converted(path, shape) if is_one else path
            for path, is_one in zip(typed[_MANY], found, strict=True)
        ]
        used = used or any(found)
    if used and shape:
        typed.pop("shape")  # the conversion has it


def _is_to_convert(path: Path) -> bool:
    if not path.exists():
        return False
    if path.suffix.lower() != ".tflite":
        refuse_stranger(path)
    return is_source(path) and path.is_file()


def _converted(path: Path, shape: Sequence[str]) -> Path:
    """The .tflite of a source; one that is there already where it was made of the same."""
    marked = "".join("-" + "x".join(map(str, split_shape(text)[1])) for text in shape)
    place = path.with_name(f"{path.stem}{marked}.tflite")
    if place.exists() or place.is_symlink():  # a link to nothing would have it land elsewhere
        if not place.is_file() or _made_of(place) != digest(path):
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


def _made_of(place: Path) -> str:
    """The digest of the source that a .tflite says it was made of; "" where it says nothing."""
    try:
        metadata = dict(litesmith.load(place).metadata)
    except BadModel:
        return ""
    found = metadata.get(SOURCE_DIGEST)
    return "" if found is None else found.tobytes().decode("ascii", "replace")
