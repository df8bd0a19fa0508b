"""What holds of every row of the table of targets."""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby

import pytest

from litesmith.errors import CannotRun
from litesmith.ir.ops import OPS
from litesmith.run.accelerators.targets import BY_NAME, DELEGATES, Delegate, refuse_unusable
from litesmith.run.core.placement import PREDICTED, Home, Placement
from litesmith.run.core.target import Target
from litesmith.run.rules.all_rules import RULES
from tests import zoo
from tests.op_cases_shaping import CASES
from tests.op_models import build

FAMILY = {f"ethos-u55-{macs}" for macs in (32, 64, 128, 256)} | {"ethos-u65-256", "ethos-u65-512"}
NAMES = {"coreml", "cpu", "edgetpu", "gpu", "hexagon", "micro", "nnapi", "numpy", "openvino"}
RULED = [delegate for delegate in DELEGATES if delegate.predict is not None]

every_target = pytest.mark.parametrize("delegate", DELEGATES, ids=lambda d: d.name)
every_ruled = pytest.mark.parametrize("delegate", RULED, ids=lambda d: d.name)


def test_names_are_known_and_unique() -> None:
    assert {delegate.name for delegate in DELEGATES} == NAMES | FAMILY
    assert len(BY_NAME) == len(DELEGATES)


@every_target
def test_a_probe_answers_without_noise(
    delegate: Delegate, capfd: pytest.CaptureFixture[str]
) -> None:
    usable, why, how = delegate.probe()
    assert delegate.title
    assert why
    assert bool(how) is not usable
    assert "\n" not in why + how
    assert capfd.readouterr() == ("", "")


def test_probing_imports_no_heavy_package() -> None:
    program = (
        "import sys; from litesmith.run.accelerators.targets import DELEGATES; "
        "[d.probe() for d in DELEGATES]; "
        "heavy = {'openvino', 'ethosu', 'torch', 'tflite_micro', 'ai_edge_litert.interpreter'}; "
        "print(heavy & set(sys.modules))"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert (told.stdout.strip(), told.stderr) == ("set()", "")


@every_target
def test_what_cannot_be_used_is_refused_in_one_line(delegate: Delegate) -> None:
    found = delegate.probe()
    if found.usable and delegate.runs:
        assert refuse_unusable(Target(delegate.name)) is None
        return
    with pytest.raises(CannotRun, match=f"^target {delegate.name}") as refused:
        refuse_unusable(Target(delegate.name))
    assert found.usable or (found.why in str(refused.value) and found.how in str(refused.value))


def count_runs(homes: Iterable[Home]) -> int:
    """Runs of neighbouring ops that are taken."""
    return sum(taken for taken, _ in groupby(homes, key=lambda home: home.taken))


def laws(placed: Placement, kinds: list[str]) -> Iterator[str]:
    """What is wrong with a placement."""
    if [home.kind for home in placed.homes] != kinds:
        yield "not one home for each op"
    if [home.place for home in placed.homes] != list(range(len(kinds))):
        yield "places out of order"
    if not all(home.why for home in placed.homes):
        yield "an op without a reason"
    if (placed.partitions == 0) != (placed.taken == 0):
        yield f"{placed.taken} ops in {placed.partitions} partitions"
    if placed.partitions > count_runs(placed.homes):
        yield "more partitions than runs of ops"
    if placed.is_whole and placed.partitions != 1:
        yield "whole, and not one partition"
    if bool(placed.refused) != (bool(kinds) and not placed.taken):
        yield "refused, and yet something is taken, or the other way round"


@every_ruled
@pytest.mark.parametrize("name", zoo.MODELS)
def test_each_op_has_a_home_and_a_reason(delegate: Delegate, name: str) -> None:
    model = zoo.MODELS[name]()
    assert delegate.predict is not None
    placed = delegate.predict(model)
    assert (placed.target, placed.how) == (delegate.name, PREDICTED)
    assert [*laws(placed, [op.kind for op in model.main.ops])] == []


@every_ruled
def test_rules_answer_for_every_case_of_every_op(delegate: Delegate) -> None:
    assert delegate.predict is not None
    for kind, cases in CASES.items():
        for case in cases:
            placed = delegate.predict(build(kind, case).model)
            assert [*laws(placed, [kind])] == [], kind


@pytest.mark.parametrize("name", RULES)
def test_rules_name_ops_that_exist_and_their_documents(name: str) -> None:
    rules = RULES[name]
    assert set(rules.takes) <= set(OPS)
    assert rules.sources
    assert all(rules.sources)
    assert bool(rules.wants) == bool(rules.way_out)


@every_ruled
def test_control_flow_and_custom_ops_stay_on_the_cpu(delegate: Delegate) -> None:
    assert delegate.predict is not None
    for make, kind in ((zoo.branches, "IF"), (zoo.loop, "WHILE"), (zoo.custom, "CUSTOM")):
        homes = delegate.predict(make()).homes
        has_kernel = delegate.name == "micro" and kind in RULES["micro"].takes and kind != "CUSTOM"
        assert [home.taken for home in homes if home.kind == kind] == [has_kernel]
