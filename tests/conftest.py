"""What every test shares: nothing is written to the user's own folders."""

import gc
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: threads that wait cost half the time
# The tests start hundreds of children, which would each compile the package anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

import pytest
from hypothesis import settings

from litesmith.calibration.observed_cache import VARIABLE
from litesmith.native.sealed_file import KEY_VARIABLE
from tests.draws import draw_all, draws

os.environ["LITESMITH_LANG"] = "en"  # whatever language those speak who run the tests
os.environ[KEY_VARIABLE] = "the key of the tests, which no user has"


def pytest_configure(config: pytest.Config) -> None:
    """`-m full` runs every test, each of them whole: all combinations, all examples."""
    if config.option.markexpr != "not full":
        draw_all()
    if config.option.markexpr == "full":
        config.option.markexpr = ""
    settings.register_profile("tests", draws(100))
    settings.load_profile("tests")


# A file is one process's, so that what its tests share is made once. These take longest: they
# begin, and no process is left alone with one of them at the end.
LONGEST = (
    "ray_engine/test_ray.py",
    "test_notebooks.py",
    "cli/test_train_commands.py",
    "test_examples.py",
    "cli/commands/test_doctor.py",
    "cli/commands/test_quantize.py",
    "test_every_writer.py",
    "diagnosis/test_slow_in_int8.py",
    "run/rules/test_rules.py",
    "regression/test_gate_run.py",
    "search/tuning/test_tune_search.py",
    "run/accelerators/test_openvino.py",
    "test_every_step.py",
    "cli/commands/test_gate.py",
    "diagnosis/test_loss_commands.py",
    "calibration/test_mixed_outputs.py",
    "test_quickstart.py",
    "search/choosing/test_choose_models.py",
    "kernels/programs/test_program.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {f"tests/{name}": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.nodeid.partition("::")[0], len(order)))


def pytest_collection_finish() -> None:
    """What is there by now stays: thousands of tests, which no search for garbage need visit."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The cache of this run, of all its processes and of the commands that tests start as well:
    a loop is compiled once. LITESMITH_TEST_CACHE names one that outlasts the run."""
    before = os.environ.get(VARIABLE)
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    place = Path(os.environ.get("LITESMITH_TEST_CACHE") or shared / "litesmith-cache")
    place.mkdir(exist_ok=True)
    os.environ[VARIABLE] = str(place)
    with suppress(ImportError):  # a room that can be taken away
        from litesmith.kernels.programs import cost_factors

        cost_factors.keep({})  # no test's result hangs on how fast this machine is just now
    yield
    del os.environ[VARIABLE]
    if before is not None:
        os.environ[VARIABLE] = before
