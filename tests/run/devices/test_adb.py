"""Models on a phone over adb: the real adb client, a small server, recorded answers."""

import hashlib
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.errors import BadInput, CannotRun
from litesmith.run.core.target import Target
from litesmith.run.devices.adb import Benchmark, connect, read
from litesmith.run.devices.address import Address, Lost, parse
from litesmith.tflite.file import save
from litesmith.tflite.write import to_bytes
from tests import zoo
from tests.run.devices.adb_server import PROGRAM, SERIAL, FakePhone, client_speaks, serving

ADDRESS = f"adb://{SERIAL}/cpu:4"
STAND_IN = Path(__file__).resolve().parents[3] / "tools/arm_benchmark_model.py"

TIMES = """\
INFO: STARTING!
INFO: Num threads: [4]
INFO: Graph: [/data/local/tmp/litesmith/model.tflite]
INFO: Loaded model /data/local/tmp/litesmith/model.tflite
INFO: Explicitly applied XNNPACK delegate, and the model graph will be completely executed by \
the delegate.
INFO: The input model file size (MB): 1.41812
INFO: Initialized session in 17.851ms.
INFO: Running benchmark for at least 1 iterations and at least 0.1 seconds
INFO: count=47 first=2104 curr=1017 min=1012 max=2104 avg=1041.15 std=63 p5=1013 median=1019 \
p95=1090

INFO: Running benchmark for at least 50 iterations and at least 0 seconds
INFO: count=50 first=1040 curr=1018 min=1012 max=1190 avg=1039.66 std=22 p5=1013 median=1021 \
p95=1090

INFO: Inference timings in us: Init: 17851, First inference: 2104, Warmup (avg): 1041.15, \
Inference (avg): 1039.66
INFO: Note: as the benchmark tool itself affects memory footprint, the following is APPROXIMATE.
INFO: Memory footprint delta from the start of the tool (MB): init=8.5 overall=18.25
"""
_BAR = "=" * 30
_RUN_ORDER = f"{_BAR} Run Order {_BAR}\n\t[node type]\t  [first]\t [avg ms]\t     [%]\t  [cdf%]"
_RUN_ORDER += "\t  [mem KB]\t[times called]\t[Name]"


def _row(kind: str, times: str, memory: str, calls: int, name: str) -> str:
    shares = "  1.328%\t   nan%"
    return f"\t       {kind}\t    {times}\t{shares}\t     {memory}\t    {calls}\t{name}"


_DEPTHWISE = "Convolution (NHWC, QC8) DWConv"
PROFILE = f"""\
INFO: Profiling Info for Benchmark Initialization:
{_RUN_ORDER}
{_row("AllocateTensors", "5.061 5.061", "10292.000", 1, "AllocateTensors/0")}

Timings (microseconds): count=1 curr=5061
Memory (bytes): count=0
INFO: Operator-wise Profiling Info for Regular Benchmark Runs:
{_RUN_ORDER}
{_row("QUANTIZE", "0.199 0.203", "1.500", 1, "[tfl.quantize]:0")}
{_row(_DEPTHWISE, "0.428 0.051", "0.000", 13, f"Delegate/{_DEPTHWISE}:1")}

{_BAR} Top by Computation Time {_BAR}
{_row("QUANTIZE", "0.199 0.203", "1.500", 1, "[tfl.quantize]:0")}

Number of nodes executed: 2
{_BAR} Summary by node type {_BAR}
\t[Node type]\t  [count]\t  [avg ms]\t    [avg %]\t    [cdf %]\t  [mem KB]\t[times called]
\t QUANTIZE\t        1\t     0.203\t   100.000%\t   100.000%\t     0.000\t        1

Timings (microseconds): count=50 first=15 curr=15 min=14 max=16 avg=15 std=1
Delegate internal:
{_RUN_ORDER}
{_row("Softmax (NC, F32)", "0.002 0.001", "0.000", 1, "Softmax (NC, F32):2")}
"""


@pytest.fixture
def phone(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakePhone]:
    adb = shutil.which("adb")
    if adb is None:
        pytest.skip("there is no adb; apt-get install adb")
    version = subprocess.run([adb, "version"], capture_output=True, text=True, check=True).stdout
    if not client_speaks(version):
        pytest.skip(f"this adb speaks another version: {version.splitlines()[0]}")
    monkeypatch.delenv("LITESMITH_BENCHMARK_MODEL", raising=False)
    made = FakePhone(output=TIMES)
    with serving(made) as port:
        monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(port))
        yield made


