"""Files that torch writes. A `.pt2` is read without running anything in it.

`torch.export.load` may not be used on a file of unknown origin: it unpickles the example inputs
(with `weights_only=False` where the safe way fails), weights and constants marked as pickled, and
objects; it evaluates sizes as Python expressions by sympy, imports modules named in the structure
of inputs, and looks up any function below `torch` by a node's target. So the archive is read here:
the program is JSON, checked against lists of what may occur in it; weights are raw bytes and stay
views on the mapped file; and example inputs are not read at all. Only then does torch build the
program. Pickles, which all other files of torch are, are refused.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# torch leaves parts of its types open.

import json
import re
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import torch
from torch._export.serde import schema, serialize
from torch.export import ExportedProgram

from litesmith.errors import BadInput, BadModel, LitesmithError
from litesmith.tflite.file import map_file
from litesmith.type_guards import is_json_object, is_list

Json = dict[str, object]

_TARGETS = re.compile(
    r"torch\.ops\.aten\.\w+(\.\w+)?"
    r"|_operator\.(getitem|add|sub|mul|floordiv|truediv|mod|neg|pow|eq|ne|lt|le|gt|ge|and_|or_)"
    r"|math\.(ceil|floor|trunc|sqrt)|torch\.sym_(max|min|float|int|not|ite|sum)"
    r"|torch\.ops\.higher_order\.(cond|while_loop|wrap_with_set_grad_enabled)"
)

# The words in torch's expression of a free size: numbers, symbols and these functions.
_WORDS = re.compile(r"[A-Za-z_]\w*")
_SYMBOLS = re.compile(
    r"[suz]+f?\d+|FloorDiv|Mod|PythonMod|Max|Min|CeilDiv|CleanDiv|ModularIndexing|Where|Eq|Ne"
    r"|True|False|TruncToInt|CeilToInt|FloorToInt|IntTrueDiv|PowByNatural|Identity|ToFloat"
    r"|Add|Mul|Pow|Integer|Rational"
)
_NAMED = re.compile(r"Symbol\('([suz]+f?\d+)'(, \w+=(True|False))*\)")
_SIGNS = re.compile(r"[\w\s+\-*/(),<>=!&|]*")

# The structures of inputs and outputs that are rebuilt.
_TREES = {None, "builtins.tuple", "builtins.list", "builtins.dict", "collections.OrderedDict"}

# Fields that hold a function or an object.
_OBJECTS = {"as_custom_obj", "as_operator", "custom_obj"}


class _Archive(NamedTuple):
    """The parts of a zip file, by their names without the folder that all of them lie in."""

    path: Path
    parts: Mapping[str, memoryview]

    def json(self, name: str) -> Json:
        if name not in self.parts:
            raise BadModel("{path}: {name} is missing in it; the file is damaged", self.path, name)
        try:
            found = json.loads(bytes(self.parts[name]))
        except (ValueError, RecursionError):
            found = None
        if not is_json_object(found):
            raise BadModel("{path}: {name} in it is no JSON; the file is damaged", self.path, name)
        return found


def load_program(path: Path) -> ExportedProgram:
    """The program in a .pt2 file, without running anything in it."""
    archive = _open(path)
    models = [n for n in archive.parts if n.startswith("models/") and n.endswith(".json")]
    if len(models) != 1:
        _refuse_others(archive)
        raise BadInput(
            "{path} holds {count} programs; save one: torch.export.save(program, path)",
            path,
            len(models),
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _built(archive, models[0])
        except LitesmithError:
            raise
        except Exception as error:  # whatever torch stumbles over in a damaged file
            raise BadModel(
                "{path}: torch {version} cannot read the program in it ({why}); save it again with "
                "this version",
                path,
                torch.__version__,
                str(error).partition("\n")[0][:120] or type(error).__name__,
            ) from error


def _built(archive: _Archive, listed: str) -> ExportedProgram:
    """The program that torch builds, of parts that cannot run as code."""
    name = listed.removeprefix("models/").removesuffix(".json")
    if f"data/weights/{name}.pt" in archive.parts:  # of torch 2.8
        raise _pickled(archive.path)
    program = archive.json(listed)
    _check(archive.path, program)
    _strip(program)
    weights = _tensors(archive, f"data/weights/{name}_weights_config.json", "data/weights/")
    constants = _tensors(archive, f"data/constants/{name}_constants_config.json", "data/constants/")
    told = serialize._bytes_to_dataclass(  # pyright: ignore[reportPrivateUsage]
        schema.ExportedProgram, json.dumps(program).encode()
    )
    return serialize.ExportedProgramDeserializer().deserialize(told, weights, constants)


def _open(path: Path) -> _Archive:
    try:
        view = map_file(path)
    except BadModel as error:
        raise BadModel("{path}: {error}", path, error) from None
    try:
        with ZipFile(path) as file:
            infos = file.infolist()
    except (BadZipFile, ValueError, NotImplementedError):
        if bytes(view[:1]) == b"\x80":
            raise _no_network(path) from None
        raise BadModel("{path} is no file of torch", path) from None
    parts: dict[str, memoryview] = {}
    for info in infos:
        start = info.header_offset + 30
        lengths = view[start - 4 : start]
        start += int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little")
        if info.compress_type == ZIP_STORED and start + info.file_size <= len(view):
            parts[info.filename.partition("/")[2]] = view[start : start + info.file_size]
    return _Archive(path, parts)


def _no_network(path: Path) -> BadInput:
    return BadInput(
        "{path} holds weights without the network, as a pickle, which is never opened; build the "
        "module in Python, load them into it, and call litesmith.convert(module, example)",
        path,
    )


def _refuse_others(archive: _Archive) -> None:
    """Files of torch that hold no exported program."""
    if "constants.pkl" in archive.parts:
        raise BadInput(
            "{path} is a TorchScript archive, which torch alone runs; give the module that it was "
            "made of: litesmith.convert(module, example)",
            archive.path,
        )
    if "data.pkl" in archive.parts:
        raise _no_network(archive.path)
    if any(name.startswith("serialized_") for name in archive.parts) or not archive.parts:
        raise _pickled(archive.path)


def _pickled(path: Path) -> BadInput:
    return BadInput(
        "{path} is of an older torch, which pickled weights; load it there and save it again "
        "with torch 2.9 or newer: torch.export.save(program, path)",
        path,
    )


# The checks


def _items(value: object) -> Iterator[tuple[str, object]]:
    """Every field inside, at any depth."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if is_json_object(found):
            yield from found.items()
            waiting.extend(found.values())
        elif is_list(found):
            waiting.extend(found)


