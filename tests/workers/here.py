"""An engine of plain calls in this process: what crosses to a worker is pickled all the same."""

import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from litesmith.workers.engine import Tell


@dataclass(frozen=True)
class Kept:
    """A result as it would travel."""

    content: bytes

    @property
    def value(self) -> Any:
        return pickle.loads(self.content)


@dataclass
class Here:
    """`shipped` has the bytes of what was put there, by key; `calls` how often what was called."""

    width: int = 3
    text: str = "here"
    shipped: dict[str, int] = field(default_factory=dict[str, int])
    calls: Counter[str] = field(default_factory=Counter[str])
    _held: dict[str, Kept] = field(default_factory=dict[str, Kept])

    def hold(self, key: str, make: Callable[[], Any], nbytes: Callable[[Any], int]) -> Kept:
        if key not in self._held:
            value = make()
            self.shipped[key] = nbytes(value)
            self._held[key] = Kept(pickle.dumps(value))
        return self._held[key]

    def once(self, key: str, start: Callable[[], Kept]) -> Kept:
        if key not in self._held:
            self._held[key] = start()
        return self._held[key]

    def call(self, what: str, work: Callable[..., Any], *given: object) -> Kept:
        self.calls[work.__name__] += 1
        work, given = pickle.loads(pickle.dumps((work, given)))
        return Kept(
            pickle.dumps(work(*(one.value if isinstance(one, Kept) else one for one in given)))
        )

    def gathered(self, started: Iterable[Kept]) -> Iterator[Any]:
        return (held.value for held in started)

    def alone(
        self,
        what: str,
        work: Callable[..., Any],
        *given: object,
        models: tuple[str, ...] = (),
    ) -> Any:
        return self.call(what, work, *given).value

    def on_devices(self, what: str, work: Callable[..., Any], *given: object) -> list[Any]:
        return [self.call(what, work, *given).value]

    def cancel(self, started: Iterable[Kept]) -> None: ...

    def watch(self, tell: Tell | None) -> None: ...
