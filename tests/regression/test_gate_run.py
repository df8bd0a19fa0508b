"""The gate on real files: what got worse is called, and only that."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest

import litesmith
from litesmith import Builder, Model, Quant
from litesmith.data.samples import Items, Sample
from litesmith.data.sources import open_data
from litesmith.errors import BadInput
from litesmith.ir.types import Tensor
from litesmith.operating_system import quote
from litesmith.regression.baseline import Timing, read_baseline
from litesmith.regression.gate_checks import CHECKS
from litesmith.regression.gate_measures import (
    GateSettings,
    delegation,
    delegation_for,
    join_timings,
    timing_chunks,
)
from litesmith.regression.gate_rules import (
    FINE,
    OFF,
    QUANTITIES,
    UNCLEAR,
    UNKNOWN,
    WORSE,
    read_allowances,
)
from litesmith.regression.gate_run import Gated, renew_baseline, run_gate
from litesmith.run.core.target import Target
from litesmith.tflite.file import load, save

UNTIMED = ("latency=off", "memory=off")


def scorer(scale: float = 0.0, spare: int = 0, left: int = 0) -> Model:
    """Scores that are its inputs; rounded, in a larger file, or with ops that XNNPACK has not."""
    b = Builder()
    x: Tensor = b.input("x", (1, 4))
    for _ in range(left):
        x = b.op("CUMSUM", x, np.int32(0))  # over the batch of one, which changes nothing
    y = b.op("ADD", x, np.zeros(4, np.float32))
    if scale:
        y = b.op("QUANTIZE", y, dtype="int8", quant=Quant.of(scale, 0))
        y = b.op("DEQUANTIZE", y, dtype="float32")
    if spare:
        weight = np.random.default_rng(0).normal(size=(spare // 16, 4)).astype(np.float32)
        return b.model(y, b.op("FULLY_CONNECTED", x, weight, None))
    return b.model(y)


def labelled(count: int = 600, seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    labels = random.integers(0, 4, count)
    x = random.normal(0, 1, (count, 4)) + np.eye(4)[labels]
    return {"x": x.astype(np.float32), "y": labels}


def manner(*allow: str, **rest: object) -> GateSettings:
    return GateSettings(allow=read_allowances((*UNTIMED, *allow)), **rest)  # pyright: ignore


def saved(folder: Path, model: Model, name: str = "model.tflite") -> Path:
    save(model, folder / name)
    return folder / name


def verdicts(found: Gated) -> dict[str, str]:
    return {check.quantity: check.verdict for check in found.checks}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a baseline of a model on labelled data."""
    folder = tmp_path_factory.mktemp("first")
    model = saved(folder, scorer())
    renew_baseline(folder / "b.json", model, open_data(labelled(), load(model)), manner())
    return folder


@pytest.fixture
def place(first: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    copytree(first, tmp_path, dirs_exist_ok=True)
    return tmp_path


def opened(path: Path, data: dict[str, np.ndarray]):
    return open_data(data, load(path))


def test_every_quantity_has_a_check() -> None:
    assert list(CHECKS) == list(QUANTITIES)


def test_an_unchanged_model_has_no_difference_at_all(place: Path) -> None:
    model = place / "model.tflite"
    found = run_gate(place / "b.json", model, opened(model, labelled()), manner())
    assert found.verdict == FINE
    assert verdicts(found) == {**dict.fromkeys(QUANTITIES, FINE), "latency": OFF, "memory": OFF}
    accuracy = found.checks[0].facts
    assert (accuracy["difference"], accuracy["n"]) == (0, 600)
    assert found.sentence == "model.tflite is within what b.json allows"


def test_samples_in_another_order_are_paired_all_the_same(place: Path) -> None:
    order = np.random.default_rng(1).permutation(600)
    data = {name: values[order] for name, values in labelled().items()}
    model = saved(place, scorer(1.0), "coarse.tflite")
    usual = run_gate(place / "b.json", model, opened(model, labelled()), manner())
    mixed = run_gate(place / "b.json", model, opened(model, data), manner())
    assert usual.checks[0].facts == mixed.checks[0].facts


def test_less_accurate_is_called_with_what_looks_into_it(first: Path, place: Path) -> None:
    model = saved(place, scorer(3.0), "coarse.tflite")
    found = run_gate(
        place / "b.json", model, opened(model, labelled()), manner("size=off", "gzip=off")
    )
    (worse,) = [c for c in found.failures if c.quantity == "accuracy"]
    assert found.verdict == WORSE
    assert "beyond chance" in worse.why
    before, after = quote(str(first / "model.tflite")), quote(str(model))
    assert worse.command.startswith(f"litesmith compare {before} {after} --data ")
    assert worse.facts["difference"] < -0.1


def test_where_the_file_of_the_baseline_changed_a_command_does_not_name_it(tmp_path: Path) -> None:
    path, model = tmp_path / "b.json", saved(tmp_path, scorer())
    renew_baseline(path, model, opened(model, labelled()), manner())
    save(scorer(3.0), model)
    found = run_gate(path, model, opened(model, labelled()), manner())
    assert "litesmith compare BEFORE.tflite " in found.checks[0].command


@pytest.mark.parametrize("name", ["a" * 5000, "/proc/self/mem", "a\0b", "."])
def test_a_name_in_a_baseline_that_nobody_can_open_is_no_obstacle(place: Path, name: str) -> None:
    path, model = place / "b.json", place / "model.tflite"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), "model": name}))
    found = run_gate(path, model, opened(model, labelled()), manner())
    assert found.passes and "litesmith compare BEFORE.tflite " in found.checks[0].command


