"""The targets: what each needs of the machine and how it places a model, one row each."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from litesmith.errors import CannotRun
from litesmith.ir.types import Model
from litesmith.ops.registry import delegates, find_delegate
from litesmith.phrases import phrase
from litesmith.plugins import why_missing
from litesmith.run.accelerators import probes
from litesmith.run.accelerators.gpu import gpu_place
from litesmith.run.accelerators.hexagon import hexagon_place
from litesmith.run.accelerators.openvino import openvino_place
from litesmith.run.accelerators.probes import Usable as Usable
from litesmith.run.accelerators.tflite_micro import micro_place
from litesmith.run.accelerators.vela import ACCELERATORS, vela_place
from litesmith.run.core.placement import Placement
from litesmith.run.core.target import LITESMITH, Target
from litesmith.run.litert import delegated_ops as delegated
from litesmith.run.litert.own_kernels import find_own_kernels
from litesmith.run.rules.all_rules import RULES, place_by_rules

Place = Callable[[Model], Placement]


class Delegate(NamedTuple):
    """One target."""

    name: str
    title: str
    probe: Callable[[], Usable]
    place: Place | None  # by its compiler where that is installed; None where nothing is left out
    runs: bool  # True where a session can run on it
    predict: Place | None = None  # by rules alone, at once
    is_timed: bool = True  # False where a time here says nothing of the place it stands for


def _ruled(name: str, title: str, probe: Callable[[], Usable], *, runs: bool = False) -> Delegate:
    """A target known by rules alone."""
    place = partial(place_by_rules, name, RULES[name])
    return Delegate(name, title, probe, place, runs, place)


def _compiled(ruled: Delegate, compiler: Place) -> Delegate:
    """A target whose compiler, where installed, decides which ops it takes."""

    def place(model: Model) -> Placement:
        asked = compiler if ruled.probe().usable else ruled.predict
        return (asked or compiler)(model)

    return ruled._replace(place=place)


def _ethos(name: str) -> Delegate:
    _, family, macs = name.split("-")
    predict = partial(place_by_rules, name, RULES["ethos"])
    title = phrase("Arm Ethos-{family} with {macs} MACs", family.upper(), macs)
    ruled = Delegate(name, title, probes.vela, predict, False, predict)
    return _compiled(ruled, partial(vela_place, accelerator=name))


DELEGATES: tuple[Delegate, ...] = (
    Delegate("cpu", phrase("XNNPACK and LiteRT's own kernels"), probes.runtime, None, runs=True),
    Delegate("numpy", phrase("exact and slow kernels"), probes.always, None, runs=True),
    _compiled(_ruled("gpu", "LiteRT's GPU accelerator", probes.gpu, runs=True), gpu_place),
    _compiled(_ruled("openvino", "Intel OpenVINO", probes.openvino, runs=True), openvino_place),
    _compiled(
        _ruled("micro", "TensorFlow Lite Micro", probes.micro, runs=True), micro_place
    )._replace(is_timed=False),
    *map(_ethos, ACCELERATORS),
    _compiled(_ruled("hexagon", "Qualcomm HTP", probes.hexagon), hexagon_place),
    _ruled("edgetpu", "Coral Edge TPU", probes.edge_tpu),
    _ruled("nnapi", "Android NNAPI", probes.nnapi),
    _ruled("coreml", "Apple Core ML", probes.core_ml),
)

BY_NAME = {delegate.name: delegate for delegate in DELEGATES}


def _own_kernels() -> tuple[Delegate, ...]:
    """Litesmith's own kernels, where they are installed. They are not among `DELEGATES`: the ops
    that they leave are the CPU's."""
    room = find_own_kernels()
    if room is None:
        return ()
    name, title = f"cpu:1:{LITESMITH}", phrase("Litesmith's kernels, int16x8 and sparse")
    return (Delegate(name, title, probes.kernels, room.place, True, room.place),)


def with_custom() -> tuple[Delegate, ...]:
    """All targets: `DELEGATES`, Litesmith's own kernels, and delegates registered as
    `custom:NAME`."""
    own = [
        Delegate(f"custom:{name}", _title(one), probes.always, place, True, place)
        for name, one in delegates().items()
        for place in [partial(delegated.place, delegate=one, name=name)]
    ]
    return (*DELEGATES, *_own_kernels(), *own)


def _title(delegate: object) -> str:
    return (
        (type(delegate).__doc__ or phrase("a delegate of yours"))
        .strip()
        .splitlines()[0]
        .rstrip(".")
    )


# The usual name of each family, and the member that represents it.
FAMILIES = {"ethos": "ethos-u55-128", "ethos-u55": "ethos-u55-128", "ethos-u65": "ethos-u65-256"}


def placed(delegate: Delegate, model: Model) -> Placement | None:
    """The placement by the delegate's compiler where that is installed; its rules come first, for
    models that would crash it."""
    predicted = None if delegate.predict is None else delegate.predict(model)
    if delegate.place is None or (predicted is not None and predicted.refused):
        return predicted
    return delegate.place(model)


def refuse_unusable(target: Target) -> None:
    """Raises where this machine lacks what the target needs."""
    if target.kind == "custom":
        find_delegate(target.kernels)
        return
    missing = why_missing("kernels") if target.kernels == LITESMITH else ""
    if missing:
        raise CannotRun("target {target}: {missing}", target, missing)
    delegate = BY_NAME[target.kind]
    found = delegate.probe()
    if not found.usable:
        raise CannotRun("target {target}: {why}; {how}", target, found.why, found.how)
    if not delegate.runs:
        raise CannotRun(
            "target {target}: nothing runs there from here; it is compiled for only", target
        )
