"""What is learned of a machine is kept for it alone, and moves where sparse layers break even."""

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith import Session
from litesmith.kernels.programs import cost_factors
from litesmith.kernels.programs.cost_factors import Factors, factors, is_learned, keep, kind_of
from litesmith.kernels.programs.learn_costs import is_fine, learn_costs, measured
from litesmith.kernels.programs.sparse_parts import KINDS, break_even, dense_us, gain
from litesmith.native.user_cache import VARIABLE
from tests.kernels.one_op import needs_float_codes, needs_numba
from tests.kernels.test_sparse_kernels import model

ALL = {kind_of(dtype, is_few) for dtype in KINDS for is_few in (False, True)}


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache in which nothing was learned."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    return tmp_path


def test_what_was_learned_is_kept_for_this_processor(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not is_learned() and factors("int8", False) == Factors()
    keep({"int8 many": Factors(2, 3)})
    assert is_learned() and factors("int8", False) == Factors(2, 3)
    assert factors("int8", True) == factors("float32", False) == Factors()
    monkeypatch.setenv("NUMBA_CPU_NAME", "cortex-a53")
    assert not is_learned() and factors("int8", False) == Factors()


def test_what_others_wrote_or_cannot_be_is_not_believed(own: Path) -> None:
    keep({"int8 many": Factors(0, 3), "int8 few": Factors(1, float("nan"))})
    assert is_learned() and factors("int8", False) == factors("int8", True) == Factors()
    (file,) = own.glob("sparse-*.times")
    keep({"int8 many": Factors(2, 3)})
    file.write_bytes(file.read_bytes().replace(b"2", b"9"))
    cost_factors._kept.cache_clear()  # as in a process that begins
    assert not is_learned() and factors("int8", False) == Factors()


def test_where_nothing_can_be_written_it_is_learned_once_a_process(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own / "file").touch()
    monkeypatch.setenv(VARIABLE, str(own / "file" / "cache"))
    assert not is_learned()
    keep({"int8 many": Factors(2, 3)})
    assert is_learned() and factors("int8", False) == Factors(2, 3)


def test_without_a_cache_nothing_is_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "")
    keep({"int8 many": Factors(2, 3)})
    assert is_learned() and factors("int8", False) == Factors()


sizes = st.integers(64, 2048)
times = st.floats(0.2, 5)


@given(st.sampled_from(sorted(KINDS)), st.integers(1, 500), sizes, sizes, times, times)
def test_layers_break_even_where_this_machine_says(
    dtype, rows, inputs, channels, dense, sparse
) -> None:
    shape = rows, inputs, channels
    keep({})
    before, us = gain(*shape, 0.9, dtype), dense_us(*shape, dtype)
    keep({kind: Factors(dense, sparse) for kind in ALL})
    try:
        share = break_even(*shape, dtype)
        assert dense_us(*shape, dtype) == pytest.approx(us * dense)
        assert (share is None) == (gain(*shape, 1.0, dtype) < 1)
        if share:
            assert gain(*shape, share, dtype) == pytest.approx(1, rel=1e-6)
        after = gain(*shape, 0.9, dtype)
        assert (after >= before) if dense >= 1 >= sparse else True
        assert (after <= before) if dense <= 1 <= sparse else True
    finally:
        keep({})


@needs_numba
@needs_float_codes
def test_a_machine_is_measured_once(own: Path) -> None:
    assert measured().keys() == ALL
    learn_costs()
    (file,) = own.glob("sparse-*.times")
    before = file.stat().st_mtime_ns
    learn_costs()
    assert file.stat().st_mtime_ns == before
    assert {kind for kind in ALL if factors(kind.split()[0], "few" in kind) != Factors()} == ALL


@needs_numba
@needs_float_codes
@pytest.mark.parametrize("zeros", [0.0, 0.9])
def test_a_session_learns_where_a_layer_has_zeros(own: Path, zeros: float) -> None:
    layer = model("FULLY_CONNECTED", 32, (64, 64), zeros, 0)
    Session(layer, "cpu:1:litesmith").close()
    assert is_learned() == (zeros > 0)


def test_a_clock_that_leaps_or_stands_is_not_measured_with() -> None:
    tick = 15_625_000
    assert is_fine(time.thread_time_ns) == (os.name == "posix")
    assert not is_fine(lambda: time.perf_counter_ns() // tick * tick)
    leaps = iter((0, tick))
    assert not is_fine(lambda: next(leaps))
