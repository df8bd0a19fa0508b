"""Which class of a model is which class of the data: by name, or by the lists that detectors are
usually trained on.
"""

from collections.abc import Sequence
from typing import NamedTuple

from litesmith.errors import BadInput
from litesmith.phrases import phrase
from litesmith.units import plain

# The classes of COCO by number, 1 to 90; numbers without images are empty.
COCO_90 = (
    *("person", "bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat"),
    *("traffic light", "fire hydrant", "", "stop sign", "parking meter", "bench", "bird", "cat"),
    *("dog", "horse", "sheep", "cow", "elephant", "bear", "zebra", "giraffe", "", "backpack"),
    *("umbrella", "", "", "handbag", "tie", "suitcase", "frisbee", "skis", "snowboard"),
    *("sports ball", "kite", "baseball bat", "baseball glove", "skateboard", "surfboard"),
    *("tennis racket", "bottle", "", "wine glass", "cup", "fork", "knife", "spoon", "bowl"),
    *("banana", "apple", "sandwich", "orange", "broccoli", "carrot", "hot dog", "pizza", "donut"),
    *("cake", "chair", "couch", "potted plant", "bed", "", "dining table", "", "", "toilet", ""),
    *("tv", "laptop", "mouse", "remote", "keyboard", "cell phone", "microwave", "oven"),
    *("toaster", "sink", "refrigerator", "", "book", "clock", "vase", "scissors", "teddy bear"),
    *("hair drier", "toothbrush"),
)
COCO_80 = tuple(name for name in COCO_90 if name)
VOC_20 = (
    *("aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
    *("diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa"),
    *("train", "tvmonitor"),
)
_LISTS = {
    20: ("Pascal VOC", VOC_20),
    21: ("Pascal VOC", ("background", *VOC_20)),
    80: ("COCO", COCO_80),
    90: ("COCO", COCO_90),
    91: ("COCO", ("", *COCO_90)),
}

# Classes with two names.
_SAME = {
    "aeroplane": "airplane",
    "diningtable": "dining table",
    "motorbike": "motorcycle",
    "pottedplant": "potted plant",
    "sofa": "couch",
    "tvmonitor": "tv",
}


class Matched(NamedTuple):
    """The model's class of each class of the data; None where it has no such class."""

    numbers: tuple[int | None, ...]
    notes: tuple[str, ...] = ()


def match_classes(names: Sequence[str], labels: Sequence[str], count: int, source: str) -> Matched:
    """Finds the model's class of each class of the data: by the model's labels, else by the list
    that models with this number of classes are usually trained on; in order where either has a
    single class or both have equally many.
    """
    known, notes = tuple(labels), ()
    if not known and len(names) == count == 1:
        return Matched((0,))
    if not known:
        title, known = _LISTS.get(count or 90, ("", ()))
        note = phrase(
            "the model names no classes: taken for the {count} of {title}; if that is "
            "wrong: --class-names",
            len(known),
            title,
        )
        notes = (note,) if known else ()
    places = {_key(name): place for place, name in reversed([*enumerate(known)]) if name}
    found = tuple(places.get(_key(name)) for name in names)
    if any(number is not None for number in found):
        return Matched(found, notes)
    if count == len(names) and not labels:
        note = phrase("classes are numbered in the order of the data: {name} is 0", names[0])
        return Matched(tuple(range(count)), (note,))
    raise BadInput(
        "{source}: none of its classes ({names}) is one of the model's ({known}); give the model's "
        "in a file, one a line, with {option}",
        source,
        _list_names(names),
        _list_names([name for name in known if name]) if known else str(count),
        "--class-names",
    )


def _list_names(names: Sequence[str]) -> str:
    more = ", …" if len(names) > 5 else ""
    return ", ".join(plain(name) for name in names[:5]) + more


def _key(name: str) -> str:
    plain_name = " ".join(name.casefold().replace("_", " ").replace("-", " ").split())
    joined = plain_name.replace(" ", "")
    return _SAME.get(joined, plain_name).replace(" ", "")
