"""A task that the user wrote: one small class, named on the command line or passed in Python.

class MyTask:
    better = 1                                  # -1 where a lower score is better

    def items(self, source): ...                # the contents of the data: (name, item) pairs
    def inputs(self, item, shapes): ...         # an array for each input of the model
    def score(self, outputs, item): ...         # one number; the mean over items is reported
"""

import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from litesmith.errors import BadInput
from litesmith.ir.types import Array, Model
from litesmith.tasks.task import Answer, Rows, Settings, Shown, Task, TaskItems
from litesmith.type_guards import is_iterable, is_list_or_tuple
from litesmith.units import plain

_NEEDED = ("items", "inputs", "score")

# The user's tasks, by the names that results and records use.
_given: dict[str, "UsersTask"] = {}


def accept_task(asked: object) -> str:
    """The name of the caller's task. The user's code enters here and nowhere else: names in files
    are only looked up.
    """
    if isinstance(asked, str):
        if ":" in asked:
            _given[asked] = UsersTask(asked, _make_task(_load_class(asked), asked))
        return asked
    kind = asked if isinstance(asked, type) else type(asked)
    name = f"{kind.__module__}:{kind.__qualname__}"
    _given[name] = UsersTask(name, _make_task(asked, name))
    return name


def users_task(name: str) -> "UsersTask | None":
    """The task of that name, if the user passed it."""
    return _given.get(name)


def _load_class(name: str) -> object:
    """The class that `file.py:Class` or `module:Class` names, as seen from the current folder."""
    place, _, wanted = name.rpartition(":")
    try:
        if place.endswith(".py"):
            spec = importlib.util.spec_from_file_location(Path(place).stem, place)
            if spec is None or spec.loader is None:
                raise ImportError(place)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        else:
            if "" not in sys.path:
                sys.path.insert(0, "")
            module = importlib.import_module(place)
    except (Exception, SystemExit) as error:  # foreign code: whatever it raises is not ours
        reason = f"{type(error).__name__}: {error}"
        raise BadInput("{name}: cannot be read ({told})", plain(name), plain(reason)) from error
    if not hasattr(module, wanted):
        raise BadInput("{name}: no class {wanted} there", plain(name), plain(wanted))
    return getattr(module, wanted)


def _make_task(asked: object, name: str) -> object:
    try:
        task = asked() if isinstance(asked, type) else asked
    except Exception as error:  # as above
        raise _failure_of(name, "__init__", error) from error
    missing = [method for method in _NEEDED if not callable(getattr(task, method, None))]
    if missing:
        raise BadInput(
            "{name}: a task has the methods items, inputs and score; {missing} is missing",
            plain(name),
            missing[0],
        )
    return task


def _failure_of(name: str, method: str, error: Exception) -> BadInput:
    reason = plain(f"{type(error).__name__}: {error}")
    return BadInput("{name}: {method} fails ({told})", plain(name), method, reason)


class _Item(NamedTuple):
    name: str
    content: object


@dataclass
class UsersTask:
    """A task that the user wrote, with its latest items."""

    name: str
    own: object
    items: tuple[_Item, ...] = ()

    @property
    def better(self) -> object:
        return getattr(self.own, "better", 0)

    def call(self, method: str, *given: object) -> object:
        try:
            return getattr(self.own, method)(*given)
        except Exception as error:  # foreign code: whatever it raises is not ours
            raise _failure_of(self.name, method, error) from error

    def score(self, outputs: list[Array], label: Array) -> object:
        """The score of one item, whose number is the label."""
        return self.call("score", outputs, self.items[int(label.reshape(-1)[0])].content)

    def rows(self, metric: str, answer: Answer) -> Rows:
        raise NotImplementedError(metric)  # its score is a function of outputs and label

    def tell(self, answer: Answer) -> Shown:
        own = getattr(self.own, "show", None)
        item = self.items[int(answer.label.reshape(-1)[0])].content
        return Shown(str(own(list(answer.outputs), item)) if callable(own) else "")

    def as_task(self) -> Task:
        return Task(self.name, (self.name,), "", self._open)

    def _open(self, source: Path, model: Model, settings: Settings) -> TaskItems:
        del settings
        found = self.call("items", source)
        if not is_iterable(found):
            raise BadInput("{name}: items gives no list", plain(self.name))
        pairs = [one if is_list_or_tuple(one) else ("", one) for one in found]
        self.items = tuple(
            _Item(str(pair[0] or number), pair[1])
            for number, pair in enumerate(cast("list[Sequence[object]]", pairs))
        )
        if not self.items:
            raise BadInput("{source}: {name} finds no item there", plain(str(source)), self.name)
        shapes = [tensor.shape for tensor in model.main.inputs]

        def arrays(index: int) -> tuple[Array, ...]:
            return self._inputs(index, shapes)

        names = [item.name for item in self.items]
        return TaskItems(names, lambda index: np.array(index), self, arrays=arrays)

    def _inputs(self, index: int, shapes: list[tuple[int, ...]]) -> tuple[Array, ...]:
        given = self.call("inputs", self.items[index].content, shapes)
        listed = given if is_list_or_tuple(given) else [given]
        arrays = tuple(np.asarray(one) for one in listed)
        if len(arrays) != len(shapes):
            raise BadInput(
                "{name}: inputs gives {count} arrays; the model has {count2} inputs",
                plain(self.name),
                len(arrays),
                len(shapes),
            )
        fitted = (
            array[0] if array.shape == shape and shape[:1] == (1,) else array
            for array, shape in zip(arrays, shapes, strict=True)
        )
        return tuple(fitted)
