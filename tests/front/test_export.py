"""`export`: the array and the resolver compile, the file is the same model, and says if it fits."""

import subprocess
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import numpy as np
import pytest

import litesmith
from litesmith.errors import BadInput, CannotApply
from litesmith.ir.build import Builder
from litesmith.micro.boards import BOARDS, find_room
from litesmith.micro.c_export import c_name, resolver_methods
from litesmith.micro.encode import DECODE
from litesmith.micro.flash import KERNEL_FILES
from litesmith.micro.kernel_memory import KERNELS
from litesmith.passes.core.recipe import apply
from litesmith.run.session import Session, fill_inputs
from litesmith.tflite.file import load, save
from tests import zoo

# What the generated code needs of the real headers: declarations alone.
RESOLVER = """
enum TfLiteStatus { kTfLiteOk = 0, kTfLiteError = 1 };
namespace tflite {
template <unsigned n> struct MicroMutableOpResolver {
  int count = 0;
  TfLiteStatus AddConv2D() { return add(); }
  TfLiteStatus AddRelu() { return add(); }
  TfLiteStatus AddAdd() { return add(); }
  TfLiteStatus add() { return ++count <= int(n) ? kTfLiteOk : kTfLiteError; }
};
}
"""
PROGRAM = """
#include <stdio.h>
#include "residual.h"
#include "residual_ops.h"
int main() {
  tflite::MicroMutableOpResolver<residual_op_count> resolver;
  if (register_residual_ops(resolver) != kTfLiteOk || resolver.count != residual_op_count) return 1;
  if ((size_t)residual % 16) return 2;
  fwrite(residual, 1, residual_length, stdout);
  return 0;
}
"""


@pytest.mark.skipif(which("g++") is None, reason="there is no C++ compiler")
def test_array_and_resolver_compile_and_link(tmp_path: Path) -> None:
    source, folder = tmp_path / "residual.tflite", tmp_path / "c"
    save(zoo.residual_int8(), source)
    done = litesmith.export(source, folder)
    headers = folder / "tensorflow/lite/micro"
    headers.mkdir(parents=True)
    (headers / "micro_mutable_op_resolver.h").write_text(RESOLVER)
    (folder / "main.cc").write_text(PROGRAM)
    words = ["g++", "-std=c++17", "-Wall", "-Werror", "-I.", "main.cc", "residual.cc", "-o", "run"]
    subprocess.run(words, cwd=folder, check=True)
    written = subprocess.run([folder / "run"], check=True, stdout=subprocess.PIPE).stdout
    assert written == (folder / "residual.tflite").read_bytes()
    assert str(done.after.device.needed) in (folder / "residual.h").read_text("utf-8")
    assert (folder / "residual_memory.svg").read_text("utf-8").startswith("<svg ")


@pytest.mark.parametrize("overlap", ["none", "reference"])
@pytest.mark.skipif(find_spec("tflite_micro") is None, reason="tflite-micro is not installed")
def test_the_written_file_gives_the_same_bits_in_no_more_memory(
    tmp_path: Path, overlap: str
) -> None:
    done = litesmith.export(zoo.residual_int8(), tmp_path, overlap=overlap)
    assert done.after.device.needed <= done.before.device.needed
    answers: list[np.ndarray] = []
    for model in (zoo.residual_int8(), load(done.files[0])):
        with Session(model, "micro") as session:
            fill_inputs(session, seed=1)
            session.run()
            answers.append(next(iter(session.outputs.values())).copy())
    np.testing.assert_array_equal(*answers)


def test_what_does_not_fit_says_by_how_much(tmp_path: Path) -> None:
    done = litesmith.export(zoo.residual_int8(), tmp_path, ram=600, flash="1M")
    assert not done.is_as_asked
    assert done.after.missing_ram == done.after.device.needed - 600
    assert "does not fit" in done.sentence
    assert litesmith.export(zoo.residual_int8(), tmp_path, fits="nrf52840").is_as_asked


def test_wrong_words_are_one_line_each(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"^no board 'nrf'; there are arduino"):
        litesmith.export(zoo.residual_int8(), tmp_path, fits="nrf")
    with pytest.raises(BadInput, match="give bytes, as in 256K or 1M"):
        litesmith.export(zoo.residual_int8(), tmp_path, ram="64 furlongs")
    with pytest.raises(BadInput, match="there is none, reference"):
        litesmith.export(zoo.residual_int8(), tmp_path, overlap="always")
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="it is a file; give a folder"):
        litesmith.export(zoo.residual_int8(), tmp_path / "file")
    save(zoo.residual_int8(), tmp_path / "own.tflite")
    with pytest.raises(BadInput, match="an input file is never changed"):
        litesmith.export(tmp_path / "own.tflite", tmp_path)
    b = Builder()
    model = b.model(b.op("POW", b.input("x", (2, 3)), b.input("y", (2, 3))))
    with pytest.raises(CannotApply, match=r"^op POW: TensorFlow Lite Micro has no kernel"):
        litesmith.export(model, tmp_path)


@pytest.mark.skipif(find_spec("tflite_micro") is None, reason="tflite-micro is not installed")
def test_bench_on_micro_tells_memory_and_no_time(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    save(zoo.residual_int8(), path)
    done = litesmith.bench(path, "micro", ram="64K", flash="256K")
    (one,) = done.models  # type: ignore[union-attr]
    assert one.told is not None and abs(one.host.total - one.told.total) <= 0.01 * one.told.total
    assert one.fits and "fits" in one.verdict
    with pytest.raises(BadInput, match="memory, not time"):
        litesmith.bench(path, ["micro", "cpu:1"])
    with pytest.raises(BadInput, match="are for"):
        litesmith.bench(path, "cpu:1", fits="nrf52840")


@pytest.mark.parametrize("board", BOARDS, ids=str)
def test_boards_are_rows_with_room(board: object) -> None:
    room = find_room(str(board), None, None)
    assert room is not None and 16 * 1024 <= room.ram <= room.flash * 8
    assert find_room(str(board), "1K", "2M") == (1024, 2 << 20, str(board))


def test_every_kernel_has_its_memory_its_code_and_its_method() -> None:
    coded = {kind for _, count, kinds in KERNEL_FILES for kind in kinds.split() if count}
    assert coded == {*KERNELS, DECODE}
    assert resolver_methods(zoo.residual_int8()) == ["AddAdd", "AddConv2D", "AddRelu"]
    assert c_name("3 d-net") == "model_3_d_net"
    assert [c_name(word) for word in ("int", "__x", "ümain")] == ["model_int", "model___x", "_main"]


def test_what_the_interpreter_would_refuse_is_refused_with_a_way_out(tmp_path: Path) -> None:
    """It was written, and boards were said to have room for it."""
    b = Builder()
    x = b.input("x", (1, 4))
    half = b.const(zoo.noise(8, 4).astype(np.float16))
    model = b.model(b.op("FULLY_CONNECTED", x, b.op("DEQUANTIZE", half), None))
    with pytest.raises(CannotApply, match=r"op 0: DEQUANTIZE reads float16.*float16=true"):
        litesmith.export(model, tmp_path / "c")
    assert not (tmp_path / "c").exists()
    assert {fits for _, fits in litesmith.targets(model).boards} == {None}
    unpacked = apply(model, "fold(float16=true)").model
    assert litesmith.export(unpacked, tmp_path / "c").files
    assert True in {fits for _, fits in litesmith.targets(unpacked).boards}
