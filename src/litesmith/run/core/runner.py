"""What a session needs of whatever runs its model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from litesmith.ir.types import Array


@dataclass(frozen=True)
class Port:
    """An input or output: its name, and the memory that the runner reads or writes."""

    name: str
    array: Array


class Runner(Protocol):
    """One model, ready to run. `inputs` and `outputs` are replaced by `resize`, and by `run` where
    sizes depend on values; nothing else moves the memory."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    copies: bool  # True where values are copied between the ports and the runtime

    def run(self) -> None: ...
    def resize(self, shapes: dict[int, tuple[int, ...]]) -> None: ...
    def close(self) -> None: ...


def port_names(names: Sequence[str]) -> list[str]:
    """Names in the runtime's form, which ends at a NUL, and all different: a repeated name is
    numbered."""
    seen: dict[str, int] = {}
    result: list[str] = []
    for name in (name.partition("\0")[0] for name in names):
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return result
