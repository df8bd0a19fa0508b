"""The page: whatever a folder holds, everything is on it once and nothing of it is markup."""

import json
import re
import subprocess
import sys
from base64 import b64encode
from collections import Counter
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.errors import BadInput
from litesmith.evidence.codec import salvage
from litesmith.evidence.tune_record import TuneSummary
from litesmith.pages.folder_kinds import write_report
from litesmith.pages.records.tune_folder import TuneFolder, read_search
from litesmith.pages.tune_page import SECTIONS
from tests.draws import draws
from tests.pages import folders
from tests.slowness import patient

VOID = {"br", "input", "meta"}
HOSTILE = (
    "<script>alert(1)</script>",
    "\"' onmouseover=alert(1) x='",
    "</style></script><img src=x>",
    "&lt;b&gt;",
    "\x00\x1b[31m\u202e\ud800",
    "]]>-->",
    "a" * 300,
)


class Page(HTMLParser):
    """The elements of a page, each with its attributes; refuses tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self._open or self._open[-1] not in ("script", "style"):
            self.words.append(data)

    def with_attribute(self, name: str, tag: str) -> list[dict[str, str | None]]:
        return [found for kind, found in self.elements if kind == tag and name in found]


def page_of(folder: Path) -> Page:
    return Page(write_report(folder).read_text(encoding="utf-8"))


@pytest.mark.parametrize("moment", folders.MOMENTS)
def test_every_trial_has_one_row_at_every_moment(moment: str, tmp_path: Path) -> None:
    folder = folders.MOMENTS[moment](tmp_path / "tuned")
    names = Counter(row["data-trial"] for row in page_of(folder).with_attribute("data-trial", "tr"))
    assert names == Counter(entry.name for entry in read_search(folder).entries)
    assert set(names.values()) == {1}


def test_every_section_is_shown_where_there_is_something_to_show(tmp_path: Path) -> None:
    page = page_of(folders.write_folder(tmp_path))
    shown = [found.get("id") for kind, found in page.elements if kind == "section"]
    # the graph and the memory need the models themselves, which no record holds
    assert shown == [name for name, _, _ in SECTIONS if name not in ("graph", "memory")]
    nothing = TuneFolder(salvage(TuneSummary, {}).value)
    assert [name for name, _, show in SECTIONS if show(nothing)] == ["verdict"]


@pytest.mark.parametrize("moment", folders.MOMENTS)
def test_nothing_is_loaded(moment: str, tmp_path: Path) -> None:
    text = write_report(folders.MOMENTS[moment](tmp_path)).read_text(encoding="utf-8")
    assert not re.search(r"https?:|//[a-z]|url\(|@import|fetch\(|XMLHttp", text)
    for kind, found in Page(text).elements:
        assert "src" not in found
        assert kind not in ("link", "img", "iframe", "object", "embed")
        assert (found.get("href") or "#").startswith(("#", "data:image/"))


def test_links_lead_somewhere(tmp_path: Path) -> None:
    page = page_of(folders.write_folder(tmp_path))
    places = {f"#{found['id']}" for _, found in page.elements if "id" in found}
    links = [found["href"] for kind, found in page.elements if kind == "a"]
    assert len(places) == len([1 for _, found in page.elements if "id" in found])
    assert links and set(links) <= places


def test_the_front_that_is_drawn_is_the_front_that_was_found(tmp_path: Path) -> None:
    page = page_of(folders.write_folder(tmp_path))
    marked = Counter(found["data-trial"] for found in page.with_attribute("data-front", "g"))
    assert marked == Counter(dict.fromkeys(folders.FRONT, 2))  # in both graphs
    assert not page.with_attribute("data-front", "tr")


def test_a_later_line_of_a_trial_replaces_the_earlier(tmp_path: Path) -> None:
    again = folders.trials()
    changed = {**again[4], "reason": "measured anew"}
    folder = folders.write_folder(tmp_path, None, [*again, changed])
    entry = read_search(folder).entry("int8")
    assert entry is not None and entry.reasons == ("measured anew",)


def test_nothing_inside_the_noise_is_claimed(tmp_path: Path) -> None:
    told = folders.summary()
    told["best"] = {"name": "clean", "latency": {"ratio": 0.99, "low": 0.97, "high": 1.01}}
    words = " ".join(page_of(folders.write_folder(tmp_path, told)).words)
    assert "no difference seen" in words
    assert "× faster" not in words.replace(str(told["sentence"]), "")


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(HOSTILE)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@draws(30)
@given(st.data())
def test_any_value_may_be_missing_or_wrong(data: st.DataObject) -> None:
    """One random place of the records is replaced by a random value; there still is a page."""
    told, tried = folders.summary(), folders.trials()
    place = data.draw(st.sampled_from(sorted(told)))
    inner = told[place]
    value = data.draw(json_values)
    if isinstance(inner, dict) and data.draw(st.booleans()):
        told[place] = {**inner, data.draw(st.sampled_from(sorted(inner))): value}
    else:
        told[place] = value
    chosen = data.draw(st.integers(0, len(tried) - 1))
    details = tried[chosen]["details"]
    assert isinstance(details, dict)
    key = data.draw(st.sampled_from([*sorted(details), "accuracy", "latency"]))
    inner = details.get(key)
    other = data.draw(json_values)
    if isinstance(inner, dict):
        other = {**inner, data.draw(st.sampled_from(sorted(inner))): other}
    with TemporaryDirectory() as name:
        folder = folders.write_folder(Path(name), told, tried, details=False)
        line = {**tried[chosen], "details": {**details, key: other}}
        with (folder / "trials.jsonl").open("a") as log:
            log.write(json.dumps(line) + "\n")
        page = page_of(folder)
        assert page.with_attribute("data-trial", "tr")


@draws(15)
@given(st.sampled_from(HOSTILE) | st.text(max_size=30))
def test_names_are_never_markup(name: str) -> None:
    """A page with hostile names has the elements of the page with harmless ones."""
    with TemporaryDirectory() as folder:
        shapes = []
        for used in ("harmless", name):
            place = Path(folder) / str(len(shapes))
            text = json.dumps(folders.summary()).replace("int8.equalize", "NAME")
            told = _renamed(json.loads(text), used)
            tried = [_renamed_trial(trial, used) for trial in folders.trials()]
            page = page_of(folders.write_folder(place, told, tried))
            shapes.append([(kind, sorted(found)) for kind, found in page.elements])
        kinds = [
            Counter(kind for kind, _ in shape if kind in ("script", "img")) for shape in shapes
        ]
        assert kinds == [Counter(script=1)] * 2
        names = {key for kind, found in shapes[1] for key in found}
        assert names <= {key for kind, found in shapes[0] for key in found}


def _renamed(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return {key: _renamed(inner, name) for key, inner in value.items()}
    if isinstance(value, list):
        return [_renamed(inner, name) for inner in value]
    return name if isinstance(value, str) and value not in ("done", "proven", "latency") else value


def _renamed_trial(line: folders.Json, name: str) -> folders.Json:
    before = line["details"]
    assert isinstance(before, dict)
    details = {**before, "notes": [name], "status": name}
    if details["name"] != "float":
        details["name"] = f"{name}{details['name']}"
    skipped = [{"where": name, "why": name}]
    return {**line, "recipe": name, "skipped": skipped, "reason": name, "details": details}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "holds no record; give the folder that .*`litesmith tune` wrote"),
        ("{", "cannot be read .it is not JSON.; run"),
        ("[1]", "is not what `litesmith tune` writes; run it again"),
    ],
)
def test_a_folder_without_a_summary_is_refused(
    content: str | None, words: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "tune.json").write_text(content)
    with pytest.raises(BadInput, match=words):
        write_report(tmp_path)
    assert not (tmp_path / "report.html").exists()


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no such folder; .*`litesmith tune` wrote"):
        write_report(tmp_path / "none")


def test_a_digest_does_not_lead_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text(json.dumps(folders.inside("float", 1.0)))
    told = {**folders.summary(), "model_digest": "../../secret"}
    record = read_search(folders.write_folder(tmp_path / "tuned", told, [], details=False))
    assert record.inside == {}


def test_no_runtime_is_needed(tmp_path: Path) -> None:
    """Where the runtime cannot be imported, both kinds of report are still made."""
    folder = folders.write_folder(tmp_path)
    script = (
        "import sys; sys.modules['ai_edge_litert'] = None; sys.modules['torch'] = None\n"
        "from pathlib import Path\n"
        "from litesmith.pages.folder_kinds import write_markdown, write_report\n"
        "folder = Path(sys.argv[1]); write_report(folder); write_markdown(folder)"
    )
    subprocess.run([sys.executable, "-c", script, str(folder)], check=True, timeout=patient(60))
    assert (folder / "report.html").exists() and (folder / "report.md").exists()


def test_the_page_is_small(tmp_path: Path) -> None:
    assert write_report(folders.write_folder(tmp_path)).stat().st_size < 150_000


@pytest.mark.parametrize("moment", folders.MOMENTS)
def test_a_browser_may_run_our_script_and_load_nothing(moment: str, tmp_path: Path) -> None:
    text = write_report(folders.MOMENTS[moment](tmp_path)).read_text(encoding="utf-8")
    metas = [found for name, found in Page(text).elements if name == "meta"]
    (policy,) = (m["content"] for m in metas if m.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None and text.index("Content-Security-Policy") < text.index("<style")
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'" and rules["img-src"] == "data:"
    for name, rule in (("script", "script-src"), ("style", "style-src-elem")):
        for content in re.findall(rf"<{name}>(.*?)</{name}>", text, re.DOTALL):
            known = b64encode(sha256(content.encode()).digest()).decode()
            assert f"'sha256-{known}'" in rules[rule]
    assert "'unsafe-inline'" not in rules["script-src"] and "http" not in policy