def _check(path: Path, program: Json) -> None:
    """Refuses anything that could run as code once torch builds the program."""
    for key, value in _items(program):
        if key == "target" and isinstance(value, str) and _is_bad_target(program, value):
            raise _refused(path, value)
        if key == "expr_str" and not _is_size(value):
            raise _refused(path, value)
        if key in ("in_spec", "out_spec") and value and not _is_plain_tree(value):
            raise BadInput(
                "{path}: its inputs or outputs are objects of a class of their own; export a "
                "module that takes and gives tensors, tuples, lists and dictionaries",
                path,
            )
        if key in _OBJECTS:
            raise _refused(path, key)


def _is_bad_target(program: Json, target: str) -> bool:
    """True for a function that no exported network calls; the targets of parameters are names."""
    return "." in target and not _TARGETS.fullmatch(target) and target in _called(program)


def _called(program: Json) -> set[str]:
    """The targets of all nodes, those of inner graphs too."""
    return {
        str(node.get("target")) for key, value in _items(program) for node in _nodes(key, value)
    }


def _nodes(key: str, value: object) -> Iterator[Json]:
    """The nodes that a field holds."""
    if key == "nodes" and is_list(value):
        yield from filter(is_json_object, value)


def _is_size(value: object) -> bool:
    if not isinstance(value, str) or len(value) > 2000:
        return False
    plain = _NAMED.sub(r"\1", value)
    words = _WORDS.findall(plain)
    return bool(_SIGNS.fullmatch(plain)) and all(map(_SYMBOLS.fullmatch, words))


def _is_plain_tree(value: object) -> bool:
    try:
        spec = json.loads(str(value))
    except (ValueError, RecursionError):
        return False
    fields = list(_items(spec))
    types = {str(v) if v is not None else None for k, v in fields if k == "type"}
    return types <= _TREES and "__enum__" not in str(value)


def _refused(path: Path, what: object) -> BadInput:
    return BadInput(
        "{path}: {what!r} in it is no part of an exported network; it is not opened, as it could "
        "run as code",
        path,
        str(what)[:80],
    )


def _strip(program: Json) -> None:
    """Removes conditions as Python text, and what nodes remember beyond their module."""
    program["guards_code"] = []
    for key, value in list(_items(program)):
        for node in _nodes(key, value):
            told = node.get("metadata")
            kept = told.get("nn_module_stack") if is_json_object(told) else None
            node["metadata"] = {"nn_module_stack": kept} if isinstance(kept, str) else {}
        if key == "module_call_graph" and is_list(value):
            del value[1:]
        elif key == "treespec_namedtuple_fields" and is_json_object(value):
            value.clear()


# Weights


def _tensors(archive: _Archive, listed: str, folder: str) -> dict[str, torch.Tensor]:
    """Tensors by name, on the bytes of the file."""
    if listed not in archive.parts:
        _refuse_others(archive)
    found: dict[str, torch.Tensor] = {}
    config = archive.json(listed).get("config")
    for name, told in config.items() if is_json_object(config) else ():
        meta = told.get("tensor_meta") if is_json_object(told) else None
        if not is_json_object(told) or told.get("use_pickle") or not is_json_object(meta):
            raise BadInput(
                "{path}: {name!r} is stored as a pickle, which is never opened; save a program "
                "whose weights are plain tensors",
                archive.path,
                name,
            )
        data = archive.parts.get(f"{folder}{told.get('path_name')}")
        try:
            found[name] = _tensor(meta, data, bool(told.get("is_param")))
        except (TypeError, ValueError, KeyError, RuntimeError):
            raise BadModel("{path}: tensor {name!r} is damaged", archive.path, name) from None
    return found


def _tensor(meta: Json, data: memoryview | None, is_parameter: bool) -> torch.Tensor:
    if data is None:
        raise KeyError
    dtype = serialize.deserialize_scalar_type(schema.ScalarType(meta["dtype"]))
    sizes, strides = (_numbers(meta[key]) for key in ("sizes", "strides"))
    offset = _numbers([meta["storage_offset"]])[0]
    if len(data):
        tensor = torch.as_strided(torch.frombuffer(data, dtype=dtype), sizes, strides, offset)
    elif 0 in sizes:
        tensor = torch.zeros(sizes, dtype=dtype)
    else:
        raise ValueError
    return torch.nn.Parameter(tensor, requires_grad=False) if is_parameter else tensor


def _numbers(values: object) -> list[int]:
    if not is_list(values):
        raise TypeError
    return [_number(v) for v in values]


def _number(value: object) -> int:
    number = value.get("as_int") if is_json_object(value) else None
    if not isinstance(number, int):
        raise TypeError
    return number