def test_larger_is_called_by_both_sizes(place: Path) -> None:
    found = run_gate(place / "b.json", saved(place, scorer(spare=4000), "l.tflite"), None, manner())
    assert {"size", "gzip"} <= {check.quantity for check in found.failures}
    allowed = run_gate(
        place / "b.json", place / "l.tflite", None, manner("size=9000%", "gzip=9000%")
    )
    assert verdicts(allowed)["size"] == verdicts(allowed)["gzip"] == FINE


def test_an_op_outside_the_delegate_is_called_by_its_kind(place: Path) -> None:
    model = saved(place, scorer(left=2), "left.tflite")
    found = run_gate(place / "b.json", model, None, manner())
    (worse,) = [check for check in found.failures if check.quantity == "delegation"]
    assert "2 more ops left out (2 CUMSUM)" in worse.why
    assert worse.command == f"litesmith doctor {quote(str(model))} --on cpu:1"
    assert (
        verdicts(run_gate(place / "b.json", model, None, manner("delegation=2")))["delegation"]
        == FINE
    )


def test_an_op_that_latency_judges_is_not_told_beside_an_ok_as_beyond_what_is_allowed(
    tmp_path: Path,
) -> None:
    model, path = saved(tmp_path, scorer()), tmp_path / "b.json"
    renew_baseline(path, model, None, manner("latency=9000%", seconds=0.1))
    left = saved(tmp_path, scorer(left=1), "left.tflite")
    found = run_gate(path, left, None, manner("latency=9000%", seconds=0.1))
    (check,) = [check for check in found.checks if check.quantity == "delegation"]
    assert (check.verdict, check.change) == (FINE, "1 more op left out, judged by latency")


def test_what_xnnpack_takes_is_counted(tmp_path: Path) -> None:
    model = saved(tmp_path, scorer(left=1))
    found = delegation(model, load(model), Target())
    assert (found.ops, found.left, found.partitions, dict(found.kinds)) == (2, 1, 1, {"CUMSUM": 1})
    assert delegation(model, load(model), Target.parse("numpy")).why == "numpy has no delegate"
    assert delegation_for("edgetpu", load(model)).left == 2
    with pytest.raises(BadInput, match="no such accelerator"):
        delegation_for("abacus", load(model))


def test_an_accelerator_is_watched_from_the_update_on(place: Path) -> None:
    model = place / "model.tflite"
    renew_baseline(place / "b.json", model, None, manner(places=("nnapi",)))
    found = run_gate(place / "b.json", model, None, manner())
    assert [c.title for c in found.checks if c.quantity == "delegation"] == [
        "delegation",
        "ops on nnapi",
    ]
    renew_baseline(place / "b.json", model, None, manner())  # which are not named again
    assert [one.target for one in read_baseline(place / "b.json").delegations] == ["cpu:1", "nnapi"]


def test_other_data_is_refused_and_not_compared(place: Path) -> None:
    model = place / "model.tflite"
    for other in (labelled(seed=1), labelled(599), {**labelled(), "y": labelled()["y"][::-1]}):
        with pytest.raises(BadInput, match=r"not the data of .* cannot be paired"):
            run_gate(place / "b.json", model, opened(model, other), manner())


