"""The loop: what it may not lose, what it may not learn from, and how it goes on."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.draws import draws

torch = pytest.importorskip("torch", reason="torch is not installed: the extra `train`")

from litesmith.errors import BadInput  # noqa: E402
from litesmith.training.fit import (  # noqa: E402
    Checkpoint,
    Fitted,
    fit,
)
from litesmith.training.settings import Look, Training, Watch  # noqa: E402
from tests.numeric.test_array_files import write_torch_bomb  # noqa: E402
from tests.slowness import patient  # noqa: E402

NOWHERE = Checkpoint(None, "", resume=False)
RATES = st.sampled_from([1e-6, 1e-3, 0.1, 10.0, 1e6])


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> None:
    torch.set_num_threads(1)


class Line:
    """Points on a line that is to be found, with weights that a schedule takes away one by one."""

    def __init__(self, seed: int = 0, *, masked: bool = False, start: float = 3.0) -> None:
        random = np.random.default_rng(seed)
        self._x = torch.from_numpy(random.normal(0, 1, (40, 6)).astype(np.float32))
        slopes = random.normal(0, 1, 6).astype(np.float32)
        slopes[3:] *= 0.01
        self._y = self._x @ torch.from_numpy(slopes)
        begun = random.normal(0, start, 6).astype(np.float32)
        self.parameters = [torch.nn.Parameter(torch.from_numpy(begun))]
        self.masks = [torch.ones(6)] if masked else []
        self.samples = 32
        self.seen: list[list[int]] = []
        self.progress: list[float] = []

    def loss(self, places: np.ndarray, turn: int) -> Any:
        self.seen.append(places.tolist())
        assert places.max() < self.samples
        return self._error(torch.from_numpy(places))

    @torch.no_grad()
    def held_out(self) -> float:
        return float(self._error(torch.arange(32, 40)))

    def mask(self, progress: float) -> None:
        assert 0 <= progress <= 1
        self.progress.append(progress)
        if self.masks:
            gone = round(3 * progress)
            self.masks[0].copy_((torch.arange(6) < 6 - gone).float())

    def _error(self, places: Any) -> Any:
        slopes = self.parameters[0] * (self.masks[0] if self.masks else 1)
        return ((self._x[places] @ slopes - self._y[places]) ** 2).mean()

    @property
    def now(self) -> list[list[float]]:
        return [t.tolist() for t in (*self.parameters, *self.masks)]


def fitted(line: Line, batch: int = 8, watch: Watch | None = None, **changes: Any) -> Fitted:
    return fit(line, Training(**changes), batch, checkpoint=NOWHERE, watch=watch)


def test_a_line_is_found() -> None:
    line = Line(start=0.3)
    before = line.held_out()
    found = fitted(line, epochs=40)
    assert found.first == before
    assert found.best < 0.05 * before
    assert line.held_out() == found.best


@draws(30)
@given(st.integers(0, 99), RATES, st.booleans(), st.sampled_from([0.5, 1, 3]))
def test_the_result_is_never_worse(seed: int, rate: float, masked: bool, epochs: float) -> None:
    line = Line(seed, masked=masked)
    line.mask(1.0)
    before = line.held_out()
    found = fitted(Line(seed, masked=masked), rate=rate, epochs=epochs)
    trained = Line(seed, masked=masked)
    again = fitted(trained, rate=rate, epochs=epochs)
    assert found.first == before
    assert trained.held_out() == again.best == found.best <= before
    if masked:
        assert trained.masks[0].tolist() == [1, 1, 1, 0, 0, 0]


def test_what_becomes_no_number_is_forgotten() -> None:
    """Parameters that blow up are not kept, and a rate that makes them so is not chosen."""
    line = Line()
    found = fitted(line, rate=1e38, epochs=3)
    assert found.best == found.first
    assert all(math.isfinite(value) for value in line.now[0])


def test_the_same_seed_is_the_same_training() -> None:
    lines = [Line(), Line(), Line()]
    for line, seed in zip(lines, (1, 1, 2), strict=True):
        fitted(line, epochs=4, seed=seed)
    assert lines[0].now == lines[1].now
    assert lines[0].seen == lines[1].seen != lines[2].seen


def test_every_sample_is_used_once_an_epoch() -> None:
    line = Line()
    fitted(line, epochs=2, rate=1e-3)
    for epoch in (line.seen[:4], line.seen[4:8]):
        assert sorted(place for places in epoch for place in places) == list(range(32))
    assert line.seen[:4] != line.seen[4:8]


def test_trying_rates_leaves_nothing_behind() -> None:
    """A training at the rate that was chosen is the same with and without the tries."""
    tried = Line()
    found = fitted(tried, epochs=5)
    given_rate = Line()
    again = fitted(given_rate, epochs=5, rate=found.rate)
    assert tried.now == given_rate.now
    assert (found.first, found.best, found.rate) == (again.first, again.best, again.rate)
    assert len(tried.seen) > len(given_rate.seen)


def test_zeros_come_bit_by_bit_and_all_of_them() -> None:
    line = Line(masked=True)
    fitted(line, epochs=20, rate=1e-2)
    first, *rest = line.progress
    assert first == 1.0
    assert rest == sorted(rest)
    assert len(set(rest)) > 5
    assert rest[0] < 0.5 and rest[-1] == 1.0


def test_minutes_end_a_training() -> None:
    for minutes in (1e-9, 1e-4):
        line = Line()
        found = fitted(line, epochs=1e6, minutes=minutes)
        assert found.seconds < patient(2)
        assert found.best <= found.first
        assert line.held_out() == found.best


def test_watching_tells_how_far_it_is() -> None:
    looks: list[Look] = []
    found = fitted(Line(), epochs=3, watch=looks.append)
    assert {look.what for look in looks} == {"trying rates", "training"}
    training = [look for look in looks if look.what == "training"]
    assert [look.step for look in training] == list(range(1, found.steps + 1))
    assert all(look.step <= look.steps and look.best <= look.first for look in looks)
    assert all(look.first == found.first for look in looks)


# Interruptions.


def stopper(after: int) -> Callable[[Look], None]:
    """Interrupts what is watched at this call."""
    calls = iter(range(10**6))

    def watch(look: Look) -> None:
        if next(calls) == after:
            raise KeyboardInterrupt

    return watch


TRAINING = Training(epochs=6)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("after", [0, 1, 5, 6, 7, 13, 22, 29])
def test_an_interrupted_training_goes_on_as_if_it_was_not(
    tmp_path: Path, after: int, masked: bool
) -> None:
    whole = Line(masked=masked)
    known = fit(whole, TRAINING, 8, checkpoint=NOWHERE)
    path = tmp_path / "record.pt"
    record = Checkpoint(path, "key", resume=False, every=0)
    with pytest.raises(KeyboardInterrupt):
        fit(Line(masked=masked), TRAINING, 8, checkpoint=record, watch=stopper(after))
    line = Line(masked=masked)
    found = fit(line, TRAINING, 8, checkpoint=Checkpoint(path, "key", resume=True, every=0))
    assert line.now == whole.now
    assert found[:4] == known[:4]


def test_a_record_that_unpacks_to_far_more_is_not_unpacked(tmp_path: Path) -> None:
    write_torch_bomb(tmp_path / "record.pt")
    with pytest.raises(BadInput, match=r"record\.pt: unpacks to 1\.07 GB.*leave out --resume"):
        Checkpoint(tmp_path / "record.pt", "key", resume=True)


def test_interrupted_again_and_again(tmp_path: Path) -> None:
    whole = Line(masked=True)
    known = fit(whole, TRAINING, 8, checkpoint=NOWHERE)
    stops = 0
    while True:
        line = Line(masked=True)
        record = Checkpoint(tmp_path / "record.pt", "key", resume=True, every=0)
        try:
            found = fit(line, TRAINING, 8, checkpoint=record, watch=stopper(3))
            break
        except KeyboardInterrupt:
            stops += 1
            assert stops < 100, "it never ends"
    assert stops > 1
    assert line.now == whole.now
    assert found[:4] == known[:4]


def test_a_training_that_has_ended_is_not_done_again(tmp_path: Path) -> None:
    line, again = Line(), Line()
    known = fit(
        line, TRAINING, 8, checkpoint=Checkpoint(tmp_path / "r", "key", resume=False, every=0)
    )
    found = fit(
        again, TRAINING, 8, checkpoint=Checkpoint(tmp_path / "r", "key", resume=True, every=0)
    )
    assert not again.seen
    assert again.now == line.now
    assert found == known


def recorded(path: Path) -> bytes:
    Checkpoint(path, "key", resume=False).keep({"step": 3, "values": [torch.ones(3)]})
    return path.read_bytes()


def test_a_record_is_what_was_kept(tmp_path: Path) -> None:
    recorded(tmp_path / "r")
    found = Checkpoint(tmp_path / "r", "key", resume=True).found
    assert found is not None and found["step"] == 3
    assert found["values"][0].tolist() == [1, 1, 1]
    assert [file.name for file in tmp_path.iterdir()] == ["r"]
    assert Checkpoint(tmp_path / "r", "key", resume=False).found is None
    assert Checkpoint(tmp_path / "absent", "key", resume=True).found is None


def test_another_trainings_record_is_refused(tmp_path: Path) -> None:
    recorded(tmp_path / "r")
    with pytest.raises(BadInput, match=r"another model, recipe, data or setting") as caught:
        Checkpoint(tmp_path / "r", "other", resume=True)
    assert "\n" not in str(caught.value) and "--resume" in str(caught.value)


class Trap:
    """Runs code where a reader unpacks whatever a file says."""

    def __reduce__(self):
        return (print, ("caught",))


def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r"
    content = recorded(path)
    torn = [content[:cut] for cut in (0, 1, 10, len(content) // 2, len(content) - 1)]
    others = [b"hello", b"\0" * 100, b"PK\x03\x04" + b"x" * 50]
    for spoiled in (*torn, *others):
        path.write_bytes(spoiled)
        with pytest.raises(BadInput, match="is no record of a training") as caught:
            Checkpoint(path, "key", resume=True)
        assert "\n" not in str(caught.value)
    for value in (3, {"key": "key"}, [1], Trap()):
        torch.save(value, path)
        with pytest.raises(BadInput, match="is no record of a training"):
            Checkpoint(path, "key", resume=True)
