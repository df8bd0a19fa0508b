"""The image: its file names what the package is made of; where there is a builder, it is built."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "Containerfile"
BUILDER = shutil.which("podman") or shutil.which("docker")
WHEEL = "import sys\nfrom setuptools import build_meta\nbuild_meta.build_wheel(sys.argv[1])"


def copied(line: str, into: Path) -> None:
    """Does what a line with COPY does, with a folder in place of the image's root."""
    _, *sources, target = line.split()
    for source in sources:
        place = into / target.removeprefix("/")
        if target.endswith("/"):
            place = place / Path(source).name
        place.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, place, ignore=shutil.ignore_patterns("*.mo", "*.pyc"))
        else:
            shutil.copyfile(ROOT / source, place)


def test_what_is_copied_makes_the_whole_package(tmp_path: Path) -> None:
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("COPY "):
            copied(line, tmp_path)
    command = [sys.executable, "-c", WHEEL, tmp_path]
    subprocess.run(command, cwd=tmp_path / "src", check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("litesmith/")}
    package = ROOT / "src"
    sources = {path.relative_to(package).as_posix() for path in package.rglob("*.py")}
    catalogues = {f"litesmith/lang/locale/{n.stem}/LC_MESSAGES/" for n in ROOT.glob("locale/*.po")}
    assert sources <= packed
    assert catalogues <= {name.rpartition("/")[0] + "/" for name in packed}
    assert (tmp_path / "src/constraints.txt").is_file()


@pytest.mark.full
@pytest.mark.skipif(BUILDER is None, reason="there is neither podman nor docker")
def test_the_image_runs_the_demo() -> None:
    assert BUILDER is not None
    subprocess.run([BUILDER, "build", "-t", "litesmith-test", "-f", FILE, ROOT], check=True)
    done = subprocess.run(
        [BUILDER, "run", "--rm", "litesmith-test"], capture_output=True, text=True, check=True
    )
    assert "tuned" in done.stdout