def test_without_data_accuracy_is_not_known_and_that_is_said(place: Path) -> None:
    model = place / "model.tflite"
    found = run_gate(place / "b.json", model, None, manner())
    assert (found.checks[0].verdict, found.checks[0].why) == (UNKNOWN, "no data was given")
    assert found.verdict == FINE
    assert "not certain: accuracy" in found.sentence
    renew_baseline(place / "b.json", model, None, manner())
    told = run_gate(place / "b.json", model, opened(model, labelled()), manner()).checks[0].why
    assert told == "the baseline has none: no data was given"


def test_without_labels_a_reference_stands_in_for_them(tmp_path: Path) -> None:
    exact, fine, coarse = (
        saved(tmp_path, scorer(scale), f"{scale}.tflite") for scale in (0.0, 0.02, 0.5)
    )
    plain = {"x": labelled()["x"]}
    path = tmp_path / "b.json"
    made = renew_baseline(path, fine, opened(fine, plain), manner(against=exact))
    assert made.scores is not None and made.scores.metric == "snr"
    assert made.allowed["accuracy"].typed == "1%"
    sizes = ("size=off", "gzip=off")
    same = run_gate(path, fine, opened(fine, plain), manner(*sizes, against=exact))
    assert same.checks[0].verdict == FINE
    worse = run_gate(path, coarse, opened(coarse, plain), manner(*sizes, against=exact))
    assert worse.checks[0].verdict == WORSE
    with pytest.raises(BadInput, match="held against another reference model"):
        run_gate(path, fine, opened(fine, plain), manner(*sizes, against=coarse))


def test_points_of_what_has_none_are_refused_before_the_work(tmp_path: Path) -> None:
    model = saved(tmp_path, scorer())
    data = {"x": labelled()["x"], "y": labelled()["x"] + np.float32(0.1)}
    with pytest.raises(BadInput, match="has no points; give a share of its value"):
        renew_baseline(tmp_path / "b.json", model, opened(model, data), manner("accuracy=1pt"))
    assert not (tmp_path / "b.json").exists()
    made = renew_baseline(tmp_path / "b.json", model, opened(model, data), manner())
    assert made.scores is not None and (made.scores.metric, made.scores.better) == ("rmse", -1)


def test_what_was_allowed_stays_and_the_file_is_no_larger_than_it_needs(place: Path) -> None:
    model, path = place / "model.tflite", place / "b.json"
    renew_baseline(path, model, opened(model, labelled()), manner("accuracy=2pt", "size=7%"))
    again = renew_baseline(path, model, opened(model, labelled()), manner("size=8%"))
    assert (again.allowed["accuracy"].typed, again.allowed["size"].typed) == ("2pt", "8%")
    assert path.stat().st_size < 5000


@dataclass(frozen=True)
class Torn:
    """Data that stops in the middle, as Ctrl-C does."""

    source: str = "torn"
    digest: str = ""
    notes: tuple[str, ...] = ()
    items: Items = field(default_factory=Items)

    def __len__(self) -> int:
        return 5

    def __iter__(self) -> Iterator[Sample]:
        yield Sample((labelled()["x"][:1],), labelled()["y"][:1])
        raise KeyboardInterrupt


def test_what_is_interrupted_leaves_the_baseline_as_it_was(place: Path) -> None:
    before = (place / "b.json").read_bytes()
    with pytest.raises(KeyboardInterrupt):
        renew_baseline(place / "b.json", place / "model.tflite", Torn(), manner())
    assert (place / "b.json").read_bytes() == before
    assert sorted(p.name for p in place.iterdir()) == ["b.json", "model.tflite"]


def test_update_does_not_write_over_another_file(place: Path) -> None:
    other = place / "package.json"
    other.write_text('{"name": "app"}')
    with pytest.raises(BadInput, match="is no baseline"):
        renew_baseline(other, place / "model.tflite", None, manner())
    assert other.read_text("utf-8") == '{"name": "app"}'


def test_from_python_the_target_stays_and_a_reference_stands_in_for_labels(tmp_path: Path) -> None:
    exact, fine = (saved(tmp_path, scorer(scale), f"{scale}.tflite") for scale in (0.0, 0.02))
    path, plain = tmp_path / "b.json", {"x": labelled()["x"]}
    allow = {"latency": "off", "memory": "off"}
    first = litesmith.update_baseline(
        path, fine, plain, on="cpu:2", against=exact, allow=allow
    ).baseline
    again = litesmith.update_baseline(path, fine, plain, against=str(exact)).baseline
    assert first.target == again.target == Target.parse("cpu:2")
    found = litesmith.gate(path, fine, plain, against=exact)
    assert (found.checks[0].verdict, found.target) == (FINE, "cpu:2")


