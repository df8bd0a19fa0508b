"""Every page, in four languages, at two widths, light and dark, under axe-core in headless
Chromium: violations, and pages wider than the screen. `npm install axe-core` brings `axe.min.js`.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from report import print_table, verdict_line

from litesmith.lang.language import LANGUAGES, speaking
from litesmith.pages.folder_kinds import write_report, write_runs
from tests.pages.browser import WHY_NOT, Browser, browser
from tests.pages.graph.views import write_pair
from tests.pages.test_folder_kinds import EXAMPLES

SCREENS = ((1280, False), (1280, True), (390, False), (390, True))
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
RUN = """axe.run(document, { resultTypes: ["violations"] }).then((found) =>
  JSON.stringify(found.violations.map((one) => [one.id, one.nodes[0].target.join(" ")])))"""


def make_pages(folder: Path) -> Iterator[Path]:
    """A page of every kind, in every language."""
    made = {name: make(folder / name) for name, make in EXAMPLES.items()}
    for lang in LANGUAGES:
        with speaking(lang):
            for name, run in made.items():
                yield write_report(run, folder / f"{name}-{lang}.html")
            yield write_runs([*made.values()], folder / f"runs-{lang}.html")
            (folder / lang).mkdir()
            yield write_pair(folder / lang).rename(folder / f"view-{lang}.html")


def look_at(shown: Browser, page: Path, axe: str) -> Iterator[str]:
    """The problems that a page has on any screen."""
    for width, dark in SCREENS:
        shown.open(page, width, dark=dark)
        time.sleep(0.2)
        where = f"{page.name} at {width} px{', dark' if dark else ''}"
        if shown.ask(OVERFLOW) > 0:
            yield f"{where}: wider than the screen"
        shown.command("Runtime.evaluate", {"expression": f"{axe};0"})
        asked = {"expression": RUN, "awaitPromise": True, "returnByValue": True}
        told = shown.command("Runtime.evaluate", asked)["result"]["value"]
        yield from (f"{where}: {rule} at {place}" for rule, place in json.loads(told))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("axe", type=Path, help="axe.min.js of the npm package axe-core")
    parser.add_argument("--site", type=Path, help="a built site to look at as well")
    given = parser.parse_args()
    if WHY_NOT:
        print(WHY_NOT, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name, browser(Path(name)) as shown:
        pages = [*make_pages(Path(name))]
        site = sorted(given.site.rglob("*.html")) if given.site else []
        # The page of a dead link has addresses of a server's root, which a file has not.
        pages += [page for page in site if page.name != "404.html"]
        axe = given.axe.read_text(encoding="utf-8")
        wrong = [one for page in pages for one in look_at(shown, page, axe)]
    print_table(
        ("pages", "screens each", "wrong"), [list(map(str, (len(pages), len(SCREENS), len(wrong))))]
    )
    return verdict_line(wrong)


if __name__ == "__main__":
    sys.exit(main())
