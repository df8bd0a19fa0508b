"""Image files: finding, decoding, cropping; several at a time, in order."""

import io
import os
import re
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, NamedTuple, TypeVar

import numpy as np
from PIL import Image, UnidentifiedImageError

from litesmith.data.preparation import LETTERBOX, Preparation
from litesmith.errors import BadInput, os_reason
from litesmith.ir.types import Array, Tensor
from litesmith.phrases import phrase
from litesmith.tasks.image_files import UNREADABLE, open_image
from litesmith.units import plain

Size = tuple[int, int]  # width and height
Box = tuple[float, float, float, float]  # left, top, right, bottom in shares

T = TypeVar("T")
U = TypeVar("U")

ENDINGS = frozenset(
    (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
)
_FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}
_MOST_WORKERS = 8
_AHEAD = 4  # results that each worker may be ahead

# An image narrower than this ratio would fill the memory when stretched to the width of an input.
_NARROWEST = 1000

# The turn that makes an image upright, by the number in its EXIF data.
_ORIENTATION, _EXIF, _MOST_HEADER = 0x0112, b"Exif\0\0", 1 << 17
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_SIDEWAYS = frozenset(_TURNS[number] for number in (5, 6, 7, 8))

# The grey around a letterboxed image, as in the training of detectors.
_GREY = 114

# A JPEG ends with the marker FFD9; in the data of a single scan, FF is followed only by 00 or by a
# restart marker, D0 to D7.
_JPEG_END = b"\xff\xd9"
_JPEG_STRANGE = re.compile(rb"\xff[^\x00\xd0-\xd7]")


class Picture(NamedTuple):
    """The form in which an input takes an image. A size of 0 is free: the image keeps its own."""

    height: int
    width: int
    channels: int
    channel_axis: int  # counted from the end; 0 where the input has no axis for channels

    def arrange_axes(self, pixels: Array) -> Array:
        """An image of shape (height, width, channels) in the axis order of the input."""
        if self.channel_axis == 0:
            return pixels[..., 0]
        return pixels if self.channel_axis == -1 else pixels.transpose(2, 0, 1)


def picture(tensor: Tensor) -> Picture | None:
    """The form in which an input takes images; None where its shape is not that of an image."""
    shape = _with_free(tensor)
    if len(shape) == 4 and shape[3] in (1, 3):
        return Picture(shape[1], shape[2], shape[3], -1)
    if len(shape) == 4 and shape[1] in (1, 3):
        return Picture(shape[2], shape[3], shape[1], -3)
    if len(shape) == 3 and shape[2] in (1, 3) and min(shape[:2]) != 1:
        return Picture(*shape, -1)
    if len(shape) == 3 and shape[0] == 1 and min(shape[1:]) != 1:
        return Picture(shape[1], shape[2], 1, 0)
    return None


def channel_axis(tensor: Tensor) -> int:
    """The axis of an input's channels, counted from the end; the last where the input is no
    image."""
    wanted = picture(tensor)
    return -1 if wanted is None else wanted.channel_axis or -1


def _with_free(tensor: Tensor) -> tuple[int, ...]:
    """The shape with 0 for free dimensions; a size beside a free mark is only a recommendation."""
    marks = tensor.dynamic or tensor.shape
    return tuple(0 if m == -1 and d <= 1 else d for d, m in zip(tensor.shape, marks, strict=False))


def files_in(folder: Path, endings: Collection[str] = ENDINGS) -> list[Path]:
    """The files of some kind directly in a folder, sorted by name; hidden files are skipped."""
    with os.scandir(folder) as entries:
        names = [e.name for e in entries if not e.name.startswith(".") and e.is_file()]
    return [folder / n for n in sorted(names) if os.path.splitext(n)[1].lower() in endings]


def files_below(folder: Path, endings: Collection[str] = ENDINGS) -> list[Path]:
    """The files of some kind in a folder and in its subfolders."""
    inside = sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    below = [file for place in inside for file in files_below(place, endings)]
    return [*files_in(folder, endings), *below]


def decode(
    path: Path, wanted: Picture, preparation: Preparation, stated: Size | None = None
) -> Array:
    """Decodes an image file to uint8 pixels in the input's size and order, without a batch
    dimension."""
    return decode_bytes(path, str(path), wanted, preparation, stated)


