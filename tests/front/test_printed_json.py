"""Every command that prints JSON has a schema; tests/test_api_examples.py holds results to them."""

import json

import pytest
from jsonschema import Draft202012Validator

from litesmith.cli.commands import COMMANDS
from litesmith.errors import BadInput
from litesmith.evidence.folder import RECORDS as FOLDERS
from litesmith.front.printed_json.schemas import (
    PRINTED,
    RECORDS,
    schema_of_printed,
    schema_of_record,
)
from tests.cli.test_cli import litesmith


def test_every_command_with_json_has_a_schema() -> None:
    assert sorted(PRINTED) == sorted(name for name, row in COMMANDS.items() if row.has_json)
    assert {f"{name}-folder" for name in FOLDERS.values()} <= set(RECORDS)


@pytest.mark.parametrize("command", PRINTED)
def test_a_schema_of_what_is_printed(command: str) -> None:
    schema = schema_of_printed(command)
    Draft202012Validator.check_schema(schema)
    assert json.dumps(schema)


@pytest.mark.parametrize("name", RECORDS)
def test_a_schema_of_what_is_kept(name: str) -> None:
    schema = schema_of_record(name)
    Draft202012Validator.check_schema(schema)
    assert json.dumps(schema)


# Commands without an example of their own that prints the same.
LINES = ("catalogue", "catalogue resnet8", "targets")


@pytest.mark.parametrize("line", LINES)
def test_what_a_command_prints(line: str) -> None:
    command, *rest = line.split()
    shown = json.loads(litesmith(command, *rest, "--json").stdout)
    assert Draft202012Validator(schema_of_printed(command)).is_valid(shown)


def test_no_schema_of_what_prints_none() -> None:
    with pytest.raises(BadInput, match="'report' prints no JSON; there are apply, "):
        schema_of_printed("report")
