"""Results in a notebook: small tables, closed, free of foreign markup."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import litesmith
from litesmith import demo_files as demo
from litesmith.data.sources import open_data
from litesmith.diagnosis.slowness import Diagnosis
from litesmith.diagnosis.verdict import Verdict, examine
from litesmith.pages.notebook import TYPES
from litesmith.pages.result_html import FORMATS, html, text
from litesmith.regression.comparison import Manner, compare_models
from litesmith.search.choosing.choose_models import Chosen
from litesmith.search.tuning.tune_search import Found
from litesmith.training.retrain_request import Retrained
from tests import zoo

EVIL = "<script>alert(1)</script>"
MOST_BYTES = 8000


class Balance(HTMLParser):
    """Notes what is opened and not closed, and every attribute that could load something."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.outside: list[str] = []
        self.rows = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.rows += tag == "tr"
        self.outside += [key for key, _ in attrs if key in ("src", "href", "onclick")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def checked(result: object) -> Balance:
    markup = html(result)
    assert len(markup.encode()) < MOST_BYTES
    assert EVIL not in markup and "url(" not in markup
    found = Balance()
    found.feed(markup)
    assert not found.open and not found.outside
    line = text(result)
    assert line.startswith(f"<{type(result).__name__}: ") and "\n" not in line
    return found


def evil(count: int = 1) -> litesmith.Model:
    """A chain of ops whose tensors are called what no page must run."""
    b = litesmith.Builder()
    y = b.input(EVIL, (1, 4))
    for number in range(count):
        y = b.op("ABS" if number % 2 else "EXP", y, name=f"{EVIL}{number}")
    return b.model(y)


def test_the_types_are_those_that_have_a_function() -> None:
    named = {getattr(import_module(module), name) for module, name in TYPES.items()}
    assert named == set(FORMATS)


@pytest.mark.parametrize("make", zoo.MODELS.values(), ids=zoo.MODELS)
def test_every_model_has_a_table(make) -> None:
    checked(make())


def test_names_of_a_model_are_no_markup() -> None:
    found = checked(evil(60))
    assert found.rows == 2 + 1 + 2 + 1  # input, output and two kinds of ops under their heads


def test_a_profile_has_its_slowest_ops_and_says_how_many_more() -> None:
    found = litesmith.profile(evil(60), runs=2)
    assert checked(found).rows == 1 + 12
    assert "and 48 more ops" in html(found)


def test_times_accuracy_and_both(tmp_path: Path) -> None:
    model, data = demo.write(tmp_path)
    with np.load(data) as arrays:
        few = {"x": arrays["x"][:64], "y": arrays["y"][:64]}
    change = litesmith.apply(litesmith.load(model), "cleanup | fold | fuse")
    assert "fused" in html(change)
    checked(change)
    litesmith.save(change.model, tmp_path / "fused.tflite")
    both = [model, tmp_path / "fused.tflite"]
    assert checked(litesmith.bench(both, runs=12)).rows == 3
    scored = litesmith.evaluate(both[1], few, against=model)
    checked(scored)
    assert f"{100 * scored.value:.2f} %" in html(scored) and "difference" in html(scored)
    verdict = examine(litesmith.load(model), open_data(few, litesmith.load(model)))
    checked(verdict)
    assert verdict.sentence.split(":")[0] in html(verdict)


def test_compared() -> None:
    found = compare_models(zoo.convnet(), zoo.convnet(), None, Manner(seconds=0.2))
    assert checked(found).rows == 3


def test_a_search_and_a_choice_mark_what_was_taken(tmp_path: Path) -> None:
    facts = {"best": None, "verdict": None, "sentence": EVIL, "warnings": [EVIL]}
    checked(Found(tmp_path, None, facts, (), 0))
    assert "litesmith report &#x27;my folder&#x27;" in html(
        Found(Path("my folder"), None, facts, (), 0)
    )
    row = dict.fromkeys(("low", "high", "p50_us", "bytes")) | {"value": None, "unit": ""}
    rows = [{**row, "model": EVIL}, {**row, "model": "b", "value": 0.5, "bytes": 12, "p50_us": 2.0}]
    chosen = Chosen(
        tmp_path, None, {"reason": "b", "warnings": [], "candidates": rows, "pick": "b"}, 0
    )
    assert checked(chosen).rows == 3
    assert re.search(r"★</td><td><code>b</code>", html(chosen))


def test_a_verdict_names_what_is_no_text_in_letters() -> None:
    found = Diagnosis("what", f"{EVIL}\udcff", "why", "costs", "litesmith show 'a\udcff'")
    shown = Verdict("a sentence", (found,))
    checked(shown)
    html(shown).encode()  # which half a character would not stand


def test_a_retrained_model_has_a_row_a_class(tmp_path: Path) -> None:
    b = litesmith.Builder()
    weight = np.eye(4, dtype=np.float32)
    litesmith.save(
        b.model(b.op("FULLY_CONNECTED", b.input("x", (1, 4)), weight, None)), tmp_path / "m.tflite"
    )
    random = np.random.default_rng(0)
    y = np.arange(60) % 3
    x = (np.eye(4)[y] + random.normal(0, 0.1, (60, 4))).astype(np.float32)
    found = litesmith.retrain(tmp_path / "m.tflite", {"x": x, "y": y}, tmp_path / "out.tflite")
    assert type(found) is Retrained
    assert checked(found).rows == 1 + 3


def test_nothing_is_registered_where_there_is_no_notebook() -> None:
    program = "from litesmith.pages.notebook import register; print(register())"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert shown.stdout == "False\n", shown.stderr


def test_a_shell_shows_them_once_the_package_is_imported() -> None:
    pytest.importorskip("IPython")
    program = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
import litesmith
b = litesmith.Builder()
model = b.model(b.op("ABS", b.input("x", (1, 4))))
shown, _ = shell.display_formatter.format(model)
print(*sorted(shown), shown["text/html"].count("</table>"), shown["text/plain"][:20])
"""
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert shown.stdout == "text/html text/plain 2 <Model: 1 op, 0 para\n", shown.stderr
