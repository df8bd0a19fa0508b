"""Names of networks as users type them: `mobilenet_v2:0.5@160/10` has width 0.5, 160 pixels, 10
classes; and the models that they stand for.
"""

import re
from dataclasses import dataclass, replace

from litesmith.errors import BadInput
from litesmith.ir.types import Model
from litesmith.networks.layer_builder import Net, no_fill, random_fill
from litesmith.networks.network_table import MEMBERS, Row
from litesmith.phrases import phrase
from litesmith.units import number_text

_TEXT = re.compile(r"([^:@/]*)(?::([^@/]*))?(?:@([^/]*))?(?:/(.*))?", re.DOTALL)

_WIDTHS = (0.1, 4.0)
_MOST_PIXELS, _MOST_CLASSES = 2048, 1_000_000


@dataclass(frozen=True)
class Spec:
    """One network of the catalogue at one size.

    classes   None for the row's default, or that of the loaded weights
    style     "tf" or "torch", see `Net`; "" for the row's default
    """

    name: str
    width: float
    resolution: int
    classes: int | None = None
    style: str = ""

    def __post_init__(self) -> None:
        row = _row(self.name)
        _refuse_width(self)
        _refuse_resolution(self, row)
        if self.classes is not None and not 1 <= self.classes <= _MOST_CLASSES:
            raise BadInput(
                "{name}: {classes} classes; give 1 to {most_classes}",
                self.name,
                self.classes,
                _MOST_CLASSES,
            )
        if self.style not in ("", "tf", "torch"):
            raise BadInput(
                "{name}: no style {style!r}; there are tf and torch", self.name, self.style
            )

    @property
    def row(self) -> Row:
        return MEMBERS[self.name]

    def __str__(self) -> str:
        """The text from which `parse` makes the same spec, except for the style."""
        width = (
            phrase(":{removesuffix}", repr(self.width).removesuffix(".0"))
            if self.width != self.row.width
            else ""
        )
        resolution = phrase("@{resolution}", self.resolution) if self.row.shape is None else ""
        classes = phrase("/{classes}", self.classes) if self.classes is not None else ""
        return f"{self.name}{width}{resolution}{classes}"


def is_name(text: str) -> bool:
    """True where a text names a network of the catalogue, even at an impossible size."""
    return not text.endswith(".tflite") and _split(text)[0] in MEMBERS


def parse(text: str, classes: int | None = None) -> Spec:
    """NAME[:WIDTH][@RESOLUTION][/CLASSES]; `classes` wins over the number in the text."""
    name, width, resolution, own = _split(text)
    row = _row(name)
    spec = Spec(
        name,
        row.width if width is None else _number(name, "width", width),
        row.resolution if resolution is None else _whole(name, "resolution", resolution),
        None if own is None else _whole(name, phrase("number of classes"), own),
    )
    return spec if classes is None else replace(spec, classes=classes)


def at_size(name: str, width: float, resolution: int) -> Spec:
    """The spec of a network at a size."""
    return Spec(name, width, resolution)


def _split(text: str) -> tuple[str, str | None, str | None, str | None]:
    found = _TEXT.fullmatch(text.strip())
    assert found is not None  # every part is checked later
    name, width, resolution, classes = found.groups()
    return name.lower().replace("-", "_"), width, resolution, classes


def _row(name: str) -> Row:
    if name not in MEMBERS:
        raise BadInput(
            "no network {name!r} in the catalogue; there are {members}", name, ", ".join(MEMBERS)
        )
    return MEMBERS[name]


def _number(name: str, what: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadInput("{name}: the {what} {what2!r} is no number", name, what, text) from None


def _whole(name: str, what: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise BadInput("{name}: the {what} {what2!r} is no whole number", name, what, text)
    return int(text)


def _refuse_width(spec: Spec) -> None:
    low, high = _WIDTHS
    if not low <= spec.width <= high:
        raise BadInput(
            "{name}: width {number} is outside {low} to {high:g}; channels are so many "
            "times the paper's, to multiples of 8",
            spec.name,
            number_text(spec.width),
            low,
            high,
        )


def _refuse_resolution(spec: Spec, row: Row) -> None:
    if row.shape is not None and spec.resolution != row.resolution:
        size = " × ".join(map(str, row.shape[:2]))
        raise BadInput(
            "{name}: its input is always {size} values; leave out @RESOLUTION", spec.name, size
        )
    if row.shape is None and not row.stride <= spec.resolution <= _MOST_PIXELS:
        raise BadInput(
            "{name}: {resolution} pixels are outside {stride} to {most_pixels}; {stride} of "
            "them make one feature",
            spec.name,
            spec.resolution,
            row.stride,
            _MOST_PIXELS,
        )


# The description of a built model, by which `resolve` recognises it.
_MADE_BY, _STYLE = "litesmith catalogue: ", ", padded as in "


def build(
    what: Spec | str, classes: int | None = None, seed: int | None = 0, *, style: str = ""
) -> Model:
    """A network in float32 with random weights, equal for equal seeds.

    `seed=None` leaves the weights zero, for when only the graph is needed. Tensors of interest are
    `embedding`, which the classifier reads, and `logits`. The output is `scores`, after a softmax,
    or in torch's style `logits`. `style` is "tf" or "torch", see `Net`.

    >>> model = build("mobilenet_v2:0.5@96", classes=5)
    >>> [(t.name, t.shape) for t in (*model.main.inputs, *model.main.outputs)]
    [('image', (1, 96, 96, 3)), ('scores', (1, 5))]
    """
    if seed is not None and seed < 0:
        raise BadInput("seed {seed}: give 0 or more", seed)
    spec = resolve(what, classes)
    row, style = spec.row, style or spec.style or spec.row.style
    net = Net(no_fill if seed is None else random_fill(seed), style)
    shape = row.shape or (spec.resolution, spec.resolution, 3)
    data = net.input("image" if row.shape is None else "mfcc", (1, *shape))
    model = net.end(row.make(net, data, spec.width), spec.classes or row.classes)
    return replace(model, description=f"{_MADE_BY}{spec}{_STYLE}{style}")


def resolve(what: Spec | str | Model, classes: int | None = None) -> Spec:
    """The spec that a text means, or that a model was built from here; `classes` wins over its
    number.
    """
    if isinstance(what, str):
        return parse(what, classes)
    spec = _read_description(what.description) if isinstance(what, Model) else what
    return spec if classes is None else replace(spec, classes=classes)


def _read_description(description: str) -> Spec:
    text, _, style = description.removeprefix(_MADE_BY).partition(_STYLE)
    if not description.startswith(_MADE_BY):
        raise BadInput("the model is not of the catalogue; give the name of one that is")
    return replace(parse(text), style=style)
