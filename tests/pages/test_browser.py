"""The page in a real browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from litesmith.lang.language import LANGUAGES, speaking
from litesmith.pages.folder_kinds import write_report, write_runs
from tests.pages import folders, retrained
from tests.pages.browser import WHY_NOT, Browser, browser
from tests.pages.test_folder_kinds import EXAMPLES

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)

WIDTHS = (360, 768, 1024, 1200, 1280, 1920)
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"

# Pairs of words of a chart that lie over each other: labels, words at lines, numbers at axes.
COLLISIONS = """(() => {
  const met = [];
  for (const chart of document.querySelectorAll("svg.graph, .ticks, .heights")) {
    const words = [...chart.querySelectorAll("text, span")].filter((one) => one.textContent.trim());
    const boxes = words.map((one) => one.getBoundingClientRect());
    boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b, j) => {
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const up = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across > 1 && up > 3) met.push([words[i].textContent, words[i + 1 + j].textContent]);
    }));
  }
  return met;
})()"""
CHARTS = "[...document.querySelectorAll('svg.graph, figure.chart')]"
BETTER = f"{CHARTS}.map(one => one.querySelectorAll('.better').length)"
TIPS = "[...document.querySelectorAll('.tips')]"
MARKS = f"{TIPS}.map(one => one.querySelectorAll('[data-tip]').length)"
STOPS = f"{TIPS}.map(one => one.querySelectorAll('[tabindex=\"0\"]').length)"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("pages")
    return {name: write_report(make(root / name)) for name, make in folders.MOMENTS.items()}


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Path]]:
    """A page of every kind, and one of several runs, by language."""
    root = tmp_path_factory.mktemp("every")
    made = {name: make(root / name) for name, make in EXAMPLES.items()}
    found: dict[str, dict[str, Path]] = {}
    for lang in LANGUAGES:
        with speaking(lang):
            found[lang] = {
                name: write_report(folder, root / f"{name}-{lang}.html")
                for name, folder in made.items()
            }
            found[lang]["runs"] = write_runs([*made.values()], root / f"runs-{lang}.html")
    return found


@pytest.mark.parametrize("kind", [*EXAMPLES, "runs"])
def test_no_page_is_too_wide_and_no_words_of_a_chart_collide(
    kind: str, shown: Browser, every: dict[str, dict[str, Path]]
) -> None:
    """On a phone and on a desk, in every language."""
    for lang, pages in every.items():
        for width, dark in ((390, True), (1280, False)):
            shown.open(pages[kind], width, dark=dark)
            assert shown.ask(OVERFLOW) <= 0, f"{kind} in {lang} is wider than {width} pixels"
            assert shown.ask(COLLISIONS) == [], f"{kind} in {lang} at {width} pixels"
    assert shown.complaints() == []


@pytest.mark.parametrize("kind", [*EXAMPLES, "runs"])
def test_every_chart_has_an_axis_and_answers(
    kind: str, shown: Browser, every: dict[str, dict[str, Path]]
) -> None:
    """Which way is better is marked, and one press of the tab key leads into each chart."""
    shown.open(every["en"][kind], 1280)
    better, marks, stops = (shown.ask(script) for script in (BETTER, MARKS, STOPS))
    assert better and all(better)
    assert len(marks) >= len(better) and all(marks)
    assert stops == [1] * len(stops)


def test_arrows_lead_from_mark_to_mark(shown: Browser, every: dict[str, dict[str, Path]]) -> None:
    shown.open(every["en"]["bench"], 1280)
    shown.ask("document.querySelector('.bars [data-tip]').focus()")
    told = "document.getElementById('tip').innerText"
    first = shown.ask(told)
    shown.press("ArrowRight")
    second = shown.ask(told)
    assert first.startswith("cpu:1") and second.startswith("gpu")
    shown.press("Home")
    assert shown.ask(told) == first


def test_a_filter_leaves_the_rows_and_bars_with_its_words(
    shown: Browser, every: dict[str, dict[str, Path]]
) -> None:
    shown.open(every["en"]["runs"], 1280)
    for words, left in (("tune", 1), ("tune mobilenet", 1), ("nowhere", 0), ("", len(EXAMPLES))):
        typed = f"const f = document.getElementById('filter'); f.value = '{words}'"
        sent = "f.dispatchEvent(new Event('input'))"
        shown.ask(f"(() => {{ {typed}; {sent}; }})()")
        rows = "document.querySelectorAll('tr[data-filter]:not([hidden])').length"
        assert shown.ask(rows) == left
        bars = "document.querySelectorAll('li[data-filter]:not([hidden])').length"
        assert shown.ask(bars) <= 2 * left


@pytest.mark.parametrize("moment", folders.MOMENTS)
def test_it_is_read_at_any_width_without_a_complaint(
    moment: str, shown: Browser, pages: dict[str, Path]
) -> None:
    for width in WIDTHS:
        shown.open(pages[moment], width, dark=width == 1024)
        assert shown.ask(OVERFLOW) <= 0, f"{moment} is wider than {width} pixels"
        inner = "[...document.querySelectorAll('.scroll')].map(e => e.scrollWidth - e.clientWidth)"
        assert all(wider <= 0 for wider in shown.ask(inner)), f"{moment}: a table at {width} pixels"
    assert shown.complaints() == []


def test_long_names_do_not_widen_the_page(shown: Browser, tmp_path: Path) -> None:
    told = {**folders.summary(), "model": "m" * 200, "sentence": "s" * 300}
    folder = folders.write_folder(tmp_path, told)
    shown.open(write_report(folder), 360)
    assert shown.ask(OVERFLOW) <= 0


def test_both_graphs_are_drawn(shown: Browser, pages: dict[str, Path]) -> None:
    shown.open(pages["done"], 1280)
    scored = sum(one[5] is not None for one in folders.TRIED)
    for name in ("size", "latency"):
        graph = f"svg[data-graph={name}]"
        assert shown.ask(f"document.querySelectorAll('{graph} .point').length") == scored
        assert shown.ask(f"document.querySelectorAll('{graph} .star').length") == 1
        assert shown.ask(f"document.querySelectorAll('{graph} line.budget').length") == 1
        box = f"document.querySelector('{graph}').getBoundingClientRect()"
        assert shown.ask(f"{box}.width") > 300 and shown.ask(f"{box}.height") > 200
        star = f"document.querySelector('{graph} .star .shape')"
        assert shown.ask(f"getComputedStyle({star}).fill") != "rgb(0, 0, 0)"


@pytest.mark.parametrize("width", [360, 1280])
def test_a_point_tells_of_its_trial(width: int, shown: Browser, pages: dict[str, Path]) -> None:
    shown.open(pages["done"], width)
    assert shown.ask("document.getElementById('tip').hidden")
    shown.ask("document.querySelector('svg[data-graph=size]').scrollIntoView({block: 'center'})")
    shown.point_at("svg[data-graph=size] .point[data-trial=float16] .shape")
    told = shown.ask("document.getElementById('tip').innerText")
    assert told.startswith("float16\n") and "quantize(to=float16)" in told and "8.46 MB" in told
    box = shown.ask("document.getElementById('tip').getBoundingClientRect().toJSON()")
    assert told.count("\n") > 4  # which only what is visible has
    assert box["left"] >= 0 and box["right"] <= width
    assert shown.ask("document.querySelectorAll('.point.active, tr.active').length") == 3
    assert shown.ask("document.querySelector('tr.active th b').textContent") == "float16"


def test_a_heading_sorts_and_unknowns_stay_last(shown: Browser, pages: dict[str, Path]) -> None:
    shown.open(pages["done"], 1280)
    column = "[...document.querySelectorAll('.trials tbody tr')].map(r => r.cells[6].dataset.sort)"
    titles = "[...document.querySelectorAll('.trials thead th')].map(h => h.textContent)"
    assert shown.ask(titles)[6] == "File"
    before = shown.ask(column)
    for backward in (False, True):
        shown.click(".trials thead th:nth-child(7) button")
        found = shown.ask(column)
        known = [float(one) for one in found if one]
        assert known == sorted(known, reverse=backward)
        assert all(found[: len(known)]) and sorted(found) == sorted(before)


def test_it_prints(shown: Browser, pages: dict[str, Path]) -> None:
    shown.open(pages["done"], 1280)
    printed = shown.printed()
    assert printed.startswith(b"%PDF") and len(printed) > 20_000


def test_nothing_but_our_own_script_runs(
    shown: Browser, pages: dict[str, Path], tmp_path: Path
) -> None:
    planted = (
        "<script>document.title = 'mine'</script><img src=x onerror=\"document.title = 'mine'\">"
    )
    page = tmp_path / "planted.html"
    text = pages["done"].read_text(encoding="utf-8")
    page.write_text(text.replace("</main>", f"{planted}</main>"), encoding="utf-8")
    shown.open(page, 1280)
    assert shown.ask("document.title") != "mine"
    refused = [line for line in shown.complaints() if "Content Security Policy" in line]
    assert len(refused) >= 2


def test_the_page_of_a_retraining_keeps_to_its_policy(shown: Browser, tmp_path: Path) -> None:
    shown.open(write_report(retrained.write_folder(tmp_path / "made")), 1280)
    assert [line for line in shown.complaints() if "Content Security Policy" in line] == []
