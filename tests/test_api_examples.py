"""Every public name has a docstring with an example, and the examples run."""

import doctest
from pathlib import Path

import numpy as np
import pytest

import litesmith
from tests.docs_folder import write_folder

NAMES = [name for name in litesmith.__all__ if name != "__version__"]

# Examples that need what other examples do not, or that another test runs.
NEEDS = {"convert": "onnx", "qat": "torch"}
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
    failed, tried = runner.run(examples_of(name), out=shown.append)
    assert tried and not failed, "".join(shown)


def test_what_another_test_runs_is_there() -> None:
    for path in ELSEWHERE.values():
        assert (Path(__file__).parents[1] / path).is_file()