def decode_bytes(
    content: Path | bytes,
    name: str,
    wanted: Picture,
    preparation: Preparation,
    stated: Size | None = None,
) -> Array:
    """Decodes an image from a path or from bytes; messages use its name. `stated` is the width and
    height that annotations give it."""
    try:
        held = content.read_bytes() if isinstance(content, Path) else content
        with _opened(io.BytesIO(held)) as opened:
            upright = _eight_bits(_upright(opened, stated))
            image = upright.convert("L" if wanted.channels == 1 else "RGB")
    except UNREADABLE as error:
        raise BadInput(
            "{name}: not a readable image ({reason}); repair it or take it away",
            plain(name),
            _reason(error),
        ) from None
    sized = _resize_and_crop(image, wanted, preparation)
    pixels = np.asarray(sized, np.uint8).reshape(sized.height, sized.width, wanted.channels)
    return wanted.arrange_axes(pixels)


@dataclass(frozen=True, eq=False)
class ResizedImages:
    """Images of an array in the size, channels and order that an input takes, converted when read;
    `items` are the originals, (items, height, width, channels)."""

    items: Array
    wanted: Picture
    preparation: Preparation

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Array:
        pixels = _in_channels(self.items[index], self.wanted.channels)
        planes = [
            np.asarray(
                _resize_and_crop(_plane(pixels[..., channel]), self.wanted, self.preparation)
            )
            for channel in range(pixels.shape[2])
        ]
        made = np.stack(planes, axis=-1)
        whole = np.rint(made) if self.items.dtype.kind in "iu" else made
        return self.wanted.arrange_axes(whole.astype(self.items.dtype))


def as_images(array: Array) -> Array | None:
    """An array of images as (items, height, width, channels); None where the array holds no
    images."""
    if array.dtype.kind not in "iuf" or not array.size or array.ndim not in (3, 4):
        return None
    if array.ndim == 3:  # grey, or one image with its channels
        return array[None] if array.shape[2] in (1, 3) else array[..., None]
    if array.shape[3] in (1, 3):
        return array
    return array.transpose(0, 2, 3, 1) if array.shape[1] in (1, 3) else None


def _plane(values: Array) -> Image.Image:
    """One channel in Pillow's form: bytes, or float32 for all other numbers."""
    is_byte = values.dtype == np.uint8
    return Image.fromarray(np.ascontiguousarray(values if is_byte else values.astype(np.float32)))


def _in_channels(pixels: Array, channels: int) -> Array:
    """Converts channels: grey is repeated three times, colours become grey with Pillow's
    weights."""
    if pixels.shape[2] == channels:
        return pixels
    if pixels.shape[2] == 1:
        return np.repeat(pixels, channels, axis=2)
    grey = pixels.astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32)
    return (np.rint(grey) if pixels.dtype.kind in "iu" else grey).astype(pixels.dtype)[..., None]


def image_fault(path: Path) -> str:
    """Why an image file cannot be read, in a few words; "" where it can.

    Decoding every image would double the time that data takes. A JPEG or PNG whose parts are all in
    place counts as sound, a check that costs a tenth of the decoding; any other file is decoded.
    """
    try:
        content = path.read_bytes()
        if not content:
            return "empty"
        stream = io.BytesIO(content)
        with _opened(stream) as image:
            if not _is_whole(image, content, stream.tell()):
                image.load()
    except UNREADABLE as error:
        return _reason(error)
    return ""


def _opened(stream: IO[bytes]) -> Image.Image:
    """Opens an image, reads its header, and checks its size."""
    image = open_image(stream)
    short, long = sorted(image.size)
    if long > _NARROWEST * short:
        raise ValueError(phrase("{width}×{height} pixels", image.width, image.height))
    return image


def _is_whole(image: Image.Image, content: bytes, start: int) -> bool:
    """True where the parts of a file, whose pixels begin at `start`, are seen to be in place."""
    if image.format == "PNG":
        image.verify()  # every part has a checksum
        return True
    if image.format != "JPEG" or not content.endswith(_JPEG_END):
        return False
    return _JPEG_STRANGE.search(content, start, len(content) - len(_JPEG_END)) is None


def _reason(error: Exception) -> str:
    """What is wrong with an image file, in a few words."""
    if isinstance(error, UnidentifiedImageError):
        return phrase("no image")
    if isinstance(error, Image.DecompressionBombError):
        return phrase("far too large")
    text = str(error).split("\n")[0].partition(" <_io")[0]
    if "truncated" in text.lower():
        return "truncated"
    if isinstance(error, OSError) and error.strerror:
        return os_reason(error)
    return plain(text) or type(error).__name__


