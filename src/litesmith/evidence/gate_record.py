"""The contents of the folder of `gate -o`."""

from dataclasses import dataclass
from typing import Annotated, Literal

from litesmith.evidence.codec import Mark
from litesmith.evidence.records import Environment


@dataclass(frozen=True)
class UsedShare:
    """The share of the allowance that a change uses, with its interval."""

    used: float
    used_low: float
    used_high: float


@dataclass(frozen=True)
class CheckRow:
    """One quantity compared with the baseline, in words.

    command  the command that examines the cause
    """

    quantity: str
    title: str
    verdict: str
    allowed: str
    then: str
    now: str
    change: str
    why: str
    command: str
    share: Annotated[UsedShare | None, Mark.FLAT] = None


@dataclass(frozen=True)
class GateSummary:
    """gate.json: every check of a model.

    sentence  the verdict in one line
    strict    True where uncertainty counts as worse
    """

    schema: Literal[1]
    version: str
    command: str
    model: str
    digest: str
    baseline: str
    target: str
    verdict: str
    sentence: str
    strict: bool
    checks: tuple[CheckRow, ...]
    notes: tuple[str, ...]
    environment: Environment
