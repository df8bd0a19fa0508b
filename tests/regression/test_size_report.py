"""Two files side by side. No test looks at speed: verdicts are told from ratios that are given."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import zstandard

from litesmith.anatomy.footprint import footprint, gzip_bytes, zstd_bytes
from litesmith.anatomy.weights import Promises, WeightFacts, weight_facts
from litesmith.regression.size_report import FileSizes, Latency, Shrunk, report_sizes
from litesmith.tflite.file import load, save
from litesmith.timing.statistics import Ratio
from tests import zoo
from tests.anatomy.test_weights import blocks_of_four, clustered, dense, pruned


def costs(*weights: np.ndarray, macs: int = 10) -> FileSizes:
    return FileSizes(100, 90, 80, macs, weight_facts(dense(*weights)))


def record(
    before: FileSizes, after: FileSizes, ratio: float | None, spread: float = 0.001
) -> Shrunk:
    if ratio is None:
        return Shrunk(before, after, Promises(0, ()), None, "it does not run")
    blocks = tuple(ratio * (1 + step * spread) for step in range(-6, 7))
    return Shrunk(before, after, Promises(0, ()), Latency(10, 10 * ratio, Ratio(blocks), "cpu:1"))


FULL, ZEROS = costs(zoo.noise(8, 64)), costs(pruned(8, 64))
FEW = costs(clustered(8, 64, (-127, -20, 31, 127)))


@pytest.mark.parametrize(
    ("after", "ratio", "words"),
    [
        (ZEROS, 1.0, "not faster; zeros are multiplied like any number here"),
        (FEW, 1.0, "not faster; repeated weights are multiplied like any number here"),
        (FULL, 1.0, "within the noise"),
        (replace(ZEROS, macs=5), 1.0, "within the noise"),
        (ZEROS, 0.5, "2.00 × faster [1.99"),
        (ZEROS, 0.97, "1.03 × faster ["),
        (FULL, 0.97, "1.03 × faster ["),
        (ZEROS, 2.0, "2.00 × slower [1.99"),
        (ZEROS, None, "not measured: it does not run; zeros are multiplied"),
        (FULL, None, "not measured: it does not run"),
    ],
)
def test_verdict(after: FileSizes, ratio: float | None, words: str) -> None:
    assert record(FULL, after, ratio).verdict.startswith(words)


def test_a_wide_interval_does_not_say_that_it_is_not_faster() -> None:
    told = record(FULL, ZEROS, 1.0, spread=0.05).verdict
    assert told == "within the noise; zeros are multiplied like any number here"


def test_zeros_get_no_praise_for_what_small_numbers_did() -> None:
    small = replace(ZEROS, weights=tuple(replace(w, dtype="int8") for w in ZEROS.weights))
    told = record(FULL, small, 0.5).verdict
    assert told.startswith("2.00 × faster")
    assert told.endswith("; zeros are multiplied like any number here")


@pytest.mark.parametrize(("after", "what"), [(ZEROS, "zeros"), (FEW, "repeated weights")])
def test_a_little_faster_is_no_work_of_zeros(after: FileSizes, what: str) -> None:
    told = record(FULL, after, 0.97).verdict
    assert told.endswith(f", not by its {what}: they are multiplied like any number here")
    small = replace(after, weights=tuple(replace(w, dtype="int8") for w in ZEROS.weights))
    assert record(FULL, small, 0.97).verdict.startswith("1.03 × faster [")


def test_a_large_table_hides_no_zeros_of_layers() -> None:
    table = WeightFacts("table", "GATHER", "float32", 10**6, 0, 10**6, is_layer=False)
    before, after = (replace(one, weights=(*one.weights, table)) for one in (FULL, ZEROS))
    assert after.zero_share < 0.001
    assert record(before, after, 1.0).verdict == record(FULL, ZEROS, 1.0).verdict


def test_sparse_weights_are_not_called_useless() -> None:
    sparse = replace(ZEROS, weights=weight_facts(dense(blocks_of_four(pruned(8, 64)))))
    assert record(FULL, sparse, 1.0).verdict == "within the noise"


def test_too_few_runs() -> None:
    few = replace(record(FULL, ZEROS, 1.0), latency=Latency(1, 1, Ratio((1.0, 1.0)), "cpu:1"))
    assert few.verdict.startswith("too few runs to tell")


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "full.tflite", tmp_path / "zeros.tflite"
    save(dense(zoo.noise(64, 64)), paths[0])
    save(dense(pruned(64, 64, share=0.8)), paths[1])
    return paths


def test_two_files(files: tuple[Path, Path]) -> None:
    other = dense(pruned(64, 64, share=0.8, seed=5))
    done = report_sizes(*files, promised=[load(files[1]), other, other], runs=12)
    for found, path in zip((done.before, done.after), files, strict=True):
        content = path.read_bytes()
        assert found.bytes == len(content)
        assert found.gzip_bytes == gzip_bytes([content])
        assert found.zstd_bytes == zstd_bytes([content], len(content))
        assert found.macs == footprint(load(path)).macs
    assert done.after.gzip_bytes < done.before.gzip_bytes / 2
    assert done.after.zeros == int((pruned(64, 64, share=0.8) == 0).sum())
    assert done.promises.layers == 1
    assert len(done.promises.broken) == 1
    assert not done.is_verified
    assert done.latency is not None
    assert len(done.latency.ratio.blocks) >= 6
    assert not done.untimed


def test_slow_models_are_not_timed_unless_asked(files: tuple[Path, Path]) -> None:
    done = report_sizes(*files, most_seconds=0)
    assert done.latency is None
    assert "a run takes" in done.verdict
    assert "litesmith bench" in done.verdict


def test_zstd_is_what_zstd_gives() -> None:
    data = np.random.default_rng(0).integers(0, 4, 50_000).astype(np.uint8).tobytes()
    pieces = [data[i : i + 999] for i in range(0, len(data), 999)]
    whole = zstandard.ZstdCompressor(level=9).compress(data)
    assert abs(zstd_bytes(pieces, len(data)) - len(whole)) < 32
    assert abs(zstd_bytes(pieces) - len(whole)) < 0.1 * len(whole)


def test_a_model_that_cannot_run_is_weighed_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "custom.tflite"
    save(zoo.custom(), path)
    done = report_sizes(path, path)
    assert done.latency is None
    assert "Mystery" in done.untimed
    assert done.verdict.startswith("not measured: ")
    assert done.after.bytes == path.stat().st_size
