#!/usr/bin/env python3
"""A stand-in for `adb` whose one phone is the emulated AArch64 root of `tools/arm`.

    tools/arm_phone.py FOLDER BIN          writes BIN/adb, and the phone's programs into the root
    PATH=BIN:$PATH litesmith bench model.tflite --on adb://emulated/cpu:1

Models are pushed to the root, found again by their digest, opened and run there by the runtime for
AArch64. The phone's shell is Debian's, `getprop` is a short shell script, and `benchmark_model` is
`tools/arm_benchmark_model.py`. Times are the emulator's.
"""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SERIAL = "emulated"
PROGRAM = "data/local/tmp/benchmark_model"
PROPERTIES = {
    "ro.product.manufacturer": "QEMU",
    "ro.product.model": "Neoverse N1",
    "ro.soc.model": "emulated",
    "ro.build.version.release": "of no version",
    "ro.product.cpu.abi": "arm64-v8a",
}


def main() -> int:
    folder, first, *rest = sys.argv[1:] if len(sys.argv) > 2 else sys.exit(__doc__)
    if first != "adb":
        return prepare(Path(folder).resolve(), Path(first))
    match rest:
        case ["version"]:
            print("Android Debug Bridge version 1.0.41")
        case ["devices"]:
            print(f"List of devices attached\n{SERIAL}\tdevice\n")
        case ["-s", str(serial), *_] if serial != SERIAL:
            print(f"adb: device '{serial}' not found", file=sys.stderr)
            return 1
        case ["-s", _, "shell", *words]:
            return shell(Path(folder), " ".join(words))
        case ["-s", _, "push", str(source), str(destination)]:
            return push(source, Path(folder) / "root" / destination.removeprefix("/"))
        case _:
            print(f"adb: this one does not know {shlex.join(rest)}", file=sys.stderr)
            return 1
    return 0


def prepare(folder: Path, programs: Path) -> int:
    """Writes `adb` into a folder, and the phone's programs into the root."""
    programs.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, str(Path(__file__).resolve()), str(folder), "adb"]
    write(programs / "adb", f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    root = folder / "root"
    told = "".join(f"{name}) echo {shlex.quote(value)};;\n" for name, value in PROPERTIES.items())
    write(root / "opt/bin/getprop", f'#!/bin/sh\ncase "$1" in\n{told}esac\n')
    (root / PROGRAM).parent.mkdir(parents=True, exist_ok=True)
    write(root / PROGRAM, (HERE / "arm_benchmark_model.py").read_text())
    print(f"PATH={programs}:$PATH litesmith bench model.tflite --on adb://{SERIAL}/cpu:1")
    return 0


def write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def shell(folder: Path, command: str) -> int:
    """Runs a command in the root; passes on its output and its status, as adb does."""
    words = [HERE / "arm", folder, "--shell", command]
    return subprocess.run(words, stdin=subprocess.DEVNULL, check=False).returncode


def push(source: str, destination: Path) -> int:
    """Copies a file into the root."""
    try:
        shutil.copyfile(source, destination)
    except OSError as error:
        print(f"adb: error: failed to copy: {error.strerror}", file=sys.stderr)
        return 1
    print(f"{source}: 1 file pushed, 0 skipped.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