def test_a_model_is_pushed_once_and_timed(phone: FakePhone, tmp_path: Path) -> None:
    save(zoo.convnet(), tmp_path / "m.tflite")
    device = connect(ADDRESS)
    assert device.facts["cpu"] == "Acme Phone 7, SM8550"
    assert (device.facts["cores"], device.facts["system"]) == (8, "Android 14 arm64-v8a")
    told = device.benchmark(tmp_path / "m.tflite", "cpu:4", runs=50)
    content = (tmp_path / "m.tflite").read_bytes()
    path = f"/data/local/tmp/litesmith/{hashlib.sha256(content).hexdigest()}.tflite"
    assert phone.files[path] == content
    assert phone.commands[-1] == (
        f"{PROGRAM} --graph={path} --num_threads=4 --use_xnnpack=true "
        "--enable_op_profiling=false --num_runs=50 --min_secs=0 --warmup_min_secs=0.1 2>&1"
    )
    assert (told.runs, told.typical_us) == (50, 1021)
    device.benchmark(content, "cpu:1:builtin")
    assert "--use_xnnpack=false" in phone.commands[-1]
    device.benchmark(content, "gpu")
    assert "--use_gpu=true" in phone.commands[-1]
    assert len(phone.pushes) == 1
    assert device.samples == ((1021, 1021, 1021),)
    phone.files[path] = b"damaged"
    device.benchmark(content)
    assert phone.files[path] == content


def test_a_lost_phone_keeps_what_was_measured(phone: FakePhone) -> None:
    device = connect(ADDRESS)
    device.benchmark(to_bytes(zoo.convnet()))
    phone.is_cut_mid_run = True
    with pytest.raises(Lost, match=f"^adb://{SERIAL}: the connection was lost after 50 runs; plug"):
        device.benchmark(to_bytes(zoo.convnet()))
    with pytest.raises(Lost) as caught:
        device.benchmark(to_bytes(zoo.careless()))
    assert caught.value.samples == ((1021,),)
    assert caught.value.digests == (hashlib.sha256(to_bytes(zoo.convnet())).hexdigest(),)
    with pytest.raises(CannotRun, match="adb sees no such phone"):
        connect(ADDRESS)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (
            "unauthorized",
            "adb says 'unauthorized' of the phone; unlock the phone and allow debugging",
        ),
        ("offline", "adb says 'offline' of the phone; it does not answer; plug it in again"),
        (
            "no permissions (are your udev rules wrong?); see [http://x]",
            "adb says 'no permissions' of the phone; this user may not open it; install udev rules",
        ),
        ("recovery", "adb says 'recovery' of the phone; start Android on it"),
        ("", "adb sees no such phone (it sees none); plug it in and switch on USB debugging"),
    ],
)
def test_a_phone_that_cannot_be_used_is_one_line(
    phone: FakePhone, state: str, message: str
) -> None:
    phone.state = state
    _refused(ADDRESS, message)


