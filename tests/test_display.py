"""Results in a notebook: small tables, closed, free of foreign markup."""

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Protocol

import numpy as np
import pytest

import litesmith
from litesmith import demo_files as demo
from litesmith.diagnosis.slowness import Diagnosis
from litesmith.front.doctor import Slowness
from litesmith.training.teaching.retrain_result import Retrained
from tests import zoo

EVIL = "<script>alert(1)</script>"
MOST_BYTES = 8000


class Shown(Protocol):
    """A result that a notebook shows."""

    def _repr_html_(self) -> str: ...


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


def checked(result: Shown) -> Balance:
    markup = result._repr_html_()
    assert len(markup.encode()) < MOST_BYTES
    assert EVIL not in markup and "url(" not in markup
    found = Balance()
    found.feed(markup)
    assert not found.open and not found.outside
    line = repr(result)
    assert line.startswith(f"<{type(result).__name__}: ") and "\n" not in line
    return found


def evil(count: int = 1) -> litesmith.Model:
    """A chain of ops whose tensors are called what no page must run."""
    b = litesmith.Builder()
    y = b.input(EVIL, (1, 4))
    for number in range(count):
        y = b.op("ABS" if number % 2 else "EXP", y, name=f"{EVIL}{number}")
    return b.model(y)


@pytest.mark.parametrize("make", zoo.MODELS.values(), ids=zoo.MODELS)
def test_every_model_has_a_table(make) -> None:
    checked(litesmith.inspect(make()))


def test_names_of_a_model_are_no_markup() -> None:
    assert checked(litesmith.inspect(evil(60))).rows == 1 + 2  # two kinds of ops under their head
    assert checked(litesmith.inspect(evil(60), ops=True)).rows == 1 + 12


def test_a_profile_has_its_slowest_ops_and_says_how_many_more() -> None:
    found = litesmith.profile(evil(60), runs=2)
    assert checked(found).rows == 1 + 12
    assert "and 48 more rows" in found._repr_html_()


def test_times_accuracy_and_both(tmp_path: Path) -> None:
    model, data = demo.write(tmp_path)
    with np.load(data) as arrays:
        few = {"x": arrays["x"][:64], "y": arrays["y"][:64]}
    change = litesmith.apply(litesmith.load(model), "cleanup | fold | fuse")
    assert "fused" in change._repr_html_()
    checked(change)
    litesmith.save(change.model, tmp_path / "fused.tflite")
    both = [model, tmp_path / "fused.tflite"]
    assert checked(litesmith.bench(both, runs=12)).rows == 3
    scored = litesmith.evaluate(both[1], few, against=model)
    checked(scored)
    markup = scored._repr_html_()
    assert f"{100 * scored.value:.2f} %" in markup and "difference" in markup
    found = litesmith.doctor(model, few, seconds=0.05)
    checked(found)
    assert found.sentence.split(":")[0] in found._repr_html_()


def test_compared() -> None:
    found = litesmith.compare(zoo.convnet(), zoo.convnet(), seconds=0.2)
    assert checked(found).rows == 3


def test_a_verdict_names_what_is_no_text_in_letters() -> None:
    found = Diagnosis("what", f"{EVIL}\udcff", "why", "costs", "litesmith show 'a\udcff'")
    shown = Slowness(None, "cpu:1", None, (found,))
    checked(shown)
    shown._repr_html_().encode()  # which half a character would not stand


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
    program = "from litesmith.front.notebook import register; print(register())"
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
    assert shown.stdout == "text/html text/plain 1 <Model: 1 ops, 0 par\n", shown.stderr
