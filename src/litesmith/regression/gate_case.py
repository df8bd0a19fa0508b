"""A model under the gate: what every check looks at, and what a check says."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

from litesmith.data.samples import Data
from litesmith.ir.types import Model
from litesmith.regression.baseline import Baseline, Facts, Json
from litesmith.regression.gate_measures import Manner
from litesmith.regression.gate_rules import QUANTITIES, UNKNOWN, Allowed
from litesmith.run.core.target import Target
from litesmith.tflite.file import digest

# What stands in a command for the model of the baseline, where its file is not there any more.
_BEFORE = "BEFORE.tflite"


@dataclass(frozen=True)
class Check:
    """One quantity held against the baseline, in words, with the numbers for programs in `facts`.

    command  what looks into it
    """

    quantity: str
    title: str
    verdict: str
    allowed: str = ""
    then: str = ""
    now: str = ""
    change: str = ""
    why: str = ""
    command: str = ""
    facts: Facts = field(default_factory=dict[str, object])

    def row(self) -> Json:
        """By name, for JSON."""
        named = {name: getattr(self, name) for name in ("quantity", "title", "verdict", "allowed")}
        return {**named, "why": self.why, "command": self.command, **self.facts}


@dataclass(frozen=True)
class Case:
    """What every check looks at."""

    baseline: Baseline
    path: Path
    model: Path
    content: Model
    data: Data | None
    manner: Manner
    host: Facts

    @property
    def allowed(self) -> Mapping[str, Allowed]:
        return {**self.baseline.allowed, **self.manner.allow}

    @property
    def target(self) -> Target:
        return self.baseline.target

    @property
    def same_machine(self) -> bool:
        return machine_kind(self.host) == machine_kind(self.baseline.host)

    @property
    def before(self) -> str:
        """The baseline's own model in a command."""
        old = Path(self.baseline.model)
        is_there = old.is_file() and digest(old) == self.baseline.digest
        return quote(str(old)) if is_there else _BEFORE

    @property
    def file(self) -> str:
        """The model of now in a command."""
        return quote(str(self.model))

    def check(self, quantity: str, why: str = "") -> Check:
        """The check of a quantity of which nothing is known yet."""
        title, allowed = QUANTITIES[quantity].title, self.allowed[quantity]
        return Check(quantity, title, UNKNOWN, allowed.text, why=why)


def machine_kind(facts: Facts) -> tuple[object, ...]:
    """What of a machine decides how kernels work: its processor and its system."""
    return facts.get("cpu"), str(facts.get("system", "")).partition(" ")[0]
