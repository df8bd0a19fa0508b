"""The page of graphs in a real browser: what a reader does, and what it answers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import litesmith
from tests import zoo_float
from tests.pages.browser import WHY_NOT, Browser, browser
from tests.pages.graph.views import HOSTILE, blocks, rename, write_pair

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
CANVAS = "litesmithGraph.canvas"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pair(tmp_path_factory.mktemp("pair"))


def click_at(shown: Browser, box: str, times: int = 1) -> None:
    """A real click of the mouse on a box of the drawing."""
    place: dict[str, float] = shown.ask(
        f"""(() => {{
          const canvas = {CANVAS};
          canvas.canvas.scrollIntoView({{ block: "center" }});
          const box = {box};
          const at = canvas.toScreen(box);
          const rect = canvas.canvas.getBoundingClientRect();
          const s = canvas.camera.scale;
          return {{ x: rect.left + at.x + 40 * s, y: rect.top + at.y + 20 * s }};
        }})()"""
    )
    for kind in ("mousePressed", "mouseReleased"):
        event = {"type": kind, "button": "left", "clickCount": times, **place}
        shown.command("Input.dispatchMouseEvent", event)


def press(shown: Browser, key: str) -> None:
    """A real key, on the drawing."""
    shown.ask(f"({CANVAS}.canvas.focus(), true)")
    for kind in ("keyDown", "keyUp"):
        shown.command("Input.dispatchKeyEvent", {"type": kind, "key": key})


def choose(shown: Browser, selector: str, value: str) -> None:
    shown.ask(
        f"""(() => {{
          const one = document.querySelector("{selector}");
          one.value = "{value}";
          one.dispatchEvent(new Event(one.type === "search" ? "input" : "change"));
          return true;
        }})()"""
    )


def panel(shown: Browser) -> str:
    return shown.ask("document.querySelector('.graph-panel').innerText")


def camera(shown: Browser) -> dict[str, Any]:
    return shown.ask(f"({{...{CANVAS}.camera}})")


def count(shown: Browser) -> int:
    return shown.ask(f"{CANVAS}.drawing.nodes.length")


def test_what_a_reader_does(shown: Browser, pair: Path) -> None:
    """Twelve things, one after the other, on one page."""
    shown.open(pair, 1280)
    assert shown.ask("document.querySelector('.graph-view').classList.contains('ready')")

    # 1. every block is folded
    everything = count(shown)
    shown.click("[data-act=close]")
    assert count(shown) < everything

    # 2. a click opens a block; both models have it open
    click_at(shown, f"{CANVAS}.drawing.sides[0].boxes.find(box => box.node.block)")
    assert shown.ask(f"{CANVAS}.drawing.sides.map(side => side.frames.length)") == [1, 1]

    # 3. a click on an op tells what is known of it, of both models
    shown.click("[data-act=open]")
    conv = f"{CANVAS}.drawing.sides[1].boxes.find(box => {CANVAS}.words(box)[0].includes('CONV'))"
    click_at(shown, conv)
    told = panel(shown)
    assert "CONV_2D" in told and "quantized" in told and "dB" in told and "Weights" in told
    assert "float32" in told and "int8" in told and "edgetpu" not in told

    # 4. accelerators and tensors unfold
    shown.click(".graph-homes summary")
    assert "edgetpu" in panel(shown) and "✗" in panel(shown)

    # 5. another colour changes the legend and the boxes
    before = shown.ask(f"{CANVAS}.drawing.sides[1].boxes.map(box => box.fill).join()")
    choose(shown, ".graph-colours", "form")
    legend = shown.ask("document.querySelector('.graph-legend').innerText")
    assert "float32" in legend and "int8" in legend
    assert shown.ask(f"{CANVAS}.drawing.sides[1].boxes.map(box => box.fill).join()") != before

    # 6. search finds an op inside a closed block, opens it and goes there
    shown.click("[data-act=close]")
    choose(shown, ".graph-search", "block_2/project")
    assert "1 of 1" in shown.ask("document.querySelector('.graph-status').textContent")
    assert "block_2/project" in panel(shown)

    # 7. keys: to the next op, and to what is around it
    press(shown, "n")
    assert "ADD" in panel(shown)
    press(shown, "f")
    assert "block_2" in panel(shown) and "ADD" not in panel(shown).split("\n")[0]

    # 8. keys zoom and move; both panes have one camera
    start = camera(shown)
    press(shown, "+")
    press(shown, "ArrowDown")
    moved = camera(shown)
    assert moved["scale"] > start["scale"] and moved["y"] != start["y"]

    # 9. the small map moves the camera
    shown.click(".graph-map")
    assert camera(shown)["y"] != moved["y"]

    # 10. the path of the largest loss is drawn
    shown.click(".graph-path")
    on_path = f"{CANVAS}.showsPath && {CANVAS}.drawing.sides[1].boxes.some(box => box.onPath)"
    assert shown.ask(on_path)

    # 11. one side alone has the whole canvas
    choose(shown, ".graph-sides", "1")
    assert shown.ask(f"{CANVAS}.pane(1).width === {CANVAS}.width")
    choose(shown, ".graph-sides", "both")

    # 12. keep float: the recipe and the command can be copied
    click_at(shown, f"({CANVAS}.reveal(2, 0), {CANVAS}.boxOf(2, 0))")
    shown.click(".graph-choice input[value=float]")
    recipe = shown.ask("document.querySelector('.graph-recipe').textContent")
    command = shown.ask("document.querySelector('.graph-command').textContent")
    assert recipe == "quantize(to=int8, keep=[0])"
    assert command.startswith("litesmith quantize ") and " --keep 0 " in command
    assert shown.complaints() == []


def test_boxes_never_overlap_and_edges_point_down(shown: Browser, pair: Path) -> None:
    laws = f"""(() => {{
      const broken = [];
      for (const side of {CANVAS}.drawing.sides) {{
        side.boxes.forEach((p, n) => side.boxes.slice(n + 1).forEach((q) => {{
          if (p.y === q.y && Math.abs(p.x - q.x) < p.width) broken.push("overlap");
          if (p.y < q.y && q.y < p.y + 46) broken.push("too near");
        }}));
        for (const edge of side.edges)
          if (side.byNode.get(edge.from).y >= side.byNode.get(edge.to).y) broken.push("upward");
      }}
      return broken;
    }})()"""
    shown.open(pair, 1280)
    for act in ("open", "close"):
        shown.click(f"[data-act={act}]")
        assert shown.ask(laws) == []
    same = f"""{CANVAS}.drawing.nodes.every((node) => {{
      const boxes = {CANVAS}.drawing.sides.map(side => side.byNode.get(node.index));
      return !boxes[0] || !boxes[1] || boxes[0].y === boxes[1].y;
    }})"""
    assert shown.ask(same), "an op and its counterpart stand at the same height"


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False)])
def test_it_fits_any_width_without_a_complaint(
    width: int, dark: bool, shown: Browser, pair: Path
) -> None:
    shown.open(pair, width, dark=dark)
    assert shown.ask(OVERFLOW) <= 0
    assert shown.ask(f"{CANVAS}.width") <= width
    assert shown.ask("[...document.querySelectorAll('canvas')].every(c => c.width > 20)")
    assert shown.complaints() == []


def test_control_flow_opens_the_graph_it_runs(shown: Browser, tmp_path: Path) -> None:
    page = tmp_path / "loop.html"
    litesmith.view(zoo_float.looping(), out=page, predict=True)
    shown.open(page, 1280)
    assert shown.ask("document.querySelectorAll('.graph-graphs option').length") == 3
    click_at(
        shown, f"{CANVAS}.drawing.sides[0].boxes.find(b => {CANVAS}.words(b)[0].includes('WHILE'))"
    )
    assert "≈" in shown.ask("document.querySelector('.graph-legend').innerText")
    shown.click(".graph-panel button")
    assert shown.ask(f"{CANVAS}.graph") == 1
    choose(shown, ".graph-graphs", "0")
    assert shown.ask(f"{CANVAS}.graph") == 0


def test_letters_can_be_read_on_every_box(shown: Browser, pair: Path) -> None:
    """4.5 to 1, whatever a box is coloured by."""
    contrasts = f"""(() => {{
      const part = (v) => (v <= 10 ? v / 3295 : ((v / 255 + 0.055) / 1.055) ** 2.4);
      const dot = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
      const isWhite = (box) => {CANVAS}.ink(box) === "#ffffff";
      const ratio = (box, own) => (isWhite(box) ? 1.05 / (own + 0.05) : (own + 0.05) / 0.05);
      return litesmithGraph.modes.flatMap((mode) => {{
        {CANVAS}.colour(mode);
        const boxes = {CANVAS}.drawing.sides.flatMap((side) => side.boxes);
        return boxes.filter((box) => box.rgb).map((box) => ratio(box, dot(box.rgb)));
      }});
    }})()"""
    shown.open(pair, 1280)
    found = shown.ask(contrasts)
    assert len(found) > 50 and min(found) >= 4.5


def test_the_wheel_moves_the_graph_and_then_the_page(shown: Browser, pair: Path) -> None:
    shown.open(pair, 1280)
    turn = f"""(() => {{
      const event = new WheelEvent("wheel", {{ deltaY: 400, cancelable: true }});
      {CANVAS}.canvas.dispatchEvent(event);
      return event.defaultPrevented;
    }})()"""
    turned = [shown.ask(turn) for _ in range(9)]
    assert turned[0] and not turned[-1]
    assert turned == sorted(turned, reverse=True)


def test_hostile_names_show_as_text(shown: Browser, tmp_path: Path) -> None:
    page = tmp_path / "hostile.html"
    model = rename(blocks(1), HOSTILE)
    litesmith.view(model, model, out=page, predict=True)
    shown.open(page, 1280)
    click_at(shown, f"{CANVAS}.boxOf(1)")
    assert HOSTILE in panel(shown)
    choose(shown, ".graph-search", "script")
    assert shown.ask("document.title") != "mine"
    assert shown.ask("document.querySelectorAll('.graph-view img, .graph-view script').length") == 1
    assert shown.complaints() == []


def test_the_summary_is_printed_and_the_canvas_is_not(shown: Browser, pair: Path) -> None:
    shown.open(pair, 1280)
    shown.command("Emulation.setEmulatedMedia", {"media": "print"})
    style = "getComputedStyle(document.querySelector('{}')).display"
    assert shown.ask(style.format(".graph-view")) == "none"
    assert shown.ask(style.format("#slowest table")) != "none"
    shown.command("Emulation.setEmulatedMedia", {"media": ""})
    assert shown.printed().startswith(b"%PDF")
