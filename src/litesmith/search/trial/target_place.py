"""Where the result of a search is to run: how times are known there, and which ops the target
takes."""

from dataclasses import dataclass, replace

from litesmith.diagnosis.accelerator_fit import place_on
from litesmith.errors import BadInput
from litesmith.evidence.records import TakenOps
from litesmith.ir.types import Model
from litesmith.phrases import join, phrase
from litesmith.run.accelerators.targets import BY_NAME, FAMILIES, refuse_unusable
from litesmith.run.accelerators.vela import ACCELERATORS
from litesmith.run.core.placement import Placement
from litesmith.run.core.target import LITESMITH, Target
from litesmith.run.devices.address import Address, is_address, parse

_CPU = Target()
_NO_ACCELERATORS = ("cpu", "numpy")


@dataclass(frozen=True)
class Place:
    """A target as a search sees it.

    runs         where models are run and timed; None for a target that is only compiled for
    accelerator  the name among the delegates; "" for a CPU, which takes every op
    """

    text: str
    runs: Target | Address | None
    accelerator: str = ""

    @staticmethod
    def parse(text: "str | Target | Place") -> "Place":
        """Parses a target: `cpu:1`, `gpu`, `ssh://pi@kitchen/cpu:4`, `ethos-u55-128`."""
        if isinstance(text, Place):
            return text
        text = FAMILIES.get(text, text) if isinstance(text, str) else text
        if isinstance(text, str) and text in BY_NAME and not BY_NAME[text].runs:
            return Place(text, None, text)
        if isinstance(text, str) and is_address(text):
            address = parse(text)
            return Place(str(address), address, _accelerator(address.target))
        try:
            target = Target.parse(text)
        except BadInput as error:
            compiled = ", ".join(name for name, one in BY_NAME.items() if not one.runs)
            raise BadInput("{error}; and to compile for: {compiled}", error, compiled) from None
        return Place(str(target), target, _accelerator(target))

    def __str__(self) -> str:
        return self.text

    @property
    def cpu(self) -> Target | None:
        """The target as a CPU of this machine; None for any other target."""
        here = self.runs if isinstance(self.runs, Target) else None
        return here if here is not None and here.kind in _NO_ACCELERATORS else None

    @property
    def has_own_kernels(self) -> bool:
        """True where Litesmith's own kernels run what they can, above all int16 data."""
        return self.cpu is not None and self.cpu.kernels == LITESMITH

    @property
    def is_micro(self) -> bool:
        """True for microcontrollers, where bytes count: this machine's times say nothing about
        theirs."""
        return isinstance(self.runs, Target) and self.runs.kind == "micro"

    @property
    def times(self) -> Target | Address | None:
        """Where models are timed; None where no time is taken."""
        return None if self.is_micro else self.runs

    @property
    def scores(self) -> Target:
        """Where candidates are scored: on one CPU thread, wherever they are timed; for a
        microcontroller, in its own kernels."""
        if self.is_micro and isinstance(self.runs, Target):
            return self.runs
        return replace(self.cpu or _CPU, threads=1)

    @property
    def proves(self) -> Target:
        """Where the result is scored: on the target itself, if this machine can run it."""
        return replace(self.runs, threads=1) if isinstance(self.runs, Target) else self.scores

    @property
    def is_timed(self) -> bool:
        """True where times are known, measured or estimated by the target's compiler."""
        if self.times is not None:
            return True
        return self.accelerator in ACCELERATORS and BY_NAME[self.accelerator].probe().usable

    def placed(self, model: Model) -> Placement | None:
        """Which ops of a model the target takes; None for a CPU."""
        return place_on(model, self.accelerator) if self.accelerator else None

    def asks_for_integers(self, model: Model) -> bool:
        """True where the target takes the model only with integer inputs and outputs."""
        found = None if self.runs is not None else self.placed(model)
        return found is not None and found.needs_int8 and "way_out" in found.facts


def _accelerator(target: Target) -> str:
    return "" if target.kind in _NO_ACCELERATORS else target.kind


def refuse_place(place: Place, minimize: str, *, limits_time: bool) -> None:
    """Raises where a place cannot provide what the user asked for."""
    if isinstance(place.runs, Target):
        if place.runs.kind == "numpy":
            raise BadInput("tune --on numpy: no product runs on it; give cpu:1 or another target")
        if place.accelerator:
            refuse_unusable(place.runs)
    if minimize == "memory" and not isinstance(place.runs, Target):
        raise BadInput(
            "tune --on {place} --minimize memory: peaks are seen on this machine only", place
        )
    if place.is_micro and (minimize in ("latency", "memory") or limits_time):
        raise BadInput(
            "tune --on micro: a time or a peak on this machine says nothing of a "
            "microcontroller; give --minimize ram, flash or size"
        )
    if place.is_timed or (minimize != "latency" and not limits_time):
        return
    asked = "--max-latency" if limits_time else "--minimize latency"
    how = BY_NAME[place.accelerator].probe().how if place.accelerator in ACCELERATORS else ""
    ways = [
        how,
        phrase("--minimize size searches for what it takes whole"),
        phrase("times come from the device"),
    ]
    raise BadInput(
        "tune --on {place} {asked}: nothing here tells how long a model takes there; {ways}",
        place,
        asked,
        join(filter(None, ways), "; "),
    )


def describe_left(placed: TakenOps | None) -> str:
    """The share of ops in words, as in `edgetpu takes 27 of 31 ops in 3 parts: …`; "" where the
    target takes all ops, or is a CPU."""
    if placed is None or not placed.left:
        return ""
    if not placed.taken:
        return phrase("{target} takes none of its ops: {why}", placed.target, placed.why)
    parts = "1 part" if placed.partitions == 1 else phrase("{partitions} parts", placed.partitions)
    return phrase(
        "{target} takes {taken} of {ops} ops in {parts}: {why}",
        placed.target,
        placed.taken,
        placed.ops,
        parts,
        placed.why,
    )
