"""Boxes, masks and key points as data sets store them: COCO's JSON, Pascal VOC's XML, YOLO's
text.
"""

import json
import mmap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from litesmith.errors import BadInput, os_reason
from litesmith.operating_system import find_files, is_there
from litesmith.phrases import phrase
from litesmith.tasks.outlines import numbers
from litesmith.type_guards import is_list_or_tuple, is_mapping
from litesmith.units import plain, total_text

IMAGE_ENDINGS = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".webp")

# How an object counts for a detector: it must be found, it is ignored, or it is a crowd, in which
# any number of boxes is right.
WANTED, IGNORED, CROWD = 0, 1, 2

# The largest annotation file that is read.
_MOST_BYTES = 1_000_000_000


class Thing(NamedTuple):
    """An object in an image.

    name    the name of its class
    box     left, top, right, bottom in shares of the image
    state   WANTED, IGNORED or CROWD
    points  key points (n, 3): across, down in shares, and 0 for unknown, 1 hidden, 2 visible
    area    the share of the image that it covers
    aspect  the width of the image divided by its height
    outline its outline as COCO stores it; None where there is none
    image   width and height of the image, in whose pixels the outline is given
    """

    name: str
    box: tuple[float, float, float, float]
    state: int = WANTED
    points: NDArray[np.float64] | None = None
    area: float = 0.0
    aspect: float = 1.0
    outline: object = None
    image: tuple[int, int] = (1, 1)


@dataclass(frozen=True, eq=False)
class Annotated:
    """Images with the objects in them.

    files    the files of the images
    things   the objects in each image
    classes  the names of all classes, in the order of the source
    numbers  the source's own number for each class
    notes    what was wrong and therefore left out, one sentence each
    sizes    width and height of each image, where the source states them
    """

    files: tuple[Path, ...]
    things: tuple[tuple[Thing, ...], ...]
    classes: tuple[str, ...]
    numbers: tuple[int, ...]
    notes: tuple[str, ...] = ()
    sizes: tuple[tuple[int, int], ...] = ()


Reader = Callable[[Path], Annotated]


def find_annotations(source: Path) -> tuple[Reader, Path] | None:
    """Finds the reader for the annotations at a path, and their file; None where there are none."""
    if source.is_file():
        return (read_coco, source) if source.suffix.lower() == ".json" else None
    places = (source, source / "annotations")
    found = [path for place in places for path in find_files(place, "*.json") if _is_coco(path)]
    if len(found) > 1:
        raise BadInput(
            "{source}: has {count} files of annotations ({first}, {second} …); give the one that "
            "is meant",
            plain(str(source)),
            len(found),
            found[0].name,
            found[1].name,
        )
    if found:
        return read_coco, found[0]
    if find_files(source / "Annotations", "*.xml") or find_files(source, "*.xml"):
        return read_voc, source
    if find_files(source / "labels", "*.txt"):
        return read_yolo, source
    return None


