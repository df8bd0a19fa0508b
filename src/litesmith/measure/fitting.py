"""What keeps a model from running wholly on an accelerator, and what would change that."""

from collections import Counter

from litesmith.errors import BadInput
from litesmith.ir.types import Model
from litesmith.measure.doctor import NOT_MEASURED, Diagnosis
from litesmith.passes.recipe import apply
from litesmith.run.delegates import BY_NAME
from litesmith.run.placement import Home, Placement

# What people call a family, and the member that stands for it.
_FAMILIES = {"ethos-u55": "ethos-u55-128", "ethos-u65": "ethos-u65-256", "ethos": "ethos-u55-128"}

# Targets that are not accelerators: they take every op.
_EVERYTHING = ("cpu", "numpy")

_MOST_NAMED = 8
_FREEZING = "cleanup | fold(shapes=true)"


def placed_on(model: Model, name: str) -> Placement:
    """What an accelerator makes of a model: by its compiler where that is installed."""
    name = _FAMILIES.get(name, name)
    known = [one for one in BY_NAME if one not in _EVERYTHING]
    if name not in known:
        raise BadInput(f"--for {name}: no such accelerator; there are {', '.join(known)}")
    delegate = BY_NAME[name]
    predicted = delegate.predict(model) if delegate.predict is not None else None
    if delegate.place is None or (predicted is not None and predicted.refused):
        assert predicted is not None
        return predicted
    return delegate.place(model)


def obstacles(model: Model, placement: Placement) -> list[Diagnosis]:
    """One finding for each reason why ops stay on the CPU; none where none does."""
    if placement.refused:
        way_out = str(placement.facts.get("way_out", ""))
        every = f"all {len(placement.homes)} ops"
        return [Diagnosis("the model is not taken", every, placement.refused, _costs(), way_out)]
    groups: dict[tuple[str, str], list[Home]] = {}
    for home in placement.homes:
        if not home.taken:
            groups.setdefault((home.kind, home.why), []).append(home)
    frozen = _left_when_frozen(model, placement.target) if groups else None
    found: list[Diagnosis] = []
    for (kind, why), homes in sorted(groups.items(), key=lambda pair: -len(pair[1])):
        helps = frozen is not None and frozen[kind] < len(homes)  # seen, not hoped for
        command = f'litesmith apply MODEL "{_FREEZING}" -o OUT.tflite' if helps else ""
        what = f"{len(homes)} {kind} on the CPU"
        found.append(Diagnosis(what, _where(homes), why, _costs(), command))
    return found


def _costs() -> str:
    return f"{NOT_MEASURED}: what the accelerator leaves, and each way there and back"


def _where(homes: list[Home]) -> str:
    named = ", ".join(f"op {home.place}" for home in homes[:_MOST_NAMED])
    return f"{named} and {len(homes) - _MOST_NAMED} more" if len(homes) > _MOST_NAMED else named


def _left_when_frozen(model: Model, target: str) -> Counter[str] | None:
    """The kinds that stay once free dimensions are taken as final; None where none is free."""
    tensors = (t for graph in model.graphs for t in graph.tensors)
    predict = BY_NAME[target].predict
    if predict is None or all(t.dynamic is None for t in tensors):
        return None
    frozen = predict(apply(model, _FREEZING).model)
    return Counter(home.kind for home in frozen.homes if not home.taken)
