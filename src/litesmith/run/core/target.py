"""Where a model runs, as a text: `cpu:2`, `cpu:1:builtin`, `openvino:2`, `gpu:full`, `micro`."""

from dataclasses import dataclass

from litesmith.errors import BadInput
from litesmith.operating_system import usable_cores
from litesmith.phrases import phrase
from litesmith.type_guards import is_whole

# The kernels that run the ops on a CPU: XNNPACK, with the runtime's builtin kernels for the rest;
# the builtin kernels alone; the runtime's own slow reference kernels; or XNNPACK with Litesmith's
# kernels where these are faster.
LITESMITH = "litesmith"
KERNELS = ("xnnpack", "builtin", "reference", LITESMITH)
KINDS = ("cpu", "openvino", "gpu", "numpy", "micro", "custom")

# On a GPU: float32 throughout. What it does otherwise is its driver's choice, float16 where it can.
FULL = "full"

THREADED = ("cpu", "openvino")

# Custom ops that TensorFlow Lite Micro brings.
MICRO_OPS = (
    "CIRCULAR_BUFFER",
    "TFLM_DECODE",
    "TFLite_Detection_PostProcess",
    "SignalDelay",
    "SignalEnergy",
    "SignalFftAutoScale",
    "SignalFilterBank",
    "SignalFilterBankLog",
    "SignalFilterBankSpectralSubtraction",
    "SignalFilterBankSquareRoot",
    "SignalFramer",
    "SignalIrfft",
    "SignalOverlapAdd",
    "SignalPCAN",
    "SignalRfft",
    "SignalStacker",
    "SignalWindow",
)


@dataclass(frozen=True)
class Target:
    """A place to run a model.

    >>> litesmith.Target.parse("cpu:2").threads
    2

    A CPU has a choice of threads and kernels, OpenVINO of threads, a GPU
    of kernels in full precision; of a custom one, `kernels` is the name of its delegate."""

    kind: str = "cpu"
    threads: int = 1
    kernels: str = "xnnpack"

    @staticmethod
    def parse(text: "str | Target") -> "Target":
        """The target that a text stands for.

        >>> Target.parse("cpu:2").threads
        2
        """
        if isinstance(text, Target):
            return text
        kind, *rest = text.strip().split(":")
        if kind not in KINDS:
            raise BadInput(
                "no target {what!r}; there are cpu:THREADS, cpu:THREADS:KERNELS, "
                "openvino:THREADS, gpu, gpu:full, numpy, micro, custom:NAME",
                text,
            )
        if kind in THREADED:
            return _threaded(text, kind, rest)
        if kind == "custom":
            return _custom(text, rest)
        if kind == "gpu" and rest == [FULL]:
            return Target(kind, kernels=FULL)
        if rest:
            known = phrase("only {full!r}, as in gpu:{full}", FULL) if kind == "gpu" else "nothing"
            raise BadInput("target {what!r}: after {kind} comes {known}", text, kind, known)
        return Target(kind)

    def __str__(self) -> str:
        if self.kind == "custom":
            return f"custom:{self.kernels}" + (
                phrase(":{threads}", self.threads) if self.threads > 1 else ""
            )
        threads = phrase(":{threads}", self.threads) if self.kind in THREADED else ""
        kernels = "" if self.kernels == "xnnpack" else phrase(":{kernels}", self.kernels)
        return f"{self.kind}{threads}{kernels}"

    @property
    def warning(self) -> str:
        """A warning about the target on this machine; "" where there is none."""
        cores = usable_cores()
        if self.kind == "micro":
            return phrase("times on micro are this machine's and say nothing of a microcontroller")
        if self.kind in THREADED and self.threads > cores:
            return phrase(
                "{self} has more threads than the {cores} cores that this process may use",
                self,
                cores,
            )
        return ""


def _threaded(text: str, kind: str, rest: list[str]) -> Target:
    threads, kernels, *more = (*rest, *("1", "xnnpack")[len(rest) :])
    if more or not is_whole(threads) or not 1 <= int(threads) <= 1024:
        raise BadInput(
            "target {what!r}: after {kind} comes a number of threads, as in {kind}:2", text, kind
        )
    if kind != "cpu" and len(rest) > 1:
        raise BadInput(
            "target {what!r}: {kind} has no choice of kernels, only of threads", text, kind
        )
    if kernels not in KERNELS:
        raise BadInput(
            "target {what!r}: no kernels {kernels!r}; there are {kernels2}",
            text,
            kernels,
            ", ".join(KERNELS),
        )
    return Target(kind, int(threads), kernels)


def _custom(text: str, rest: list[str]) -> Target:
    """A delegate by its name; the ops that it leaves run on a CPU."""
    name, threads, *more = (*rest, *("", "1")[len(rest) :])
    if more or not name or not is_whole(threads) or not 1 <= int(threads) <= 1024:
        raise BadInput("target {what!r}: give custom:NAME, or custom:NAME:THREADS", text)
    return Target("custom", int(threads), name)
