"""Which models texts name, and what they are called."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.errors import BadInput
from litesmith.search.choosing.candidates import list_candidates, make_distinct, short_names
from litesmith.tflite.file import save
from tests.search.choosing.chosen import MODELS, written_models

PARTS = st.sampled_from(["a", "b", "model"])
PATHS = st.lists(
    st.builds(
        lambda parts, name, end: Path("/", *parts, name + end),
        st.lists(PARTS, max_size=3),
        PARTS,
        st.sampled_from([".tflite", ".lite", ""]),
    ),
    min_size=1,
    max_size=6,
)


@given(PATHS)
def test_names_are_ends_of_paths_and_no_two_files_share_one(paths: list[Path]) -> None:
    names = short_names(paths)
    by_name: dict[str, Path] = {}
    for name, path in zip(names, paths, strict=True):
        assert by_name.setdefault(name, path) == path
        assert (
            Path(os.path.abspath(path))
            .as_posix()
            .removeprefix("/")
            .removesuffix(".tflite")
            .endswith(name.removeprefix("/").removeprefix("/").removesuffix(".tflite"))
        )


@given(PATHS, st.randoms())
def test_names_do_not_depend_on_the_order(paths: list[Path], random: object) -> None:
    wanted = dict(zip(paths, short_names(paths), strict=True))
    shuffled = list(paths)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert dict(zip(shuffled, short_names(shuffled), strict=True)) == wanted


def test_a_pattern_is_its_files_in_order(tmp_path: Path) -> None:
    written_models(tmp_path)
    found = list_candidates([str(tmp_path / "*.tflite")])
    assert [c.name for c in found.candidates] == sorted(MODELS)
    assert not found.notes


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    for folder, make in zip(("one", "two"), MODELS.values(), strict=False):
        (tmp_path / folder).mkdir()
        save(make(), tmp_path / folder / "model.tflite")
    found = list_candidates([str(tmp_path / "*" / "model.tflite")])
    assert [c.name for c in found.candidates] == ["one/model", "two/model"]


def test_a_file_that_is_called_like_a_network_is_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (network,) = list_candidates(["ds_cnn_s"]).candidates
    assert not network.is_taught and network.path is None and network.published is not None
    save(MODELS["good"](), tmp_path / "ds_cnn_s")
    (file,) = list_candidates(["ds_cnn_s"]).candidates
    assert file.is_taught and file.path == Path("ds_cnn_s")


@pytest.mark.parametrize("turned", [False, True])
def test_a_file_and_a_network_of_one_name_are_two(tmp_path: Path, turned: bool) -> None:
    save(MODELS["good"](), tmp_path / "ds_cnn_s.tflite")
    texts = ["ds_cnn_s", str(tmp_path / "ds_cnn_s.tflite")]
    found = list_candidates(texts[::-1] if turned else texts).candidates
    names = {c.name: c.is_taught for c in found}
    assert names == {"ds_cnn_s": False, "ds_cnn_s.tflite": True}


@given(st.text(max_size=3), st.sets(st.text(max_size=5)))
def test_a_distinct_name_is_none_of_the_taken_ones(name: str, taken: set[str]) -> None:
    for _ in range(3):
        found = make_distinct(name, taken)
        assert found not in taken and found.startswith(name)
        assert found == name or name in taken
        taken.add(found)


def test_a_network_twice_is_one_and_wrong_sizes_are_refused() -> None:
    assert len(list_candidates(["ds_cnn_s", "ds_cnn_s"]).candidates) == 1
    with pytest.raises(BadInput, match="width 9 is outside"):
        list_candidates(["mobilenet_v1:9"])
    with pytest.raises(BadInput, match="no network that `litesmith catalogue` lists"):
        list_candidates(["mobilenet_v9"])
