"""Functions of the user's: what fails in them is told as theirs, in one line."""

from pathlib import Path

import numpy as np
import pytest

from litesmith import BadInput
from litesmith.accuracy.metrics import metric_name
from litesmith.data.sources import open_data
from litesmith.data.user_functions import users_function
from tests.data.test_sources import scorer

BROKEN = {
    "divides": ("1 / 0", "divides:f: its own code failed with ZeroDivisionError"),
    "misspelt": ("def f(:", "misspelt:f: its own code failed with SyntaxError"),
    "imports": ("import not_there_at_all", "imports:f: its own code failed with ModuleNotFound"),
    "leaves": ("raise SystemExit(3)", "leaves:f: its own code failed with SystemExit: 3"),
    "empty_one": ("", "module empty_one has no function 'f'"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_module_that_fails_is_told_in_a_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, told = BROKEN[name]
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    for use in (metric_name, lambda source: open_data(source, scorer())):
        with pytest.raises(BadInput) as found:
            use(f"{name}:f")
        assert told in str(found.value) and "\n" not in str(found.value)


@pytest.mark.parametrize("name", ["nothing_here:f", "nothing_here.deeper:f", ":f", ".here:f"])
def test_a_module_that_is_not_there(name: str) -> None:
    with pytest.raises(BadInput, match="no module"):
        users_function(name)


def test_a_function_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fine.py").write_text("def f(): return [3]")
    monkeypatch.syspath_prepend(tmp_path)
    assert np.asarray(users_function("fine:f")()).tolist() == [3]
