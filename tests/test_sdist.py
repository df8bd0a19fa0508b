"""What is packed as sources has its tests, and all that they read."""

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = "import sys\nfrom setuptools import build_meta\nbuild_meta.build_sdist(sys.argv[1])"


@pytest.mark.full
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no checkout to compare with")
def test_the_sources_that_are_packed_are_those_of_the_checkout(tmp_path: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    names = {name for name in listed.stdout.decode().split("\0") if name}
    copy = tmp_path / "copy"
    for name in names:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes((ROOT / name).read_bytes())
    subprocess.run([sys.executable, "-c", PROGRAM, tmp_path], cwd=copy, check=True)
    (packed,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(packed) as archive:
        found = {name.partition("/")[2] for name in archive.getnames()}
    missing = names - found
    assert {
        name for name in missing if not name.startswith((".git", ".pre-commit-config"))
    } == set()
