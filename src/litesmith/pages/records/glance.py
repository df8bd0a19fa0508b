"""A run at a glance, whatever its command: the facts by which several runs are compared."""

from dataclasses import dataclass

from litesmith.evidence.records import Environment
from litesmith.phrases import phrase


@dataclass(frozen=True)
class Glance:
    """A run as one row; unknown values are None or "".

    kind       the kind of the verdict, which decides its look
    verdict    the verdict in a word or two
    headline   what to do
    score      the model's score in words, sorted by `score_key`
    before_us  the time of the original model, where there was one
    """

    command: str
    model: str
    kind: str
    verdict: str
    headline: str
    target: str = ""
    score: str = ""
    score_key: float | None = None
    us: float | None = None
    before_us: float | None = None
    bytes: int | None = None
    before_bytes: int | None = None
    version: str = ""
    machine: str = ""


def machine_of(environment: Environment) -> str:
    """The processor and its cores, in words."""
    cpu, cores = environment.get("cpu"), environment.get("cores")
    if cpu and cores:
        return phrase("{cpu}, {cores} cores", cpu, cores)
    return str(cpu or "")