def test_what_is_missing_is_one_line(
    phone: FakePhone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _refused("adb://OTHER/cpu:1", f"adb sees no such phone (it sees {SERIAL})")
    _refused(f"{ADDRESS}?benchmark_model=/data/mine", "no program /data/mine there; build or")
    monkeypatch.setenv("LITESMITH_BENCHMARK_MODEL", "/data/theirs")
    _refused(ADDRESS, f"adb -s {SERIAL} push benchmark_model /data/theirs && adb")
    phone.files["/data/theirs"] = b""
    assert connect(ADDRESS).program == "/data/theirs"
    monkeypatch.setenv("PATH", str(tmp_path))
    _refused(ADDRESS, "adb is not installed here; install Android's platform tools")


def _refused(address: str, message: str) -> None:
    with pytest.raises(CannotRun, match=re.escape(message)) as caught:
        connect(address)
    assert "\n" not in str(caught.value)


def test_facts_in_other_words_do_no_harm(phone: FakePhone) -> None:
    phone.facts = "cores=sh: nproc: not found\nload=0,52\nmemory=\nmodel=A\x1b[31mB\n"
    facts = connect(ADDRESS).facts
    assert (facts["cores"], facts["memory_bytes"]) == (0, 0)
    assert "\x1b" not in str(facts["cpu"])


def test_a_path_with_anything_in_it_stays_one_word(
    phone: FakePhone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITESMITH_BENCHMARK_MODEL", "/sdcard/a b; rm -rf $(x)'")
    with pytest.raises(CannotRun, match="no program /sdcard/a b; rm"):
        connect(ADDRESS)
    (asked,) = phone.commands
    assert shlex.split(asked) == ["test", "-x", "/sdcard/a b; rm -rf $(x)'"]


def test_a_program_that_fails_says_why(phone: FakePhone) -> None:
    phone.output = "INFO: STARTING!\nERROR: Failed to load model x.\nERROR: Benchmarking failed.\n"
    phone.status = 1
    device = connect(ADDRESS)
    with pytest.raises(CannotRun, match=r"measured nothing: Failed to load model x$"):
        device.benchmark(to_bytes(zoo.convnet()))
    phone.output = ""
    with pytest.raises(CannotRun, match=r"measured nothing: it said nothing$"):
        device.benchmark(to_bytes(zoo.convnet()))
    with pytest.raises(BadInput, match="no target cpu:1:reference there; use cpu:THREADS or gpu"):
        device.benchmark(to_bytes(zoo.convnet()), "cpu:1:reference")


def test_times_are_read() -> None:
    told = read(TIMES + PROFILE)
    assert told._replace(note="") == Benchmark(17851, 2104, 50, 1021, "")
    assert told.note.startswith("Explicitly applied XNNPACK delegate")


@pytest.mark.parametrize("has_xnnpack", [True, False])
def test_the_emulated_phones_program_is_read(tmp_path: Path, has_xnnpack: bool) -> None:
    """`tools/arm_benchmark_model.py`, which stands in for the program where no phone is."""
    save(zoo.convnet(), tmp_path / "m.tflite")
    flags = [f"--graph={tmp_path / 'm.tflite'}", "--num_threads=1", "--num_runs=20"]
    flags += [f"--use_xnnpack={str(has_xnnpack).lower()}", "--min_secs=0", "--warmup_min_secs=0"]
    done = subprocess.run(
        [sys.executable, STAND_IN, *flags], capture_output=True, text=True, check=True
    )
    told = read(done.stdout)
    assert told.runs == 20 and 0 < told.typical_us < 1e9 and told.create_us > 0
    gpu = subprocess.run(
        [sys.executable, STAND_IN, *flags[:3], "--use_gpu=true"],
        capture_output=True,
        text=True,
        check=False,
    )
    with pytest.raises(CannotRun, match="GPU acceleration is unsupported"):
        read(gpu.stdout)


def test_older_output_is_read_too() -> None:
    told = read(
        "count=1 curr=49060\n\ncount=3 curr=33000(all same)\n\n"
        "Inference timings in us: Init: 855, First inference: 49060, Warmup (avg): 49060, "
        "Inference (avg): 33000\nPeak memory footprint (MB): init=0 overall=-0.000976562\n"
    )
    assert told == Benchmark(855, 49060, 3, 33000, "")


@pytest.mark.parametrize(
    "logger", ["", "INFO: [tool.cc:91] ", "I0000 00:00:1731 42 tool.cc:91] ", "[tool.cc:91] "]
)
def test_what_loggers_put_before_a_line_does_not_matter(logger: str) -> None:
    assert read(TIMES.replace("INFO: ", logger) + PROFILE) == read(TIMES + PROFILE)


def test_no_numbers_are_no_measurement() -> None:
    for times in ("count=0", "count=0 avg=-nan std=-nan", "count=5 avg=-nan std=inf"):
        with pytest.raises(CannotRun, match="measured nothing"):
            read(
                f"{times}\nInference timings in us: Init: 1, First inference: 2, "
                "Warmup (avg): nan, Inference (avg): 3\n"
            )
    strange = TIMES.replace("std=22", "std=-nan").replace("overall=18.25", "overall=nan")
    assert read(strange) == read(TIMES)


@given(st.text(alphabet="count=INFO:Errmsg avd.0123456789e+-()\t\n%,[]", max_size=200))
def test_no_output_breaks_the_reader(noise: str) -> None:
    try:
        assert read(TIMES + PROFILE + noise).runs > 0
    except CannotRun as error:
        assert "\n" not in str(error)


def test_a_line_without_end_is_read_in_no_time() -> None:
    endless = f"Operator-wise Profiling Info\n{_BAR} Run Order {_BAR}\n" + "1.5 " * 100_000
    assert read(TIMES + endless) == read(TIMES)


def test_output_that_breaks_off_is_read_or_refused() -> None:
    whole = TIMES + PROFILE
    words = ", Inference (avg): 1"
    enough = whole.index(words) + len(words)
    for length in range(0, len(whole), 7):
        if length >= enough:
            assert read(whole[:length]).runs == 50
        else:
            with pytest.raises(CannotRun, match="benchmark_model measured nothing: "):
                read(whole[:length])


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("adb://emulator-5554/cpu:4", Address("adb", "emulator-5554", Target("cpu", 4))),
        ("adb://192.168.0.5:5555/gpu", Address("adb", "192.168.0.5:5555", Target("gpu"))),
        (
            "adb://R58M/cpu:1:builtin?benchmark_model=/sdcard/b",
            Address("adb", "R58M", Target("cpu", 1, "builtin"), program="/sdcard/b"),
        ),
    ],
)
def test_an_address_reads_back_as_itself(text: str, address: Address) -> None:
    assert parse(text) == address
    assert parse(str(address)) == address


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("adb://R58M", "no target after it; write it like adb://R58M12ABCDE/cpu:4"),
        ("adb://-d/cpu:1", "'-d' names no device"),
        (
            "adb://R58M/cpu:1:reference",
            "no target 'cpu:1:reference' there; use cpu:THREADS:builtin",
        ),
        ("adb://R58M/cpu:1?python=x", "after '?' comes benchmark_model=PATH"),
    ],
)
def test_a_wrong_address_is_one_line(text: str, message: str) -> None:
    with pytest.raises(BadInput, match=re.escape(message)):
        parse(text)
