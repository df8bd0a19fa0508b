"""`--shape`: a command is handed copies of its models in other sizes, and speaks of those that were
typed."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple, TypeVar, cast

import litesmith
from litesmith.anatomy.source_file import SourceFile
from litesmith.cli.options.declare import Typed
from litesmith.cli.text.deliver import say
from litesmith.errors import BadInput, LitesmithError
from litesmith.passes.tidy.resize import split_shape
from litesmith.phrases import Phrase, phrase
from litesmith.temporary import temporary_file
from litesmith.tflite.write import to_bytes

T = TypeVar("T")
Rename = Callable[[Any], Any]

# What names a model among the arguments of a command.
_ONE, _MANY = ("model", "a", "b", "against", "reference"), "models"


class Copy(NamedTuple):
    """A model in other sizes: its file, and what reports and commands call it."""

    path: Path
    name: str
    typed: str


@contextmanager
def in_typed_shapes(command: str, typed: Typed) -> Generator[Rename]:
    """Puts copies in the sizes of `--shape` in the place of the models that were typed; gives what
    says the names of these where a result says the copies'."""
    groups = list(_groups(typed.pop("shape", ())))
    if not groups:
        yield _unchanged
        return
    if len(groups) > 1 and command != "bench":
        raise BadInput("--shape gives an input two shapes; bench alone takes several")
    keeps = _keeping_folder(command, typed)
    with ExitStack() as stack:
        copies: list[Copy] = []

        def copied(path: Path) -> list[Path]:
            made = [stack.enter_context(_copy(path, one, groups, keeps)) for one in groups]
            copies.extend(made)
            return [one.path for one in made]

        _put(typed, copied)
        rename = _renamer(copies)
        try:
            yield rename
        except LitesmithError as error:
            error.args = tuple(map(rename, error.args))
            raise


def _unchanged(value: T) -> T:
    return value


def _groups(texts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The shapes of one copy each: a name that comes again begins another."""
    group: dict[str, str] = {}
    for text in texts:
        name, _ = split_shape(text)
        if name in group:
            yield tuple(group.values())
            group = {}
        group[name] = text
    if group:
        yield tuple(group.values())


def _put(typed: Typed, copied: Callable[[Path], list[Path]]) -> None:
    named = [name for name in _ONE if typed.get(name) is not None]
    if not named and not typed.get(_MANY):
        raise BadInput("--shape is for a model; give one")
    for name in named:
        typed[name] = copied(typed[name])[0]
    if _MANY in typed:
        typed[_MANY] = [copy for path in typed[_MANY] for copy in copied(path)]


def _keeping_folder(command: str, typed: Typed) -> Path | None:
    """Where copies stay, because records name them; None where they can go."""
    if command == "tune":
        return Path(typed["out"]).parent if "out" in typed else typed["model"].parent
    records = [typed[name] for name in ("log", "csv", "out") if name in typed]
    return Path(records[0]).parent if command == "bench" and records else None


@contextmanager
def _copy(
    path: Path, shape: tuple[str, ...], groups: Sequence[object], keeps: Path | None
) -> Generator[Copy]:
    sizes = [split_shape(text)[1] for text in shape]
    content = to_bytes(litesmith.resize(path, shape))
    options = " ".join(f"--shape {quote(text)}" for text in shape)
    typed = f"{quote(str(path))} {options}"
    if keeps is not None:
        marked = "-".join("x".join(map(str, one)) for one in sizes)
        kept = _kept(keeps / f"{path.stem}-{marked}{path.suffix}", content)
        say("note", phrase("{kept} is {path} in this shape; records name it", kept, path))
        yield Copy(kept, str(kept), str(kept))
        return
    listed = " ".join(",".join(map(str, one)) for one in sizes)
    name = f"{path} {listed}" if len(groups) > 1 else str(path)
    with temporary_file(content, path.name) as place:
        yield Copy(place, name, typed)


def _kept(place: Path, content: bytes) -> Path:
    """The file of a copy that stays; another file of that name is left alone."""
    if place.is_file() and place.read_bytes() != content:
        raise BadInput("{place} is another model; move it away, or give another -o", place)
    if not place.is_file():
        litesmith.save(litesmith.load(content), place)
    return place


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
