"""What the package makes of every shared model, as digests; the keys of every `--json`.

    python bench/golden.py write FILE     what this version makes
    python bench/golden.py check FILE     the same again, beside what another version wrote

A change of structure must change no byte of a result and no key of the machine-readable output.
`--package DIR` takes the package from another checkout, so that one script judges both.
"""

import json
import os
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

ASSETS = Path(__file__).resolve().parents[2] / "shared" / "assets"
SAMPLES = 32

RECIPES = {
    "tidy": "cleanup | fold | fuse",
    "float16": "quantize(to=float16)",
    "dynamic": "quantize(to=dynamic)",
    "int8": "quantize(to=int8) | correct",
    "prune": "prune",
    "cluster": "cluster",
    "upgrade": "upgrade",
}
NEED_DATA = {"int8"}

# Every command with --json, on small models; {r} is ResNet-8, {q} its int8 form, {d} its data,
# {o} a folder for what is written. Later commands use what earlier ones have written.
COMMANDS = {
    "inspect": "inspect {r}",
    "inspect ops": "inspect {r} --ops",
    "bench": "bench {r} {q} --runs 4",
    "bench threads": "bench {r} --threads auto --runs 4",
    "bench copies": "bench {r} --copies --runs 4",
    "bench all": "bench {r} --on all --runs 4",
    "profile": "profile {r} --runs 2",
    "eval": "eval {r} --data {d}",
    "eval against": "eval {q} --data {d} --against {r}",
    "doctor": "doctor {r}",
    "doctor data": "doctor {q} --data {d} --against {r}",
    "doctor for": "doctor {r} --for edgetpu",
    "targets": "targets",
    "targets model": "targets {q}",
    "catalogue": "catalogue",
    "catalogue out": "catalogue ds_cnn -o {o}/ds_cnn.tflite",
    "apply": "apply {r} cleanup -o {o}/apply.tflite",
    "quantize": "quantize {r} --to int8 --data {d} -o {o}/int8.tflite",
    "quantize eval": "quantize {r} --data {d} --eval {d} --trust-data -o {o}/int8b.tflite",
    "prune": "prune {r} --sparsity 0.5 -o {o}/prune.tflite",
    "cluster": "cluster {r} -k 16 -o {o}/cluster.tflite",
    "qat": "qat {r} --to int8 --data {d} --epochs 1 -o {o}/qat.tflite",
    "retrain": "retrain {r} --data {d} -o {o}/retrain.tflite",
    "diff": "diff {r} {q}",
    "compare": "compare {r} {q} --data {d}",
    "gate update": "gate {o}/baseline.json {q} --data {d} --update",
    "gate": "gate {o}/baseline.json {q} --data {d} --seconds 2",
    "tune": "tune {r} --data {d} --max-drop 20pt --no-train -o {o}/tune",
    "choose": "choose {r} {q} --data {d} --seconds 2 -o {o}/choose",
}


def fixed_samples(model: object) -> Iterator[tuple[np.ndarray, ...]]:
    """This many samples for a model's inputs, the same in every run."""
    for number in range(SAMPLES):
        random = np.random.default_rng(number)
        yield tuple(_values(random, tensor) for tensor in model.main.inputs)  # type: ignore[attr-defined]


def _values(random: np.random.Generator, tensor: object) -> np.ndarray:
    shape, dtype = tensor.shape, tensor.dtype  # type: ignore[attr-defined]
    if dtype in ("float32", "float16") or tensor.quant is not None:  # type: ignore[attr-defined]
        return random.random(shape, np.float32)
    return random.integers(0, 3, shape).astype(dtype)


def digests(models: Path) -> dict[str, dict[str, str]]:
    """Model -> recipe -> the digest of the file, or the reason why there is none."""
    import litesmith

    found: dict[str, dict[str, str]] = {}
    for file in sorted(models.rglob("*.tflite")):
        rows = found[file.stem] = {}
        try:
            model = litesmith.load(file)
        except litesmith.LitesmithError as error:
            rows["load"] = f"refused: {type(error).__name__}"
            continue
        for name, recipe in RECIPES.items():
            data = fixed_samples(model) if name in NEED_DATA else None
            rows[name] = _digest(litesmith, model, recipe, data)
            print(f"{file.stem} {name}: {rows[name][:60]}", flush=True)
    return found


def _digest(litesmith: object, model: object, recipe: str, data: object) -> str:
    try:
        change = litesmith.apply(model, recipe, data)  # type: ignore[attr-defined]
        with TemporaryDirectory() as folder:
            out = Path(folder) / "out.tflite"
            litesmith.save(change.model, out)  # type: ignore[attr-defined]
            return sha256(out.read_bytes()).hexdigest()
    except litesmith.LitesmithError as error:  # type: ignore[attr-defined]
        return f"refused: {type(error).__name__}"


def json_keys(assets: Path) -> dict[str, list[str]]:
    """Command -> every path of keys in what it prints."""
    found: dict[str, list[str]] = {}
    with TemporaryDirectory() as folder:
        out = Path(folder)
        content = np.load(assets / "data" / "cifar10_test.npz")
        np.savez(out / "d.npz", x=content["x"][:200], y=content["y"][:200])
        models = assets / "models"
        places = {
            "r": models / "pretrainedResnet.tflite",
            "q": models / "pretrainedResnet_quant.tflite",
            "d": out / "d.npz",
            "o": out,
        }
        for name, words in COMMANDS.items():
            found[name] = _keys_of([word.format(**places) for word in words.split(" ")])
            print(f"{name}: {len(found[name])} keys", flush=True)
    return found


def _keys_of(words: list[str]) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "litesmith", *words, "--json"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "LITESMITH_LANG": "en"},
        check=False,
    )
    if done.returncode not in (0, 1):
        return [f"exit status {done.returncode}: {done.stderr.strip().splitlines()[-1:]}"]
    return sorted(set(_paths(json.loads(done.stdout), "")))


def _paths(value: object, before: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{before}.{key}"
            yield from _paths(inner, f"{before}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from _paths(inner, f"{before}[]")


def different(old: object, new: object, path: str = "") -> Iterator[str]:
    """Every place where two results differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from different(old.get(key), new.get(key), f"{path}/{key}")
    elif isinstance(old, list) and isinstance(new, list):
        yield from (f"{path}: gone: {key}" for key in old if key not in new)
        yield from (f"{path}: new: {key}" for key in new if key not in old)
    elif old != new:
        yield f"{path}: {old} -> {new}"


def main() -> int:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("do", choices=("write", "check"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--assets", type=Path, default=ASSETS)
    parser.add_argument("--package", type=Path, help="a checkout to take the package from")
    parser.add_argument("--only", choices=("digests", "keys"))
    options = parser.parse_args()
    if options.package is not None:
        source = str(options.package.resolve() / "src")
        sys.path.insert(0, source)
        os.environ["PYTHONPATH"] = source
    made = {
        name: make()
        for name, make in (
            ("digests", lambda: digests(options.assets / "models")),
            ("keys", lambda: json_keys(options.assets)),
        )
        if options.only in (None, name)
    }
    if options.do == "write":
        options.file.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n")
        return 0
    kept = json.loads(options.file.read_text())
    found = list(different({name: kept[name] for name in made}, made))
    print("\n".join(found) or "the same bytes, the same keys")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
