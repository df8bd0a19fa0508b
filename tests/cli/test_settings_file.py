"""`litesmith.toml` beside a model: what one would type every time, and never code."""

import json
from pathlib import Path

import pytest

from litesmith.cli.commands import COMMANDS
from litesmith.cli.settings_file import NAME, WRITES, find_settings
from litesmith.errors import BadInput
from litesmith.operating_system import quote
from litesmith.tflite.file import save
from tests import zoo
from tests.cli.test_cli import litesmith
from tests.platforms import posix


def settings(place: Path, text: str, *words: str) -> list[str]:
    """The words that a file stands for beside what is typed."""
    (place / NAME).write_text(text, encoding="utf8")
    return find_settings([*words[:1], str(place / "m.tflite"), *words[1:]])[1]


def test_options_for_all_commands_and_for_one(tmp_path: Path) -> None:
    text = 'samples = 8\nnorm = "tf"\n[tune]\nmax-drop = "1pt"\nno-train = true\nresume = false\n'
    common = ["--samples", "8", "--norm", "tf"]
    assert settings(tmp_path, text, "tune") == [*common, "--max-drop", "1pt", "--no-train"]
    assert settings(tmp_path, text, "eval") == common
    assert settings(tmp_path, text, "inspect") == []


def test_what_is_typed_goes_first(tmp_path: Path) -> None:
    text = 'norm = "tf"\n[quantize]\nkeep = ["0", "SOFTMAX"]\n'
    assert settings(tmp_path, text, "quantize", "--norm=raw") == [
        "--keep",
        "0",
        "--keep",
        "SOFTMAX",
    ]
    assert settings(tmp_path, text, "quantize", "--norm", "raw", "--keep", "1") == []


def test_paths_are_those_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "val").mkdir()
    assert settings(tmp_path, 'data = "val"\n', "eval") == ["--data", str(tmp_path / "val")]
    assert settings(tmp_path, 'vocab = "v.txt"\n', "eval") == ["--vocab", "v.txt"]


REFUSED = {
    'metric = "os:system"': "code is named on the command line alone: --metric os:system",
    'task = "mine.py:Task"': "code is named on the command line alone",
    '[eval]\ndata = "module:function"': "code is named on the command line alone",
    '[bench]\nops = "mine.py"': "code is named on the command line alone",
    'metric = "mine:größe"': "code is named on the command line alone",
    'metric = "mine:a.b"': "code is named on the command line alone",
    'task = "mine.py:Task\\n"': "code is named on the command line alone",
    '[bench]\non = "cpu:1,ssh://pi@host/cpu:4"': "other machines are named on the command line",
    'engine = "ray"': "other machines are named on the command line alone: --engine ray",
    'engine = "ray://host:10001"': "other machines are named on the command line alone",
    "[retrain]\npretrained = true": "other machines are named on the command line alone: --pretra",
    '[bench]\nlog = "../log"': "files outside this folder are named on the command line alone",
    '[tune]\noutput = "/tmp/x"': "files outside this folder are named on the command line alone",
    "mtric = 1": "mtric: no such option; see --help",
    "[tunes]\nruns = 1": "[tunes] is no command",
    "[eval]\nsparsity = 1": "sparsity: no such option",
    "norm = {}": "[norm] is no command",
    '[apply]\noutput = "a\\u0000b"': "--output: a text or a number, not a",
    "norm = [1]": "--norm: a text or a number, not [1]",
    '[tune]\nresume = "yes"': "--resume: true or false, not yes",
    "norm = ": "not TOML",
    "data = 'a": "not TOML",
    f"samples = {'9' * 5000}": "not TOML",
    f"norm = {'[' * 5000}": "not TOML",
    f"#{'x' * (1 << 20)}": "is larger than 1",
    "[doctor]\nkeep-custom-options = true": "what doctor lets pass is said on the command line",
    "[gate]\nupdate = true": "what gate lets pass is said on the command line alone",
    "[gate]\nseconds = 0.001": "--seconds: what gate lets pass is said on the command line alone",
    '[gate]\nallow = ["size=+90%"]': "what gate lets pass is said on the command line alone",
    '[gate]\ngroup = "y"': "--group: what gate lets pass is said on the command line alone",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:40])
def test_what_is_wrong_is_refused(text: str, tmp_path: Path) -> None:
    command = text.partition("]")[0][1:] if text.startswith("[") else "eval"
    with pytest.raises(BadInput) as refused:
        settings(tmp_path, text, command if command != "tunes" else "tune")
    assert REFUSED[text] in str(refused.value) and NAME in str(refused.value)


def test_a_file_beside_it_makes_code_no_path(tmp_path: Path) -> None:
    """Whoever can put a settings file beside a model can put others there too."""
    (tmp_path / "mine.py").write_text("raise SystemExit('ran')\n")
    (tmp_path / "mine.py:Task").touch()
    with pytest.raises(BadInput, match="code is named on the command line alone"):
        settings(tmp_path, 'task = "mine.py:Task"', "eval")


@posix
def test_a_link_does_not_lead_out(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "out").symlink_to(tmp_path)
    with pytest.raises(BadInput, match="files outside this folder"):
        settings(home, '[bench]\ncsv = "out/rows.csv"', "bench")
    assert settings(home, '[bench]\ncsv = "rows.csv"', "bench") == ["--csv", f"{home}/rows.csv"]


def test_local_places_may_be_named(tmp_path: Path) -> None:
    text = 'on = "cpu:2,openvino:1"\nengine = "local"\n'
    assert settings(tmp_path, text, "tune") == ["--on", "cpu:2,openvino:1", "--engine", "local"]


def test_the_file_is_the_one_beside_the_model_not_beside_the_result(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / NAME).write_text('norm = "tf"\n')
    words = ["apply", "-o", str(tmp_path / "out" / "o.tflite"), str(tmp_path / "m.tflite"), "fuse"]
    assert find_settings(words) == (None, [])


def test_every_option_that_writes_is_known() -> None:
    """A new option that names a file to write is to be listed with those that write."""
    reads = {"--against", "--graph", "--reference", "--weights"}
    paths = {
        next(name for name in one.names if name.startswith("--"))
        for command in COMMANDS.values()
        for one in command.options
        if one.kind is Path and one.names
    }
    assert paths == reads | set(WRITES)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"\xff\xfe norm")
    with pytest.raises(BadInput, match="not TOML"):
        find_settings(["eval", str(tmp_path / "m.tflite")])


def test_a_command_says_what_it_takes_from_there(tmp_path: Path) -> None:
    save(zoo.careless(), tmp_path / "m.tflite")
    (tmp_path / NAME).write_text("[inspect]\njson = true\n", encoding="utf8")
    assert litesmith("inspect", tmp_path / "m.tflite").returncode == 2  # no option of its function
    (tmp_path / NAME).write_text('[apply]\noutput = "out.tflite"\n', encoding="utf8")
    shown = litesmith("apply", tmp_path / "m.tflite", "cleanup", "--json")
    out = quote(str(tmp_path / "out.tflite"))
    assert f"note: {tmp_path / NAME}: --output {out}" in shown.stderr
    assert json.loads(shown.stdout)["out"] == str(tmp_path / "out.tflite")
