"""How pixels become the inputs that a model was trained on: normalisation, size, labels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Annotated, TypedDict, Unpack

import numpy as np

from litesmith.arguments import argument
from litesmith.errors import BadInput
from litesmith.evidence.codec import Mark
from litesmith.ir.types import Array
from litesmith.phrases import phrase
from litesmith.tasks.user_task import accept_task
from litesmith.units import number_text


@dataclass(frozen=True)
class Norm:
    """x' = (x − mean) / std on pixels of 0 to 255; `reverse` where the model wants BGR."""

    mean: tuple[float, ...]
    std: tuple[float, ...]
    formula: str
    reverse: bool = False


_TORCH_MEAN, _TORCH_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

NORMS = {
    "caffe": Norm((103.939, 116.779, 123.68), (1.0,), "BGR − (103.939, 116.779, 123.68)", True),
    "raw": Norm((0.0,), (1.0,), "x"),
    "tf": Norm((127.5,), (127.5,), "(x − 127.5) / 127.5"),
    "torch": Norm(
        tuple(255 * m for m in _TORCH_MEAN),
        tuple(255 * s for s in _TORCH_STD),
        "(x / 255 − (0.485, 0.456, 0.406)) / (0.229, 0.224, 0.225)",
    ),
    "unit": Norm((0.0,), (255.0,), "x / 255"),
}

# The whole image with its aspect kept, padded with grey.
LETTERBOX = "letterbox"

RESIZES = ("bilinear", "bicubic", LETTERBOX)

MOST_RATE = 1_000_000


@dataclass(frozen=True)
class Preparation:
    """How data is prepared for a model; settings that are left out are chosen, with a note.

    mean, std     x' = (x − mean) / std on pixels of 0 to 255, one number or three each
    norm          the same by name; "" without mean and std: to be chosen
    resize        how images are resized; "" where there are none
    crop          the share of the short side that a central crop keeps; 0 squashes the image
    label_offset  the number to add to a label for the model's class; None: to be detected
    rate          audio samples per second for the model; 0: as the model says, or assumed
    group         what tells which items belong together, as `stated_groups` reads it; "": their
                  contents alone
    task          the model's task, by its name in the table of tasks; "": to be recognised
    decode        how to read outputs, where a task knows several ways; "": to be recognised
    class_names   a file with the model's classes, one per line; "": those in the model
    vocab         a file with the words that a text model knows; "": that in the model
    features      how sound becomes the model's input, as in logmel:80; "": by the input's shape
    """

    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    norm: str = ""
    resize: str = "bilinear"
    crop: float = 0.875
    label_offset: int | None = None
    rate: int = 0
    group: Annotated[str, Mark.OMITTED] = ""
    task: Annotated[str, Mark.OMITTED] = ""
    decode: Annotated[str, Mark.OMITTED] = ""
    class_names: Annotated[str, Mark.OMITTED] = ""
    vocab: Annotated[str, Mark.OMITTED] = ""
    features: Annotated[str, Mark.OMITTED] = ""

    def __post_init__(self) -> None:
        if self.norm and self.norm not in NORMS:
            raise BadInput(
                "no normalisation {norm!r}; there are {norms}", self.norm, ", ".join(NORMS)
            )
        if self.norm and (self.mean or self.std):
            raise BadInput("give a norm or mean and std, not both")
        for name, numbers in (("mean", self.mean), ("std", self.std)):
            if len(numbers) not in (0, 1, 3) or not all(map(isfinite, numbers)):
                raise BadInput("{name} {list}: give one number or three", name, _list_text(numbers))
        if 0 in self.std:
            raise BadInput("std 0: pixels are divided by it; give another number")
        if self.resize and self.resize not in RESIZES:
            raise BadInput(
                "no resize {resize!r}; there are {resizes}", self.resize, ", ".join(RESIZES)
            )
        if self.resize == LETTERBOX and self.crop:
            raise BadInput("a letterbox keeps all of an image; leave out {crop}", argument("crop"))
        if not 0 <= self.rate <= MOST_RATE:
            raise BadInput("rate {rate}: give samples a second, as in 16000", self.rate)
        if not 0 <= self.crop <= 1:
            raise BadInput(
                "crop {number}: give a share from 0 to 1, as in 0.875", number_text(self.crop)
            )

    @property
    def is_chosen(self) -> bool:
        """True where the normalisation is settled."""
        return bool(self.norm or self.mean or self.std)

    @property
    def text(self) -> str:
        """The settings in one line, for the evidence: `norm=tf resize=bilinear crop=0.875`."""
        parts = [f"norm={self.norm or 'none'}"]
        if self.mean or self.std:
            norm = self.as_norm()
            parts = [f"mean={_list_text(norm.mean)}", f"std={_list_text(norm.std)}"]
        if self.resize:
            parts += [f"resize={self.resize}", f"crop={number_text(self.crop)}"]
        if self.rate:
            parts.append(f"rate={self.rate}")
        if self.label_offset:
            parts.append(f"label_offset={self.label_offset}")
        for name, setting in (
            ("task", self.task),
            ("decode", self.decode),
            ("features", self.features),
        ):
            parts += [f"{name}={setting}"] if setting else []
        return " ".join(parts)

    def as_norm(self) -> Norm:
        """The normalisation as numbers; settings still open change nothing."""
        if self.norm:
            return NORMS[self.norm]
        mean, std = self.mean or (0.0,), self.std or (1.0,)
        shifted = phrase("(x − {list})", _list_text(mean)) if any(mean) else "x"
        return Norm(mean, std, f"{shifted} / {_list_text(std)}")


