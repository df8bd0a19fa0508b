"""Records that came from someone else: whatever is in them, they are read or refused in a line, and
none of them brings code."""

import json
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from shutil import copytree

import pytest

import litesmith
from litesmith.data.data_digest import data_digest
from litesmith.errors import BadInput, LitesmithError
from litesmith.evidence.folder import Folder
from litesmith.regression.baseline import read_baseline
from tests.evidence.damage import PLANTED, damaged_bytes, damaged_values
from tests.evidence.test_version_0_1 import FILES, KEPT, KINDS
from tests.platforms import links

MARK = "planted code was run"
CODE = f"""
from pathlib import Path
import numpy as np
Path({MARK!r}).touch()

def run(*_):
    yield from np.load("data.npz")["x"]

def score(outputs, label):
    return float((outputs[0].argmax() == label).all())

own_score = score
"""
UNTIMED = {"latency": "off", "memory": "off"}


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Records of every kind, and code that must not be run, in the folder of now."""
    place = copytree(KEPT, tmp_path / "kept")
    (place / f"{PLANTED}.py").write_text(CODE)
    monkeypatch.chdir(place)
    monkeypatch.delitem(sys.modules, PLANTED, raising=False)  # another test was to run it
    yield place
    assert not (place / MARK).exists()


def read_all(place: Path, contents: Iterator[bytes], read: Callable[[], object]) -> int:
    """How many of the contents are refused; each of the others is read."""
    refused = 0
    for content in contents:
        place.write_bytes(content)
        try:
            read()
        except LitesmithError as error:
            assert "\n" not in str(error)
            refused += 1
    return refused


def every_damage(place: Path, *, every: bool = False) -> Iterator[bytes]:
    before = place.read_bytes()
    yield from damaged_bytes(before)
    yield from damaged_values(json.loads(before), every=every)


def test_a_damaged_recipe_is_refused_or_applied(kept: Path) -> None:
    place = kept / "tune" / "recipe.json"
    facts = json.loads(place.read_bytes())
    facts["opened"]["calibrate"] = "data.npz"
    facts["training"] = {
        "epochs": 1.0,
        "minutes": None,
        "rate": 0.1,
        "batch": 0,
        "labels": 0.5,
        "augment": "auto",
        "seed": 0,
        "device": "auto",
    }
    place.write_text(json.dumps(facts))
    damage = every_damage(place, every=True)
    assert read_all(place, damage, lambda: litesmith.apply("wide.tflite", str(place)))


@pytest.mark.parametrize(
    "recipe",
    [
        "quantize(to=[1])",
        "quantize(keep=[" + "9" * 400 + "])",
        "quantize(keep=9)",
        "prune(sparsity=1e999)",
        "prune(sparsity=nan)",
        "cluster(k=" + "9" * 30 + ")",
        "cluster(k=" + "9" * 5000 + ")",
        "cluster(k=-1)",
        "qat(" * 2000,
        "quantize(keep=" + "[" * 2000,
        'quantize(to="\\ud800")',
        "quantize(to=\x1b[31m)",
        f"{PLANTED}:run",
    ],
)
def test_a_recipe_of_odd_steps_is_refused(kept: Path, recipe: str) -> None:
    place = kept / "tune" / "recipe.json"
    facts = json.loads(place.read_bytes()) | {"recipe": recipe}
    place.write_text(json.dumps(facts))
    with pytest.raises(LitesmithError) as no:
        litesmith.apply("wide.tflite", str(place))
    assert "\n" not in str(no.value)


def test_a_damaged_baseline_is_refused_or_read(kept: Path) -> None:
    place = kept / "baseline.json"
    assert read_all(place, every_damage(place), lambda: read_baseline(place))


@pytest.mark.parametrize("command", KINDS)
def test_a_damaged_folder_has_a_page_or_is_refused(kept: Path, command: str) -> None:
    folder = kept / command
    evidence = next((folder / "evidence").glob("*.json"))
    for place in (folder / f"{command}.json", evidence):
        before = place.read_bytes()
        if len(before) < 20_000:
            some = islice(every_damage(place), None, None, 3)
            read_all(place, some, lambda: litesmith.report(folder))
        place.write_bytes(before)
    log = folder / "trials.jsonl"
    first, *rest = log.read_bytes().splitlines(keepends=True)
    damage = [*damaged_values(json.loads(first)), *damaged_bytes(first)]
    contents = (content + b"\n" + b"".join(rest) for content in damage[::3])
    assert not read_all(log, contents, lambda: litesmith.report(folder))


@pytest.mark.parametrize("command", KINDS)
def test_a_search_goes_on_from_damaged_records_or_refuses(kept: Path, command: str) -> None:
    folder = Folder(kept / command, f"{command}.json")
    kind = FILES[f"{command}/{command}.json"]
    place = kept / command / f"{command}.json"
    assert read_all(place, every_damage(place), lambda: folder.summary(kind))
    log = kept / command / "trials.jsonl"
    first = log.read_bytes().splitlines()[0]
    damage = (*damaged_values(json.loads(first)), *damaged_bytes(first))
    assert read_all(log, iter(damage), lambda: folder.trials(KINDS[command]))


@pytest.mark.parametrize("name", ["../../elsewhere", "/elsewhere", "a\0b", "..", "a\\b"])
def test_no_name_in_a_record_leads_out_of_its_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "model.tflite").write_bytes(b"x")
    folder = Folder(tmp_path / "in" / "out")
    folder.path.mkdir(parents=True)
    for use in (
        lambda: folder.write_front({name: tmp_path / "model.tflite"}),
        lambda: folder.write_evidence(name, {}),
        lambda: folder.work(name),
        lambda: folder.training(name, "key"),
        lambda: folder.found(name, "digest"),
    ):
        if name != "..":  # which an ending makes a name
            with pytest.raises(BadInput, match="would lie elsewhere"):
                use()
    assert sorted(p.name for p in tmp_path.rglob("*.tflite")) == ["model.tflite"]


@pytest.mark.parametrize("key", ["data", "calibrate"])
def test_a_recipe_brings_no_code(kept: Path, key: str) -> None:
    place = kept / "tune" / "recipe.json"
    facts = json.loads(place.read_bytes())
    facts["opened"][key] = f"{PLANTED}:run"
    place.write_text(json.dumps(facts))
    with pytest.raises(BadInput, match=f"brings none; .* {key}='{PLANTED}:run'"):
        litesmith.apply("wide.tflite", str(place))


def test_data_that_is_another_is_not_opened(kept: Path) -> None:
    """Its content was compared only after it had been decoded."""
    place, data = kept / "tune" / "recipe.json", kept / "data.npz"
    facts = json.loads(place.read_bytes())
    folder = kept / "pictures"
    (folder / "cat").mkdir(parents=True)
    (folder / "cat" / "1.png").write_bytes(b"no picture")
    for key, named in (("data", data), ("calibrate", folder)):
        opened = {**facts["opened"], key: str(named), f"{key}_digest": data_digest(named)}
        place.write_text(json.dumps({**facts, "opened": opened}))
        if key == "data":
            assert litesmith.apply("wide.tflite", str(place)).same
        before = data.read_bytes()
        (data if key == "data" else folder / "cat" / "2.png").write_bytes(b"whatever")
        with pytest.raises(BadInput, match=f"{named.name} has changed since"):
            litesmith.apply("wide.tflite", str(place))
        data.write_bytes(before)
    place.write_text(json.dumps(facts))
    assert litesmith.apply("wide.tflite", str(place)).same  # as it was written without digests


def test_data_that_was_code_is_given_again(kept: Path) -> None:
    place = kept / "tune" / "recipe.json"
    facts = json.loads(place.read_bytes())
    facts["opened"]["data"] = f"{PLANTED}:run"
    place.write_text(json.dumps(facts))
    assert litesmith.apply("wide.tflite", str(place), "data.npz").same
    with pytest.raises(BadInput, match="has changed since"):  # without labels: other data
        litesmith.apply("wide.tflite", str(place), f"{PLANTED}:run")
    (kept / MARK).unlink(missing_ok=True)  # which the caller's own word has run


def test_a_baseline_brings_no_code(kept: Path) -> None:
    place = kept / "baseline.json"
    facts = json.loads(place.read_bytes())
    facts["accuracy"]["metric"] = f"{PLANTED}:score"
    place.write_text(json.dumps(facts))
    with pytest.raises(BadInput, match=f"is code.*metric='{PLANTED}:score'"):
        litesmith.gate(place, "wide.tflite", "data.npz", norm="unit", allow=UNTIMED)
    with pytest.raises(BadInput, match=f"is of the metric {PLANTED}:score, not of top1"):
        litesmith.gate(place, "wide.tflite", "data.npz", norm="unit", metric="top1")


def test_a_metric_that_is_code_is_given_again(kept: Path) -> None:
    metric = f"{PLANTED}:own_score"
    given = ("base.json", "wide.tflite", "data.npz")
    litesmith.update_baseline(*given, norm="unit", metric=metric, allow=UNTIMED)
    assert litesmith.gate(*given, norm="unit", metric=metric, allow=UNTIMED).passes
    (kept / MARK).unlink(missing_ok=True)  # which the caller's own word has run


@links
@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_no_link_in_a_folder_leads_what_is_written_elsewhere(kept: Path) -> None:
    mine = kept / "mine.txt"
    mine.write_text("mine")
    for name in ("report.html", "report.md"):
        (kept / "tune" / name).symlink_to(mine)
        with pytest.raises(BadInput, match="is a link, and would lead elsewhere; give out="):
            litesmith.report(kept / "tune", markdown=name.endswith("md"))
        (kept / "tune" / name).unlink()
    text = litesmith.report(kept / "tune", markdown=True).path
    for out in (None, text):
        for picture in text.parent.glob("*.png"):
            picture.unlink()
            picture.symlink_to(mine)
            with pytest.raises(BadInput, match=f"{picture.name}: is a link"):
                litesmith.report(kept / "tune", markdown=True, out=out)
            picture.unlink()
    for name in ("front/best.tflite", "best2.tflite", "work/a-0123.training/step"):
        (kept / "tune" / name).parent.mkdir(exist_ok=True, parents=True)
        (kept / "tune" / name).symlink_to(mine)
        with pytest.raises(BadInput, match="would land elsewhere"), Folder(kept / "tune").hold():
            pass
        (kept / "tune" / name).unlink()
    assert mine.read_text("utf-8") == "mine"
