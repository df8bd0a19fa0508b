"""The contents of the folder of `tune`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Annotated, Literal

from litesmith.evidence.codec import Count, Key, Mark, Omitted, Positive, Stored
from litesmith.evidence.measurement import DisagreementRow
from litesmith.evidence.records import Environment, Score, Speed, TakenOps, Taker
from litesmith.phrases import Phrase, phrase

CANDIDATE, VERIFIED, TIMED = "candidate", "verified", "timed"
FITS, MISSES, REFUSED, SET_ASIDE = "fits", "misses", "refused", "set aside"

# The estimate misses the budget, but by so little that chance may explain it.
NEAR = "near"
RUNNING, STOPPED, DONE = "running", "stopped", "done"
FLOAT = "float"


@dataclass(frozen=True)
class RoomLeft:
    """The distance of a model from its bound, with the 95 % interval; negative outside the bound.

    reason   why the distance is unknown
    allowed  the allowed loss
    """

    estimate: float | None
    low: float | None
    high: float | None
    reason: str
    allowed: float | None


@dataclass(frozen=True)
class Tried:
    """A recipe tried on the search samples, or verified on the held-out samples; fields are None
    where nothing was measured.

    why           the hope behind the recipe
    key           equal for trials that would end in the same measurements
    predicted_us  the time of a run, predicted from single ops before the model was made
    ram_bytes     the arena on a microcontroller; `flash_bytes` is the file with its kernels there
    device        the machine of the cluster that timed the model
    is_passing    True where the obstacle that stopped the trial may be gone next time
    held_out      the digest of the held-out samples; `look` counts the models judged on them so
                  far, and `scored_on` is the target whose kernels ran them
    """

    name: str
    branch: str
    why: str
    kind: Literal["candidate", "verified"]
    key: str
    bytes: Omitted[Count] = None
    gzip_bytes: Omitted[Count] = None
    peak_bytes: Omitted[Count] = None
    ram_bytes: Omitted[Count] = None
    flash_bytes: Omitted[Count] = None
    is_integer: Omitted[bool] = None
    placed: Omitted[TakenOps] = None
    predicted_us: Omitted[Positive] = None
    latency: Omitted[Speed] = None
    accuracy: Omitted[Score] = None
    room: Omitted[RoomLeft] = None
    status: Annotated[str, Mark.OMITTED] = ""
    seconds: float = 0.0
    device: Annotated[str, Mark.OMITTED] = ""
    is_passing: Annotated[bool, Mark.OMITTED] = False
    held_out: Annotated[str, Mark.OMITTED] = ""
    look: Omitted[int] = None
    scored_on: Annotated[str, Mark.OMITTED] = ""


@dataclass(frozen=True)
class TargetTime:
    """The time of the float model or of the best model on a target."""

    target: str
    model: str
    p50_us: Positive | None
    how: str
    low_us: Omitted[float] = None
    high_us: Omitted[float] = None


@dataclass(frozen=True)
class ProofTimes:
    """The proof's own run: the best model in turns with the float model, on every target.

    target  where the best model is fastest
    """

    name: str
    kind: Literal["timed"]
    branch: str
    key: str
    speed: Speed
    target: str
    threads: tuple[TargetTime, ...]
    warnings: Annotated[tuple[str, ...], Mark.OMITTED] = ()
    device: Annotated[str, Mark.OMITTED] = ""


# The details of the trials in a folder of `tune`, by their kind.
TUNE_KINDS: dict[str, type[Tried] | type[ProofTimes]] = {
    CANDIDATE: Tried,
    VERIFIED: Tried,
    TIMED: ProofTimes,
}


@dataclass(frozen=True)
class TuneRequest:
    """The request of a search.

    data      the digests of the calibration, search and held-out samples
    ceilings  the limits by cost, in bytes and microseconds
    """

    minimize: str
    budget: str
    limits: tuple[str, ...]
    targets: tuple[str, ...]
    data: tuple[str, ...]
    ceilings: Annotated[Mapping[str, Positive], Mark.OMITTED] = field(
        default_factory=dict[str, float], compare=False
    )


@dataclass(frozen=True)
class TuneData:
    """The origin of the samples, and how many served each purpose."""

    source: str
    calibration_source: str | None
    calibration: Count
    search: Count
    held_out: Count
    preparation: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class TunedModel:
    """The model to ship, the nearest miss where nothing fits, or the float model.

    file      its path in the folder, where it lies there
    whole_on  the accelerators that take the whole model, once that was examined
    """

    name: str
    recipe: str
    digest: str
    bytes: Count | None
    gzip_bytes: Count | None
    peak_bytes: Count | None
    is_integer: bool | None
    placed: TakenOps | None
    accuracy: Score | None
    latency: Speed | None
    target: Annotated[str, Mark.OMITTED] = ""
    scored_on: Annotated[str, Mark.OMITTED] = ""
    file: Annotated[str, Mark.OMITTED] = ""
    whole_on: Omitted[tuple[str, ...]] = None
    ram_bytes: Omitted[Count] = None
    flash_bytes: Omitted[Count] = None


@dataclass(frozen=True)
class PathStep:
    """A branch of the decision tree: its question, the outcome, and the candidates tried."""

    branch: str
    question: str
    answer: str
    trials: tuple[str, ...] = ()


@dataclass(frozen=True)
class NextStep:
    """Something the user can do next: a command ("" where there is none) and its purpose."""

    command: str
    purpose: str

    @property
    def text(self) -> str:
        if not self.command:
            return self.purpose
        return phrase("{command}: {purpose}", self.command, self.purpose)


def _read_step(text: str) -> NextStep:
    """Reads a step from its text; older versions wrote command and purpose in one sentence."""
    if isinstance(text, Phrase) and set(text.values) == {"command", "purpose"}:
        return NextStep(str(text.values["command"]), str(text.values["purpose"]))
    command, colon, purpose = text.partition(": ")
    is_command = colon and command.startswith("litesmith ")
    return NextStep(command, purpose) if is_command else NextStep("", text)


StepText = Annotated[NextStep, Stored(str, attrgetter("text"), _read_step)]


@dataclass(frozen=True)
class TuneSummary:
    """tune.json: the state of a search.

    keys        the trials of this request: a folder may also hold those of other requests
    first       the original model
    nearest     the nearest miss, where nothing fits
    untried     branches of the tree for which there was no time
    model_path  the path of the model when it was measured
    """

    schema: Literal[1]
    model: str
    model_digest: str
    version: str
    command: str
    state: str
    request: TuneRequest
    data: TuneData
    verdict: str | None
    sentence: str
    best: TunedModel | None
    nearest: TunedModel | None
    first: Annotated[TunedModel | None, Key("float")]
    front: tuple[str, ...]
    keys: tuple[str, ...]
    warnings: tuple[str, ...]
    path: tuple[PathStep, ...]
    threads: tuple[TargetTime, ...]
    next: tuple[StepText, ...]
    environment: Environment
    seconds: float | None
    untried: Annotated[tuple[str, ...], Mark.OMITTED] = ()
    model_path: Annotated[str, Mark.OMITTED] = ""

    @property
    def chosen(self) -> TunedModel | None:
        """The best model, or the nearest miss where nothing fits."""
        return self.best or self.nearest

    def stated_speed(self, name: str, speed: Speed | None) -> Speed | None:
        """The speed of a trial as every text and chart states it: for the chosen model the proof's
        speed, for other models their ratio applied to the float model's time in the proof."""
        proven = self.chosen and self.chosen.latency
        if self.chosen is not None and self.chosen.name == name and proven:
            return proven
        return speed and speed.beside(proven.float_us if proven else None)


@dataclass(frozen=True)
class OpRow:
    """The time of one op in a profiled run."""

    index: int
    kind: str
    name: str
    us: float | None
    macs: int


@dataclass(frozen=True)
class LayerRow:
    """The error of a layer's output against the float model's, as a signal-to-noise ratio."""

    index: int
    kind: str
    name: str
    snr_db: float


@dataclass(frozen=True)
class TunedInside:
    """evidence/DIGEST.json: the op times of a model, the error of each layer, the model's placement
    on every accelerator, and the items that it answers differently from the float model.

    about  what the times and errors depend on
    """

    schema: Literal[1]
    name: str
    about: Annotated[tuple[str, ...], Mark.OMITTED] = ()
    run_us: Omitted[Positive] = None
    ops: Annotated[tuple[OpRow, ...], Mark.OMITTED] = ()
    layers: Annotated[tuple[LayerRow, ...], Mark.OMITTED] = ()
    accelerators: Omitted[tuple[Taker, ...]] = None
    disagreements: Annotated[tuple[DisagreementRow, ...], Mark.OMITTED] = ()