def turn_mark(content: bytes, stated: Size | None = None) -> bytes:
    """A mark for the digest of an image file that its EXIF data turns, since its pixels alone
    describe another image. Empty for other files.
    """
    if _EXIF not in content[:_MOST_HEADER]:
        return b""
    try:
        with _opened(io.BytesIO(content)) as image:
            return b"" if _turn(image, stated) is None else b"upright "
    except UNREADABLE:
        return b""


def _upright(image: Image.Image, stated: Size | None = None) -> Image.Image:
    """Turns an image upright, by the camera's orientation in its EXIF data."""
    turn = _turn(image, stated)
    return image if turn is None else image.transpose(turn)


def _turn(image: Image.Image, stated: Size | None = None) -> Image.Transpose | None:
    """How to turn an image upright; None where annotations state the size of the unturned image,
    because they were made without the EXIF data.
    """
    try:
        turn = _TURNS.get(image.getexif().get(_ORIENTATION, 1))
    except UNREADABLE:  # damaged EXIF data is ignored
        return None
    is_as_stated = turn in _SIDEWAYS and image.size == stated != image.size[::-1]
    return None if is_as_stated else turn


def _eight_bits(image: Image.Image) -> Image.Image:
    """Reduces 16-bit grey to its upper byte; Pillow would clip it to 255."""
    if image.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    return image


def _resize_and_crop(image: Image.Image, wanted: Picture, preparation: Preparation) -> Image.Image:
    """Resizes so that the crop covers the input's size, then crops the centre."""
    width, height = wanted.width or image.width, wanted.height or image.height
    if preparation.resize == LETTERBOX:
        return _letterbox(image, (width, height))
    method = _FILTERS[preparation.resize or "bilinear"]
    if not wanted.width or not wanted.height:
        return image.resize((width, height), method)
    if preparation.crop == 0:
        return image.resize((width, height), method)
    factor = max(width / image.width, height / image.height) / preparation.crop
    whole = max(width, round(image.width * factor)), max(height, round(image.height * factor))
    larger = image if whole == image.size else image.resize(whole, method)
    left, top = (whole[0] - width) // 2, (whole[1] - height) // 2
    return larger.crop((left, top, left + width, top + height))


def _letterbox(image: Image.Image, size: Size) -> Image.Image:
    """Places the whole image, in its own shape, in the middle of an even grey."""
    left, top, right, bottom = _middle(image.size, size)
    grey = 0 if image.mode == "F" else _GREY  # the range of other numbers is not known
    bands = image.getbands()
    made = Image.new(image.mode, size, (grey,) * len(bands) if len(bands) > 1 else grey)
    made.paste(image.resize((right - left, bottom - top), Image.Resampling.BILINEAR), (left, top))
    return made


def _middle(image: Size, size: Size) -> tuple[int, int, int, int]:
    """The rectangle that the image takes in a letterbox."""
    factor = min(size[0] / image[0], size[1] / image[1])
    width, height = (max(1, round(side * factor)) for side in image)
    left, top = (size[0] - width) // 2, (size[1] - height) // 2
    return left, top, left + width, top + height


def letterbox_place(path: Path, wanted: Picture, stated: Size | None) -> Box:
    """The part of an input that a letterbox gives to the image."""
    try:
        with path.open("rb") as file, _opened(file) as image:
            width, height = image.size
            size = (height, width) if _turn(image, stated) in _SIDEWAYS else (width, height)
    except UNREADABLE:  # the error comes when the file is decoded
        return 0.0, 0.0, 1.0, 1.0
    width, height = wanted.width or size[0], wanted.height or size[1]
    left, top, right, bottom = _middle(size, (width, height))
    return left / width, top / height, right / width, bottom / height


def in_parallel(work: Callable[[T], U], items: Sequence[T]) -> Iterator[U]:
    """Yields the results in order, while threads work a bounded number of items ahead."""
    workers = min(_MOST_WORKERS, os.cpu_count() or 1, max(1, len(items)))
    left = iter(items)
    waiting: deque[Future[U]] = deque()
    pool = ThreadPoolExecutor(workers)
    try:
        waiting.extend(pool.submit(work, item) for item in islice(left, workers * _AHEAD))
        while waiting:
            done = waiting.popleft().result()
            waiting.extend(pool.submit(work, item) for item in islice(left, 1))
            yield done
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
