"""What `tune` leaves in its folder."""

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

# Misses by its estimate, though by so little that chance may be what it misses by.
NEAR = "near"
RUNNING, STOPPED, DONE = "running", "stopped", "done"
FLOAT = "float"


@dataclass(frozen=True)
class RoomLeft:
    """How much better than its bound a model is, with the 95 % interval; negative outside.

    reason   why that is not known, where it is not
    allowed  what may be lost at all
    """

    estimate: float | None
    low: float | None
    high: float | None
    reason: str
    allowed: float | None


@dataclass(frozen=True)
class Tried:
    """A recipe that was tried on the samples to choose by, or verified on the held-out ones; what
    was not measured is not there.

    why           what was hoped for
    key           equal for trials that would end in the same measurements
    predicted_us  of a run, from the times of single ops, before the model was made
    ram_bytes     of the arena on a microcontroller; `flash_bytes` of the file and its kernels there
    device        the machine of the cluster that timed the model
    is_passing    True where what stopped the trial may be over by the next time
    held_out      the digest of the held-out samples; `look` is how many models these samples had
                  been asked about by then, and `scored_on` the target whose kernels ran them
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
    """The time of the float model or the best one on a target."""

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
    """What was asked for.

    data      the digests of the samples to calibrate on, to choose by and to prove by
    ceilings  the limits as numbers, by the cost that each is on: bytes and microseconds
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
    """Where the samples came from, and how many were for what."""

    source: str
    calibration_source: str | None
    calibration: Count
    search: Count
    held_out: Count
    preparation: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class TunedModel:
    """The model to ship, the nearest where nothing fits, or the float model.

    file      in the folder, where the model lies there
    whole_on  the accelerators that take the model whole, once that was looked into
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
    """A branch of the decision tree: its question, what came out, and what was tried."""

    branch: str
    question: str
    answer: str
    trials: tuple[str, ...] = ()


@dataclass(frozen=True)
class NextStep:
    """What to do now: a command to type, "" where it is none, and what for."""

    command: str
    purpose: str

    @property
    def text(self) -> str:
        if not self.command:
            return self.purpose
        return phrase("{command}: {purpose}", self.command, self.purpose)


def _read_step(text: str) -> NextStep:
    """A step from its text; older versions wrote the two in one sentence."""
    if isinstance(text, Phrase) and set(text.values) == {"command", "purpose"}:
        return NextStep(str(text.values["command"]), str(text.values["purpose"]))
    command, colon, purpose = text.partition(": ")
    is_command = colon and command.startswith("litesmith ")
    return NextStep(command, purpose) if is_command else NextStep("", text)


StepText = Annotated[NextStep, Stored(str, attrgetter("text"), _read_step)]


@dataclass(frozen=True)
class TuneSummary:
    """tune.json: where a search stands.

    keys        the trials that the summary is about: a folder may hold those of other requests too
    first       the model as it came
    nearest     the model that misses by least, where none fits
    untried     branches of the tree that there was no time for
    model_path  where the model lay when it was measured
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
        """The best model, or the nearest where none fits."""
        return self.best or self.nearest

    def told_speed(self, name: str, speed: Speed | None) -> Speed | None:
        """The speed of a trial as everything tells it: of the chosen model that of the proof, of
        others their part of the float model's time in the proof."""
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
    """How far a layer's output is from the float model's, as a ratio of signal to noise."""

    index: int
    kind: str
    name: str
    snr_db: float


@dataclass(frozen=True)
class TunedInside:
    """evidence/DIGEST.json: the time of each op of a model, the error of each layer, what every
    accelerator makes of the model, and the items that it answers otherwise than the float model.

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
