"""A model's copy in other sizes; results that say the copy's name say the user's again."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from litesmith.anatomy.source_file import SourceFile
from litesmith.errors import LitesmithError
from litesmith.front.resize import Shape, resize, shape_texts
from litesmith.operating_system import quote
from litesmith.phrases import Phrase
from litesmith.temporary import temporary_file
from litesmith.tflite.write import to_bytes

T = TypeVar("T")
Rename = Callable[[Any], Any]


class Copy(NamedTuple):
    """A model in other sizes: its file, and what reports and commands call it."""

    path: Path
    name: str
    typed: str


def say_unchanged(value: T) -> T:
    return value


@contextmanager
def in_shape(paths: Sequence[Path], shape: Shape | None) -> Generator[tuple[list[Path], Rename]]:
    """Temporary copies of files in other sizes, and what says the files' names again; the files
    themselves where no sizes are given."""
    texts = () if shape is None else shape_texts(shape)
    if not texts:
        yield list(paths), say_unchanged
        return
    with ExitStack() as stack:
        copies = [stack.enter_context(temporary_copy(path, texts)) for path in paths]
        with renaming(copies) as rename:
            yield [copy.path for copy in copies], rename


@contextmanager
def temporary_copy(path: Path, shape: tuple[str, ...], name: str = "") -> Generator[Copy]:
    """The model in these sizes for a while, which reports call `name` or as its file."""
    with temporary_file(to_bytes(resize(path, shape)), path.name) as place:
        yield Copy(place, name or str(path), quote(str(path)) + shape_options(shape))


def shape_options(shape: Shape | None) -> str:
    """The sizes as they are typed behind a command."""
    texts = () if shape is None else shape_texts(shape)
    return "".join(f" --shape {quote(text)}" for text in texts)


@contextmanager
def renaming(copies: Sequence[Copy]) -> Generator[Rename]:
    """What says the names that were given where a result says the copies'; errors say them too."""
    rename = _renamer(copies)
    try:
        yield rename
    except LitesmithError as error:
        error.args = tuple(map(rename, error.args))
        raise


def _renamer(copies: Sequence[Copy]) -> Rename:
    """What says the typed names in a result, an event or a sentence."""
    names = {str(copy.path): copy for copy in copies}

    def renamed(value: Any) -> Any:
        """The same value where it names no copy."""
        if isinstance(value, Phrase):
            told = _each(dict(value.values), renamed)
            return value if told is None else Phrase(value.template, told)
        if type(value) is str:
            return _renamed_text(value, names)
        if isinstance(value, Path):
            return Path(names[str(value)].name) if str(value) in names else value
        if isinstance(value, dict):
            made = _each(cast(dict[str, Any], value), renamed)
            return cast(object, value) if made is None else made
        if isinstance(value, tuple | list):
            return _renamed_items(cast(Sequence[object], value), renamed)
        if isinstance(value, SourceFile):
            return _renamed_file(value, names)
        if is_dataclass(value) and not isinstance(value, type) and not _is_ir(value):
            held = {one.name: getattr(value, one.name) for one in fields(value) if one.init}
            made = _each(held, renamed)
            return value if made is None else replace(value, **made)
        return value

    return renamed


def _renamed_file(source: SourceFile, names: Mapping[str, Copy]) -> SourceFile:
    """A copy under the name that was typed, with the sizes of its own file."""
    if str(source.path) not in names:
        return source
    made = replace(source, path=Path(names[str(source.path)].name))
    sizes = {"bytes": source.bytes}
    if source.quick_gzip_bytes is not None:
        sizes["gzip_bytes"] = source.gzip_bytes
    vars(made).update(sizes)
    return made


def _is_ir(value: object) -> bool:
    """True for a model and its parts, which name no file."""
    return type(value).__module__.startswith("litesmith.ir.")


def _each(held: Mapping[str, Any], renamed: Rename) -> dict[str, Any] | None:
    """What is held, renamed; None where that changes nothing."""
    made = {name: renamed(value) for name, value in held.items()}
    return made if any(made[name] is not held[name] for name in held) else None


def _renamed_items(items: Sequence[object], renamed: Rename) -> Sequence[object]:
    made = [renamed(one) for one in items]
    if all(new is old for new, old in zip(made, items, strict=True)):
        return items
    kind = cast(Any, type(items))
    return kind(*made) if hasattr(kind, "_fields") else kind(made)


def _renamed_text(text: str, names: Mapping[str, Copy]) -> str:
    for place, copy in names.items():
        if text == place:
            return copy.name
        if quote(place) in text:
            text = text.replace(quote(place), copy.typed)
    return text
