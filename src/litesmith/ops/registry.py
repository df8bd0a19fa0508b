"""The names of operators and delegates, and the files of the user's that define them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from hashlib import sha256
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from inspect import getsourcefile, signature
from pathlib import Path
from typing import TypeVar

from litesmith.errors import BadInput, LitesmithError
from litesmith.ir.types import Model
from litesmith.ops.delegate import Delegate
from litesmith.ops.operator import Operator, Reference, ShapeRule

# Files and modules, as in --ops, that this process and its children load before the first look.
VARIABLE = "LITESMITH_OPS"

_operators: dict[str, Operator] = {}
_delegates: dict[str, Delegate] = {}
_loaded: set[str] = set()

D = TypeVar("D", bound=type)


def op(
    name: str, *, shape: ShapeRule | None = None, dtype: str = "", replace: bool = False
) -> Callable[[Reference], Operator]:
    """Makes a function the custom op of that name; see `Operator` for what it may be.

    >>> @litesmith.op("Twice")
    ... def twice(x):
    ...     return 2 * x

    shape    output shapes from input shapes, called as the function is with a tuple for each
             array; without it the function is called on zeros, once
    dtype    types of the outputs where a model is built, as in "float32 int32"
    replace  takes the name from another function
    """

    def registered(function: Reference) -> Operator:
        known = _operators.get(name)
        if known is not None and not replace and _place(known.reference) != _place(function):
            raise BadInput(
                "op {name!r} is {place} already; choose another name, "
                "litesmith.ops.unregister it, or say replace=True",
                name,
                _place(known.reference),
            )
        try:
            signature(function)
        except (TypeError, ValueError):
            raise BadInput(
                "op {name!r}: {function!r} does not tell its parameters; call it in a "
                "function that does",
                name,
                function,
            ) from None
        _operators[name] = Operator(name, function, shape, dtype)
        return _operators[name]

    if not name or "\0" in name:
        raise BadInput("op {name!r}: a name is needed", name)
    return registered


def delegate(name: str, *, replace: bool = False) -> Callable[[D], D]:
    """Makes a class the target `custom:NAME`; see `Delegate` for its methods.

    >>> @litesmith.delegate("my_chip")
    ... class MyChip:
    ...     def claims(self, op):
    ...         return op.kind == "SOFTMAX"
    ...
    ...     def program(self, part):
    ...         return lambda x: np.exp(x) / np.exp(x).sum()
    """

    def registered(kind: D) -> D:
        known = _delegates.get(name)
        if known is not None and not replace and _place(type(known)) != _place(kind):
            raise BadInput(
                "delegate {name!r} is {place} already; choose another name, or say replace=True",
                name,
                _place(type(known)),
            )
        for method in ("claims", "program"):
            if not callable(getattr(kind, method, None)):
                raise BadInput(
                    "delegate {name!r}: {name2} has no method {method}", name, kind.__name__, method
                )
        _delegates[name] = kind()
        return kind

    if not name or not name.replace("-", "").replace("_", "").isalnum():
        raise BadInput("delegate {name!r}: a name has letters, digits, - and _ only", name)
    return registered


def unregister(name: str) -> None:
    """Forgets the operator of that name."""
    if _operators.pop(name, None) is None:
        raise BadInput("no op {name!r}; there are {listed}", name, _listed(_operators))


@contextmanager
def scope() -> Generator[None]:
    """What is registered inside is forgotten at the end, and what was before is back."""
    before = dict(_operators), dict(_delegates)
    try:
        yield
    finally:
        for table, held in zip((_operators, _delegates), before, strict=True):
            table.clear()
            table.update(held)  # type: ignore[arg-type]


def find_op(name: str) -> Operator | None:
    """The operator of that name, where there is one."""
    _load_named()
    return _operators.get(name)


def find_delegate(name: str) -> Delegate:
    _load_named()
    if name not in _delegates:
        raise BadInput(
            "no delegate {name!r}; there are {listed}; litesmith.delegate registers one, "
            "--ops FILE loads a file that does",
            name,
            _listed(_delegates),
        )
    return _delegates[name]


def delegates() -> dict[str, Delegate]:
    _load_named()
    return dict(_delegates)


def meaning(model: Model) -> str:
    """A digest of what computes the custom ops of a model; "" where nothing of the user's does.

    It is of the whole files that functions are in: they may use what is beside them.
    """
    found = [find_op(op.custom) for _, _, op in model.ops() if op.is_custom]
    functions = [one.reference for one in dict.fromkeys(found) if one is not None]
    digest = sha256()
    for function in functions:
        try:
            digest.update(Path(getsourcefile(function) or "").read_bytes())
        except (OSError, TypeError):  # typed in, not written in a file
            digest.update(getattr(getattr(function, "__code__", None), "co_code", b""))
    return digest.hexdigest() if functions else ""


def load(source: str) -> None:
    """Imports a file or module that registers operators, here and in child processes.

    Loading one twice is loading it once.
    """
    named = os.environ.get(VARIABLE, "").split(os.pathsep)
    place = os.path.abspath(source) if _is_file(source) else source
    _import(place)
    if place not in named:
        os.environ[VARIABLE] = os.pathsep.join([*filter(None, named), place])


def _load_named() -> None:
    for place in os.environ.get(VARIABLE, "").split(os.pathsep):
        if place and place not in _loaded:
            _import(place)


def _import(place: str) -> None:
    if place in _loaded:
        return
    _loaded.add(place)  # before: what it imports may look for operators
    try:
        _import_file(Path(place)) if _is_file(place) else _import_module(place)
    except LitesmithError:
        _loaded.discard(place)
        raise
    except Exception as error:
        _loaded.discard(place)
        raise BadInput(
            "--ops {place}: {name}: {error}", place, type(error).__name__, error
        ) from error


def _is_file(source: str) -> bool:
    return source.endswith(".py") or os.sep in source


def _import_module(name: str) -> None:
    folder = os.getcwd()
    sys.path.insert(0, folder)
    try:
        import_module(name)
    finally:
        sys.path.remove(folder)


def _import_file(path: Path) -> None:
    if not path.is_file():
        raise BadInput("--ops {path}: no such file", path)
    name = f"litesmith_ops_{path.stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadInput("--ops {path}: is no Python file", path)
    module = module_from_spec(spec)
    sys.modules[name] = module  # numba and dataclasses look for it there
    spec.loader.exec_module(module)


def _place(function: object) -> str:
    module, name = getattr(function, "__module__", "?"), getattr(function, "__qualname__", "?")
    return f"{module}.{name}"


def _listed(table: dict[str, object] | dict[str, Operator] | dict[str, Delegate]) -> str:
    return ", ".join(sorted(table)) or "none"
