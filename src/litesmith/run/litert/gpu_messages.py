"""The remarks of LiteRT's GPU accelerator on a model, as values."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from litesmith.phrases import phrase

# The accelerator leaves out the nodes that this variable lists, and names those of them which it
# would have taken: with all nodes listed it names all it takes, and builds nothing.
LEFT_OUT = "LITERT_GPU_DEBUG_EXCLUDE_NODES"

_UNSUPPORTED = re.compile(
    r"Following operations are not supported by GPU delegate:\n(?P<why>.*?)\n?"
    r"(?P<taken>\d+|No) operations will run on the GPU, and (?:the remaining|all) (?P<left>\d+)",
    re.DOTALL,
)
_TAKEN = re.compile(r"Excluding node (\d+) \(")
_ERROR = re.compile(r"^E\d{4} \S+ +\d+ \S+\] (?:[A-Z_]+: )?(.+)$", re.MULTILINE)


class Share(NamedTuple):
    """The number of ops of a graph that go to the GPU, and the obstacles for others: `KIND:
    reason`."""

    taken: int
    left: int
    why: tuple[str, ...]

    def __str__(self) -> str:
        total = self.taken + self.left
        return phrase(
            "{taken} of {total} ops run on the GPU, the rest on the CPU: {reason}",
            self.taken,
            total,
            self.reason,
        )

    @property
    def reason(self) -> str:
        return "; ".join(self.why) or phrase("it gives no reason")


def share(messages: str) -> Share | None:
    """The share that the runtime's messages tell; None where they tell none: it takes all.

    >>> told = "Following operations are not supported by GPU delegate:\\nRANK: not known.\\n"
    >>> told += "2 operations will run on the GPU, and the remaining 1 operations will ..."
    >>> str(share(told))
    '2 of 3 ops run on the GPU, the rest on the CPU: RANK: not known'
    """
    found = _UNSUPPORTED.search(messages)
    if found is None:
        return None
    taken = 0 if found["taken"] == "No" else int(found["taken"])
    why = tuple(line.strip().rstrip(".") for line in found["why"].splitlines() if line.strip())
    return Share(taken, int(found["left"]), why)


def reasons(why: Iterable[str]) -> dict[str, str]:
    """Reasons by the kind of op they are about.

    >>> reasons(["GATHER: Only support 1D indices"])
    {'GATHER': 'GATHER: Only support 1D indices'}
    """
    return {line.partition(":")[0]: line for line in why}


def taken_nodes(remarks: str) -> tuple[int, ...]:
    """The nodes of the main graph, which comes first, that would have been taken."""
    _, _, rest = remarks.partition(f"{LEFT_OUT} set to")
    main, _, _ = rest.partition(f"{LEFT_OUT} set to")
    return tuple(int(number) for number in _TAKEN.findall(main))


def cause(remarks: str) -> str:
    """The last error in one line, without the place in its source; "" where there is none."""
    errors = _ERROR.findall(remarks)
    return errors[-1].strip().rstrip(".:") if errors else ""
