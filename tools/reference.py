"""Pages of reference, made from the code: every option, the Python API, the schemas of JSON."""

import inspect
import json
import re
import textwrap
from collections.abc import Iterator

import click

import litesmith
from litesmith.cli.call import FUNCTIONS, call
from litesmith.cli.commands import COMMANDS
from litesmith.cli.options.declare import Option, make_click
from litesmith.cli.options.examples import EXAMPLES
from litesmith.cli.options.panels import PANELS, place_of
from litesmith.cli.options.topics import GROUPS, TOPICS
from litesmith.front.printed_json.schemas import (
    PRINTED,
    RECORDS,
    schema_of_printed,
    schema_of_record,
)

_ERRORS = ("BadInput", "BadModel", "CannotApply", "CannotRun", "LitesmithError")


def options_page() -> str:
    """A page with every command: its options in panels, and examples."""
    return "\n".join(_options_lines()) + "\n"


def _options_lines() -> Iterator[str]:
    yield "# Every option\n"
    yield "This page is made from the code; `litesmith COMMAND --help` prints the same.\n"
    for title, names in GROUPS:
        yield f"## {title}\n"
        for name in names:
            yield from _command_lines(name)
    yield "## Topics\n"
    for name, topic in TOPICS.items():
        yield f"### litesmith help {name}\n\n{_cell(topic.about)}\n"
        yield from _table(("to type", "meaning"), [(f"`{a}`", _cell(b)) for a, b in topic.rows])


def _command_lines(name: str) -> Iterator[str]:
    command = COMMANDS[name]
    yield f"### litesmith {name} {{ #{name} }}\n\n{_cell(command.help)}\n"
    usage = make_click(name, command, call)
    pieces = usage.collect_usage_pieces(click.Context(usage))
    yield f"```text\nlitesmith {name} {' '.join(pieces)}\n```\n"
    places = [one for one in command.options if not one.names]
    if places:
        rows = [(f"`{one.metavar}`", _cell(one.help)) for one in places]
        yield from _table(("argument", "meaning"), rows)
    for title, options in _panels(name):
        yield from _table((title, "meaning"), [(_typed(one), _meaning(one)) for one in options])
    yield "```text"
    for words, purpose in EXAMPLES[name]:
        yield f"# {purpose}\n{words}"
    yield "```\n"
    public = FUNCTIONS.get(name, name)
    yield f"In Python: [`litesmith.{public}`](api.md#{public}).\n"


def _panels(name: str) -> Iterator[tuple[str, list[Option]]]:
    shown = [one for one in COMMANDS[name].options if one.names and not one.hidden]
    for number, panel in enumerate(PANELS):
        own = [one for one in shown if _place(name, one)[0] == number]
        if own:
            yield panel.title, sorted(own, key=lambda one: _place(name, one))


def _place(command: str, one: Option) -> tuple[int, int]:
    return place_of(command, [part for name in one.names for part in name.split("/")])


def _typed(one: Option) -> str:
    names = ", ".join(name for name in one.names if "_" not in name)
    return f"`{names} {one.metavar or ''}".rstrip() + "`"


def _meaning(one: Option) -> str:
    default = one.show_default or ("" if one.kind is bool else one.default or "")
    told = "required" if one.required else default
    return _cell(one.help) + (f" *[{_cell(told)}]*" if told else "")


def _table(head: tuple[str, str], rows: list[tuple[str, str]]) -> Iterator[str]:
    yield f"| {head[0]} | {head[1]} |\n|---|---|"
    yield from (f"| {_escape(a)} | {b} |" for a, b in rows)
    yield ""


def _escape(text: str) -> str:
    return text.replace("|", "\\|")


def _cell(text: str) -> str:
    """A help text as a cell of a Markdown table."""
    plain = _escape(str(text)).replace("<", "&lt;").replace("*", "\\*")
    return re.sub(r"(?<![\w`-])(--[a-z][a-z-]*)", r"`\1`", plain)


def api_page() -> str:
    """Every public name with its signature, its docstring and an example that runs."""
    return "\n".join(_api_lines()) + "\n"


