"""Networks of the catalogue as models."""

from dataclasses import replace

from litesmith.errors import BadInput
from litesmith.ir.types import Model
from litesmith.networks.layer_builder import Net, no_fill, random_fill
from litesmith.networks.spec import Spec, parse

# A model's description: by this it is known again.
_MADE_BY, _STYLE = "litesmith catalogue: ", ", padded as in "


def build(
    what: Spec | str, classes: int | None = None, seed: int | None = 0, *, style: str = ""
) -> Model:
    """A network in float32 with random weights, which are the same for the same seed.

    `seed=None` leaves the weights zero, for where only the graph is wanted. Tensors to look for:
    `embedding`, what the classifier reads, and `logits`. The end is `scores`, after softmax, or
    in the style of torch `logits`. A `style` is "tf" or "torch", see `Net`.

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
    """What is meant by a text, or by a model that was built here; `classes` wins over its own."""
    if isinstance(what, str):
        return parse(what, classes)
    spec = _read_description(what.description) if isinstance(what, Model) else what
    return spec if classes is None else replace(spec, classes=classes)


def _read_description(description: str) -> Spec:
    text, _, style = description.removeprefix(_MADE_BY).partition(_STYLE)
    if not description.startswith(_MADE_BY):
        raise BadInput("the model is not of the catalogue; give the name of one that is")
    return replace(parse(text), style=style)
