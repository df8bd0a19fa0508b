"""Every public name has a docstring with an example, and the examples run."""

import doctest
import json
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator

import litesmith
from litesmith.evidence.json_schema import Schema
from litesmith.front.printed_json.schemas import schema_of_printed, schema_of_record
from tests.docs_folder import write_folder

NAMES = [name for name in litesmith.__all__ if name != "__version__"]

# Examples that need what other examples do not, or that another test runs.
NEEDS = {"convert": "onnx", "qat": "torch"}
COMMANDS = {"Change": "apply", "evaluate": "eval", "update_baseline": "gate"}
ELSEWHERE = {"demo": "tests/cli/commands/test_demo.py"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("examples")
    write_folder(place)
    return place


def examples_of(name: str) -> doctest.DocTest:
    text = getattr(litesmith, name).__doc__ or ""
    globs = {"litesmith": litesmith, "np": np}
    return doctest.DocTestParser().get_doctest(text, globs, name, None, 0)


@pytest.mark.parametrize("name", NAMES)
def test_it_has_an_example_that_uses_it(name: str) -> None:
    shown = [one.source for one in examples_of(name).examples]
    uses = f"litesmith.{name}(" if not isinstance(getattr(litesmith, name), type) else "litesmith."
    assert any(uses in source for source in shown) or name in ("Change", "record", "span")


# `report` looks at the folder that `tune` wrote.
RUN = [*sorted({*NAMES} - {*ELSEWHERE, "report"}), "report"]


@pytest.mark.parametrize("name", RUN)
def test_its_example_runs(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    monkeypatch.chdir(folder)
    if name == "report" and not (folder / "model-tuned").exists():
        litesmith.tune("model.tflite", "val.npz", max_drop="5pt", runs=12)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    shown: list[str] = []
    runner = doctest.DocTestRunner(optionflags=flags, verbose=False)
    example = examples_of(name)
    failed, tried = runner.run(example, out=shown.append, clear_globs=False)
    assert tried and not failed, "".join(shown)
    for value in example.globs.values():
        if hasattr(value, "to_json"):
            schema = schema_of_printed(COMMANDS.get(name, name))
            assert faults(schema, value.to_json()) == []


def faults(schema: Schema, shown: object) -> list[str]:
    """What is not as a schema says, as JSON would have it."""
    validator = Draft202012Validator(schema)
    return [error.message for error in validator.iter_errors(json.loads(json.dumps(shown)))]


FILES = {
    "baseline.json": "baseline",
    "model-tuned/tune.json": "tune-folder",
    "model-tuned/recipe.json": "recipe",
    "chosen/choose.json": "choose-folder",
}


@pytest.mark.parametrize("file", FILES)
def test_what_examples_leave_is_as_its_schema_says(file: str, folder: Path) -> None:
    if not (folder / file).exists():
        pytest.skip("the example that leaves it did not run, or found nothing")
    assert (
        faults(schema_of_record(FILES[file]), json.loads((folder / file).read_text("utf-8"))) == []
    )


def test_what_another_test_runs_is_there() -> None:
    for path in ELSEWHERE.values():
        assert (Path(__file__).parents[1] / path).is_file()