def _api_lines() -> Iterator[str]:
    yield "# Python API\n"
    yield (
        "Made from the docstrings. Every example runs in the test suite, in a folder with "
        "`model.tflite` (a float classifier), `int8.tflite` (the same, quantized) and `val.npz` "
        "(labelled samples), after `import litesmith` and `import numpy as np`.\n"
    )
    names = [name for name in litesmith.__all__ if name != "__version__"]
    kinds = {
        "Functions": [n for n in names if not isinstance(getattr(litesmith, n), type)],
        "Types": [n for n in names if isinstance(getattr(litesmith, n), type) and n not in _ERRORS],
        "Errors": list(_ERRORS),
    }
    for title, own in kinds.items():
        yield f"## {title}\n"
        for name in own:
            yield from _name_lines(name)


def _name_lines(name: str) -> Iterator[str]:
    value = getattr(litesmith, name)
    yield f"### litesmith.{name} {{ #{name} }}\n"
    if name not in _ERRORS:
        yield f"```python\n{_signature(name, value)}\n```\n"
    yield from _docstring(inspect.getdoc(value) or "")


def _signature(name: str, value: object) -> str:
    """A signature, with a line for each parameter where it is long."""
    parameters = inspect.signature(value).parameters.values()  # type: ignore[arg-type]
    shown = [_parameter(one) for one in parameters]
    keywords = [n for n, one in enumerate(parameters) if one.kind is one.KEYWORD_ONLY]
    if keywords:
        shown.insert(keywords[0], "*")
    line = f"{name}({', '.join(shown)})"
    return line if len(line) <= 80 else f"{name}(\n" + "".join(f"    {s},\n" for s in shown) + ")"


def _parameter(one: inspect.Parameter) -> str:
    if one.kind is one.VAR_KEYWORD:
        return f"**{one.name}"
    star = "*" if one.kind is one.VAR_POSITIONAL else ""
    default = "" if one.default is one.empty else f"={_default(one.default)}"
    return f"{star}{one.name}{default}"


def _default(value: object) -> str:
    shown = repr(value)
    return "…" if callable(value) or len(shown) > 40 or " at 0x" in shown else shown


def _docstring(text: str) -> Iterator[str]:
    """A docstring as Markdown; examples and columns become code."""
    for part in re.split(r"\n\s*\n", text):
        body = textwrap.dedent(part).strip("\n")
        if body.lstrip().startswith(">>>"):
            yield f"```python\n{re.sub(r'  # doctest: .*', '', body)}\n```\n"
        elif re.search(r"^\w[\w, ]*  +\S", body, re.MULTILINE):
            yield f"```text\n{body}\n```\n"
        else:
            yield f"{body}\n"


def json_pages() -> dict[str, str]:
    """The page about JSON, and a schema for every printed object and kept file."""
    files = {f"reference/{name}.schema.json": schema_of_printed(name) for name in PRINTED}
    files |= {f"reference/{name}.schema.json": schema_of_record(name) for name in RECORDS}
    texts = {name: json.dumps(schema, indent=1) + "\n" for name, schema in files.items()}
    return {"reference/json.md": "\n".join(_json_lines()) + "\n", **texts}


def _json_lines() -> Iterator[str]:
    yield "# JSON for programs\n"
    yield (
        "Every command with `--json` prints one object; every folder and baseline is JSON too. The "
        "schemas (JSON Schema 2020-12) are made from the types in the code, and tests hold what is "
        "printed against them. Keys are only added within a version of `schema`. Numbers that are "
        "not finite are null. Times are in microseconds, sizes in bytes, shares from 0 to 1.\n"
    )
    yield "## What `--json` prints\n"
    yield from _schema_table(PRINTED, schema_of_printed)
    yield "## What is kept in files\n"
    yield (
        'A sentence is kept as its template and values (`{"text": …, "values": …}`), so that a '
        "page can be made in any language later.\n"
    )
    yield from _schema_table(RECORDS, schema_of_record)


def _schema_table(rows: object, schema_of: object) -> Iterator[str]:
    yield "| of | keys | schema |\n|---|---|---|"
    for name in rows:  # type: ignore[attr-defined]
        schema = schema_of(name)  # type: ignore[operator]
        keys = _keys(schema)
        told = ", ".join(f"`{key}`" for key in keys)
        yield f"| {schema['title']} | {told} | [{name}]({name}.schema.json) |"
    yield ""


def _keys(schema: dict[str, object]) -> list[str]:
    """The keys of an object; of several alternatives, the keys of all."""
    found: dict[str, None] = {}
    for one in [schema, *schema.get("anyOf", ())]:  # type: ignore[misc]
        target = one
        if "$ref" in one:
            target = schema["$defs"][one["$ref"].rpartition("/")[2]]  # type: ignore[index]
        found |= dict.fromkeys(target.get("properties", {}))
    return list(found)