def _is_coco(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            head = file.read(1 << 16)
    except OSError:
        return False
    return b'"images"' in head or b'"annotations"' in head or b'"categories"' in head


def mentions(path: Path, word: bytes) -> bool:
    """Whether a file contains a word, without reading the file into memory."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as held:
            return held.find(word) >= 0
    except (OSError, ValueError):  # an empty file cannot be mapped
        return False


class _Problems:
    """Problems in annotations, counted by kind, with the first of each."""

    def __init__(self) -> None:
        self._found: dict[str, list[str]] = {}

    def add(self, what: str, where: str) -> None:
        self._found.setdefault(what, []).append(where)

    def notes(self) -> tuple[str, ...]:
        return tuple(
            phrase(
                "{what}: {count}, first {where}", what, total_text(len(places)), plain(places[0])
            )
            for what, places in self._found.items()
        )


def _refuse_large(path: Path) -> None:
    if path.stat().st_size > _MOST_BYTES:
        raise BadInput("{path}: over 1 GB is too much for annotations", plain(str(path)))


def read_json(path: Path) -> object:
    """The content of a JSON file; raises one line where it is not JSON."""
    try:
        _refuse_large(path)
        return json.loads(path.read_bytes())
    except OSError as error:
        raise BadInput(
            "{path}: cannot be read ({reason})", plain(str(path)), os_reason(error)
        ) from None
    except (ValueError, RecursionError) as error:
        raise BadInput("{path}: not JSON ({error})", plain(str(path)), error) from None


# COCO.


def read_coco(path: Path) -> Annotated:
    """`instances.json`, `person_keypoints.json` and the like; images lie beside it or in a folder
    near it."""
    content = read_json(path)
    if not is_mapping(content) or not {"images", "annotations", "categories"} <= {*content}:
        raise BadInput(
            "{path}: no annotations of COCO, which have images, annotations and categories",
            plain(str(path)),
        )
    wrong = _Problems()
    names = {
        _number(c, "id", path): str(c.get("name", ""))
        for c in _rows_of(content, "categories", path)
    }
    images = {_number(i, "id", path): i for i in _rows_of(content, "images", path)}
    things: dict[int, list[Thing]] = {number: [] for number in images}
    for number, one in enumerate(_rows_of(content, "annotations", path)):
        where = phrase("annotation {number}", one.get("id", number))
        image = images.get(_number(one, "image_id", path))
        name = names.get(_number(one, "category_id", path))
        if image is None or name is None:
            wrong.add(phrase("annotations of unknown images or classes"), where)
            continue
        size = _number(image, "width", path), _number(image, "height", path)
        if not _is_size(size):
            raise BadInput("{path}: image {id} has no size", plain(str(path)), image.get("id"))
        thing = _coco_thing(one, name, size, wrong, where)
        if thing is not None:
            things[_number(one, "image_id", path)].append(thing)
    look = _finder(path)
    kept: dict[int, Path] = {}
    for number, image in images.items():
        name = str(image.get("file_name", ""))
        file = look(name)
        if file is None:
            wrong.add(phrase("images that are not there"), name)
        else:
            kept[number] = file
    return _refuse_empty(
        Annotated(
            tuple(kept.values()),
            tuple(tuple(things[number]) for number in kept),
            tuple(names.values()),
            tuple(names),
            wrong.notes(),
            tuple(_stated_size(images[number]) for number in kept),
        ),
        path,
    )


def _is_size(size: tuple[float, ...]) -> bool:
    """True for a usable width and height; False for anything that is not a finite number."""
    return all(1 <= side <= _LONGEST for side in size)


def _stated_size(image: Mapping[object, object]) -> tuple[int, int]:
    width, height = image.get("width"), image.get("height")
    if isinstance(width, int) and isinstance(height, int) and _is_size((width, height)):
        return width, height
    return 0, 0


def _coco_thing(
    one: Mapping[object, object], name: str, size: tuple[int, int], wrong: _Problems, where: str
) -> Thing | None:
    box = numbers(one.get("bbox"))
    if len(box) != 4:
        wrong.add(phrase("annotations without a box of four numbers"), where)
        return None
    left, top, width, height = box
    found = _clip_to_image((left, top, left + width, top + height), size, wrong, where)
    if found is None:
        return None
    given = np.array(numbers(one.get("keypoints")), np.float64)
    points = given.reshape(-1, 3) / (*size, 1) if given.size and given.size % 3 == 0 else None
    state = CROWD if one.get("iscrowd") else WANTED
    if points is not None and state == WANTED and not (points[:, 2] > 0).any():
        state = IGNORED
    whole = next(iter(numbers([one.get("area")])), width * height)
    share = whole / (size[0] * size[1])
    shape = one.get("segmentation")
    return Thing(name, found, state, points, share, size[0] / size[1], shape, size)


def _clip_to_image(
    box: tuple[float, float, float, float], size: tuple[float, float], wrong: _Problems, where: str
) -> tuple[float, float, float, float] | None:
    """The box in shares of the image; None where no part of it is inside."""
    if not np.isfinite(box).all() or box[2] < box[0] or box[3] < box[1]:
        wrong.add(phrase("boxes without extent"), where)
        return None
    left, top, right, bottom = (side / size[place % 2] for place, side in enumerate(box))
    if left >= 1 or top >= 1 or right <= 0 or bottom <= 0:
        wrong.add(phrase("boxes outside their image"), where)
        return None
    if left < -_NEAR or top < -_NEAR or right > 1 + _NEAR or bottom > 1 + _NEAR:
        wrong.add(phrase("boxes that reach beyond their image"), where)
    return left, top, right, bottom


# A box may reach beyond its image by this share, which is rounding.
_NEAR = 0.01
# Pixels of the longest side of an image.
_LONGEST = 1 << 24


def _rows_of(
    content: Mapping[object, object], key: str, path: Path
) -> Iterator[Mapping[object, object]]:
    rows = content[key]
    if not is_list_or_tuple(rows) or not all(map(is_mapping, rows)):
        raise BadInput("{path}: {key} is no list of objects", plain(str(path)), key)
    for row in rows:
        if is_mapping(row):
            yield row


def _number(row: Mapping[object, object], key: str, path: Path) -> int:
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadInput(
            "{path}: {key} is {value!r} where a whole number is needed",
            plain(str(path)),
            key,
            value,
        )
    return value


def _finder(path: Path) -> Callable[[str], Path | None]:
    """Finds images by the names in annotations: beside them, or in a nearby folder."""
    near = [path.parent, path.parent.parent]
    folders = [*near, *(p for place in near for p in sorted(place.iterdir()) if p.is_dir())]

    def look(name: str) -> Path | None:
        if not name or Path(name).is_absolute() or ".." in Path(name).parts:
            return None
        return next((f / name for f in folders if is_there(f / name)), None)

    return look


def _refuse_empty(found: Annotated, path: Path) -> Annotated:
    if not found.files:
        more = f" ({found.notes[0]})" if found.notes else ""
        raise BadInput("{path}: none of its images is there{more}", plain(str(path)), more)
    if not any(found.things):
        raise BadInput("{path}: there is nothing to find in its images", plain(str(path)))
    return found


# Pascal VOC.


def read_voc(folder: Path) -> Annotated:
    """A folder with `Annotations` and `JPEGImages`, or with XML beside images."""
    inner = folder / "Annotations"
    files = find_files(inner if inner.is_dir() else folder, "*.xml")
    wrong, kept, things = _Problems(), list[Path](), list[tuple[Thing, ...]]()
    sizes: list[tuple[int, int]] = []
    for file in files:
        tree = _xml(file)
        name = (tree.findtext("filename") or "").strip()
        image = _beside(folder, name or file.stem, file.stem)
        if image is None:
            wrong.add(phrase("images that are not there"), name or file.stem)
            continue
        size = tuple(_text_number(tree, f"size/{side}", file) for side in ("width", "height"))
        if not _is_size(size):
            raise BadInput("{file}: its image has no size", plain(str(file)))
        found = (_voc_thing(one, (size[0], size[1]), wrong, file) for one in tree.iter("object"))
        kept.append(image)
        sizes.append((int(size[0]), int(size[1])))
        things.append(tuple(thing for thing in found if thing is not None))
    names = tuple(sorted({thing.name for some in things for thing in some}))
    numbers, notes = tuple(range(len(names))), wrong.notes()
    made = Annotated(tuple(kept), tuple(things), names, numbers, notes, tuple(sizes))
    return _refuse_empty(made, folder)


def _xml(path: Path) -> ElementTree.Element:
    try:
        _refuse_large(path)
        parser = ElementTree.XMLParser(target=_NoEntities(path))
        return ElementTree.fromstring(path.read_bytes(), parser)
    except OSError as error:
        raise BadInput(
            "{path}: cannot be read ({reason})", plain(str(path)), os_reason(error)
        ) from None
    except (ElementTree.ParseError, ValueError, LookupError, RecursionError) as error:
        raise BadInput("{path}: not XML ({error})", plain(str(path)), error) from None


class _NoEntities:
    """Builds a tree, up to where entities could be declared: one may stand for gigabytes. The
    parser knows the place in every encoding."""

    def __init__(self, path: Path) -> None:
        tree = ElementTree.TreeBuilder()
        self._path = path
        self.start, self.end, self.data, self.close = tree.start, tree.end, tree.data, tree.close

    def doctype(self, *_: object) -> None:
        raise BadInput("{path}: annotations declare no entities", plain(str(self._path)))


def _voc_thing(
    one: ElementTree.Element, size: tuple[float, float], wrong: _Problems, file: Path
) -> Thing | None:
    sides = ("xmin", "ymin", "xmax", "ymax")
    left, top, right, bottom = (_text_number(one, f"bndbox/{side}", file) for side in sides)
    # counted from 1
    box = _clip_to_image((left - 1, top - 1, right, bottom), size, wrong, file.name)
    name = (one.findtext("name") or "").strip()
    is_hard = (one.findtext("difficult") or "0").strip() == "1"
    if box is None:
        return None
    area = (box[2] - box[0]) * (box[3] - box[1])
    return Thing(name, box, IGNORED if is_hard else WANTED, area=area)


def _text_number(tree: ElementTree.Element, where: str, file: Path) -> float:
    text = tree.findtext(where)
    try:
        return float(text or "")
    except ValueError:
        raise BadInput(
            "{file}: {where} is {text!r} where a number is needed", plain(str(file)), where, text
        ) from None


def _beside(folder: Path, *names: str) -> Path | None:
    """The image of one of these names, with or without its ending."""
    places = [folder / "JPEGImages", folder / "images", folder]
    for name in names:
        if ".." in Path(name).parts or Path(name).is_absolute():
            continue
        for place in places:
            files = [place / name, *(place / f"{name}{end}" for end in IMAGE_ENDINGS)]
            found = next(
                (f for f in files if is_there(f) and f.suffix.lower() in IMAGE_ENDINGS), None
            )
            if found is not None:
                return found
    return None


# YOLO.


def read_yolo(folder: Path) -> Annotated:
    """A folder with `images` and `labels`; a line is a class and a box by centre and size."""
    names = _yolo_names(folder)
    inner = folder / "images"
    place = inner if inner.is_dir() else folder
    files = sorted(p for p in place.iterdir() if p.suffix.lower() in IMAGE_ENDINGS and p.is_file())
    wrong, things = _Problems(), list[tuple[Thing, ...]]()
    for file in files:
        label = folder / "labels" / f"{file.stem}.txt"
        lines = label.read_text("utf-8", "replace").splitlines() if label.is_file() else []
        found = [_yolo_thing(line.split(), names, label, wrong) for line in lines if line.strip()]
        things.append(tuple(thing for thing in found if thing is not None))
    used = {thing.name for some in things for thing in some}
    listed = names or tuple(sorted(used, key=lambda name: int(name) if name.isdecimal() else 0))
    made = Annotated(tuple(files), tuple(things), listed, tuple(range(len(listed))), wrong.notes())
    return _refuse_empty(made, folder)


def _yolo_thing(
    words: Sequence[str], names: Sequence[str], file: Path, wrong: _Problems
) -> Thing | None:
    try:
        number, (across, down, wide, high) = int(words[0]), map(float, words[1:5])
    except (ValueError, IndexError):
        raise BadInput(
            "{file}: a line is `class centre-x centre-y width height`, not {line!r}",
            plain(str(file)),
            plain(" ".join(words)[:60]),
        ) from None
    if number < 0 or (names and number >= len(names)):
        wrong.add(phrase("boxes of classes that are not listed"), f"{file.name}: {number}")
        return None
    sides = (across - wide / 2, down - high / 2, across + wide / 2, down + high / 2)
    box = _clip_to_image(sides, (1.0, 1.0), wrong, file.name)
    if box is None:
        return None
    return Thing(names[number] if names else str(number), box, area=wide * high)


def _yolo_names(folder: Path) -> tuple[str, ...]:
    """The classes by number: from a list, or from the `names` of `data.yaml`."""
    for name in ("classes.txt", "obj.names", "labels.txt"):
        if (folder / name).is_file():
            lines = (folder / name).read_text("utf-8", "replace").splitlines()
            return tuple(line.strip() for line in lines if line.strip())
    for file in find_files(folder, "*.yaml"):
        found = _yaml_names(file.read_text("utf-8", "replace"))
        if found:
            return found
    return ()


def _yaml_names(text: str) -> tuple[str, ...]:
    """The list under `names:` in either form that YOLO writes: [a, b], or one per line."""
    lines = text.splitlines()
    start = next((n for n, line in enumerate(lines) if line.startswith("names:")), None)
    if start is None:
        return ()
    first = lines[start].partition(":")[2].strip()
    if first.startswith("["):
        inner = first.strip("[]")
        return tuple(part.strip().strip("'\"") for part in inner.split(",") if part.strip())
    found: list[str] = []
    for line in lines[start + 1 :]:
        if line and not line[0].isspace() and not line.startswith("-"):
            break
        word = line.strip().lstrip("-").strip()
        key, colon, value = word.partition(":")
        found.append((value if colon and key.strip().isdecimal() else word).strip().strip("'\""))
    return tuple(name for name in found if name)