Numbers = float | Sequence[float] | str


UNTOUCHED = Preparation()


class Preparing(TypedDict, total=False):
    """A user's options for a preparation, one argument each; None where an option is not given.

    `mean` and `std` are numbers, or text as in 1,2,3.
    """

    mean: Numbers | None
    std: Numbers | None
    norm: str | None
    resize: str | None
    crop: float | None
    label_offset: int | None
    group: str | None
    task: str | object | None
    decode: str | None
    class_names: str | None
    vocab: str | None
    features: str | None


def read_preparation(
    base: Preparation = Preparation(),  # noqa: B008  a value that nothing changes
    **asked: Unpack[Preparing],
) -> Preparation:
    """Applies a user's settings on top of a base preparation."""
    given: dict[str, object] = {n: v for n, v in asked.items() if v is not None}
    if given.get("resize") == LETTERBOX:
        given = {"crop": 0.0} | given
    if "task" in given:
        given["task"] = accept_task(given["task"])
    numbers = {n: _read_numbers(n, asked.get(n)) for n in ("mean", "std") if n in given}
    return replace(base, **given | numbers)  # pyright: ignore[reportArgumentType]


def _read_numbers(name: str, given: Numbers | None) -> tuple[float, ...]:
    if given is None:
        return ()
    if isinstance(given, int | float):
        return (float(given),)
    try:
        return tuple(map(float, given.split(",") if isinstance(given, str) else given))
    except (TypeError, ValueError):
        raise BadInput(
            "{name}={given}: give one number or three, as in 127.5 or 1,2,3", name, given
        ) from None


def normalize(pixels: Array, norm: Norm, channel_axis: int) -> Array:
    """Pixels of any shape as float32 numbers for the model, the same shape."""
    if max(len(norm.mean), len(norm.std)) > 1 and pixels.shape[channel_axis] != 3:
        raise BadInput(
            "a normalisation for three channels, and data with {shape}; give one mean and one std",
            pixels.shape[channel_axis],
        )
    mean, std = (_along(v, pixels.ndim, channel_axis) for v in (norm.mean, norm.std))
    ordered = np.flip(pixels, channel_axis) if norm.reverse else pixels
    return ((ordered.astype(np.float32) - mean) / std).astype(np.float32)


def _along(numbers: Sequence[float], rank: int, axis: int) -> Array:
    values = np.asarray(numbers, np.float32)
    if values.size == 1:
        return values.reshape(())
    shape = [1] * rank
    shape[axis] = values.size
    return values.reshape(shape)


def _list_text(numbers: Sequence[float]) -> str:
    return ",".join(map(number_text, numbers))
