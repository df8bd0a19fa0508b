"""Damaged .onnx files through the converter: a model or one clear line, within 2 s and 4 GB.

python bench/convert_fuzz.py [--count 5000] [--only SEED]
"""

import argparse
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.conversion.damaged import damaged, ending

_MOST_SECONDS = 2.0
_MOST_BYTES = 4 << 30


def fuzzed(seed: int, folder: Path) -> str:
    """How a damaged file ended; outcomes that must not occur begin with a capital letter."""
    start = time.process_time()
    try:
        how = ending(seed, folder)
    except Exception as error:
        traceback.print_exc()
        return type(error).__name__
    return how if time.process_time() - start < _MOST_SECONDS else "Slow"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5000, help="how many files")
    parser.add_argument("--only", type=int, help="one seed")
    asked = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    seeds = range(asked.count) if asked.only is None else [asked.only]
    damaged(0)  # the tests are collected once
    endings: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as place:
        for seed in seeds:
            how = fuzzed(seed, Path(place))
            endings[how] += 1
            if how[0].isupper():
                print(f"seed {seed}: {how}", flush=True)
    print(", ".join(f"{count} {how}" for how, count in endings.most_common()))
    sys.exit(1 if any(how[0].isupper() for how in endings) else 0)


if __name__ == "__main__":
    main()