@pytest.mark.parametrize(
    ("target", "told"),
    [("cpu:2", "litesmith profile {now} --on cpu:2"), ("numpy", "litesmith bench {then} {now}")],
)
def test_what_looks_into_latency_runs_on_the_target(tmp_path: Path, target: str, told: str) -> None:
    then, now = saved(tmp_path, scorer()), saved(tmp_path, scorer(left=3), "slow.tflite")
    path = tmp_path / "b.json"
    litesmith.update_baseline(path, then, on=target, allow={"memory": "off"}, seconds=0.2)
    found = litesmith.gate(path, now, allow={"latency": "0%"}, seconds=0.2)
    (check,) = [one for one in found.checks if one.quantity == "latency"]
    assert check.command.startswith(told.format(then=quote(str(then)), now=quote(str(now))))


def test_a_baseline_is_of_one_target(place: Path) -> None:
    with pytest.raises(BadInput, match="is of cpu:1, not of cpu:2"):
        run_gate(place / "b.json", place / "model.tflite", None, manner(on=Target.parse("cpu:2")))


def test_a_model_takes_turns_with_its_workload(tmp_path: Path) -> None:
    model = saved(tmp_path, scorer())
    (found,) = timing_chunks(model, model, Target(), seconds=0.05)
    has_fine_clock = os.name == "posix"
    assert set(found.clocks) == ({"wall", "processor"} if has_fine_clock else {"wall"})
    assert all(len(blocks) >= 6 for blocks in found.clocks.values())
    (threads,) = timing_chunks(model, model, Target.parse("cpu:2"), seconds=0.05)
    assert set(threads.clocks) == {"wall"}


def test_timings_are_joined() -> None:
    one, two = Timing({"wall": (1.0,)}, 10, 20), Timing({"wall": (2.0,)}, 30, 40)
    assert join_timings([one, two]) == Timing({"wall": (1.0, 2.0)}, 20, 30)


def test_from_python_with_times(tmp_path: Path) -> None:
    model, path = saved(tmp_path, scorer()), tmp_path / "b.json"
    allow = {"latency": "400%", "memory": "off"}
    made = litesmith.update_baseline(path, model, allow=allow, seconds=0.2).baseline
    assert made.timing is not None and made.timing.us > 0
    found = litesmith.gate(path, model, allow={"accuracy": "off"}, seconds=0.2)
    latency = next(check for check in found.checks if check.quantity == "latency")
    assert latency.facts["clock"] in ("wall", "processor")
    assert {"us", "reference_us", "change", "low", "high"} <= set(latency.facts)
    assert found.verdict in (FINE, UNCLEAR)


def test_another_machine_and_another_runtime_are_noted(place: Path) -> None:
    path, model = place / "b.json", place / "model.tflite"
    assert not run_gate(path, model, None, manner()).notes
    shown = json.loads(path.read_text("utf-8"))
    shown["host"] |= {"cpu": "another cpu", "runtime": "a runtime 0.1"}
    path.write_text(json.dumps(shown))
    machine, runtime = run_gate(path, model, None, manner()).notes
    assert "from another machine (another cpu)" in machine
    assert "the baseline's was a runtime 0.1" in runtime


def test_a_metric_of_other_classes_is_refused(tmp_path: Path) -> None:
    def mapper(classes: int) -> Path:
        b = Builder()
        weight = np.ones((classes, 1, 1, 1), np.float32)
        y = b.op("CONV_2D", b.input("x", (1, 2, 2, 1)), weight, np.zeros(classes, np.float32))
        return saved(tmp_path, b.model(y), f"{classes}.tflite")

    random = np.random.default_rng(0)
    data = {
        "x": random.normal(size=(40, 2, 2, 1)).astype(np.float32),
        "y": random.integers(0, 2, (40, 2, 2)),
    }
    two, three = mapper(2), mapper(3)
    made = renew_baseline(tmp_path / "b.json", two, opened(two, data), manner())
    assert made.scores is not None and made.scores.metric == "miou"
    same = run_gate(tmp_path / "b.json", two, opened(two, data), manner())
    assert (same.checks[0].verdict, same.checks[0].facts["difference"]) == (FINE, 0)
    with pytest.raises(BadInput, match="mean IoU is made of other numbers"):
        run_gate(tmp_path / "b.json", three, opened(three, data), manner())
