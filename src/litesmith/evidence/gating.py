"""What `gate -o` leaves in its folder."""

from dataclasses import dataclass
from typing import Annotated, Literal

from litesmith.evidence.codec import Mark
from litesmith.evidence.records import Environment


@dataclass(frozen=True)
class UsedShare:
    """The share of what is allowed that a change takes up, with the ends of its interval."""

    used: float
    used_low: float
    used_high: float


@dataclass(frozen=True)
class CheckRow:
    """One quantity held against the baseline, in words.

    command  what looks into it
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

    sentence  what came out, in one line
    strict    True where what is not certain counts as worse
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
