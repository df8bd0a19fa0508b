"""`--shape`: a command gets copies of its models in other sizes, and its output names the typed
models.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import litesmith
from litesmith.cli.options.declare import Typed
from litesmith.cli.text.message import say
from litesmith.errors import BadInput
from litesmith.front.resized_copies import Copy, Rename, renaming, say_unchanged, temporary_copy
from litesmith.passes.tidy.resize import split_shape
from litesmith.phrases import phrase
from litesmith.tflite.write import to_bytes

# The arguments of commands that name models.
_ONE, _MANY = ("model", "a", "b", "against", "reference"), "models"


@contextmanager
def in_typed_shapes(command: str, typed: Typed) -> Generator[Rename]:
    """Replaces the typed models by copies in the sizes of `--shape`; yields the function that
    replaces the copies' names in results by the typed ones.
    """
    groups = list(_groups(typed.pop("shape", ())))
    if not groups:
        yield say_unchanged
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
        yield stack.enter_context(renaming(copies))


def _groups(texts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Groups shapes by copy: a repeated input name begins another copy."""
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
    """The folder where copies stay because records name them; None where they can be removed."""
    if command == "tune":
        return Path(typed["out"]).parent if "out" in typed else typed["model"].parent
    records = [typed[name] for name in ("log", "csv", "out") if name in typed]
    return Path(records[0]).parent if command == "bench" and records else None


@contextmanager
def _copy(
    path: Path, shape: tuple[str, ...], groups: Sequence[object], keeps: Path | None
) -> Generator[Copy]:
    sizes = [split_shape(text)[1] for text in shape]
    if keeps is None:
        listed = " ".join(",".join(map(str, one)) for one in sizes)
        with temporary_copy(path, shape, f"{path} {listed}" if len(groups) > 1 else "") as copy:
            yield copy
        return
    marked = "-".join("x".join(map(str, one)) for one in sizes)
    content = to_bytes(litesmith.resize(path, shape))
    kept = _keep_copy(keeps / f"{path.stem}-{marked}{path.suffix}", content)
    say("note", phrase("{kept} is {path} in this shape; records name it", kept, path))
    yield Copy(kept, str(kept), str(kept))


def _keep_copy(place: Path, content: bytes) -> Path:
    """Writes a copy that stays; another file of that name is not overwritten."""
    # through a dangling link, the file would land elsewhere
    if not (place.exists() or place.is_symlink()):
        litesmith.save(litesmith.load(content), place)
    elif not place.is_file() or place.read_bytes() != content:
        raise BadInput("{place} is another model; move it away, or give another -o", place)
    return place
