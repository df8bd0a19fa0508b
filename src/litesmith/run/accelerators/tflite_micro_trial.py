"""A model opened and run once by TensorFlow Lite Micro in a process of its own.

The program stands alone, to start in a moment. Its words are a file, the bytes of the arena and the
number of inputs. It prints as JSON the lines that the interpreter wrote to stderr, its only voice,
and whether the model ran. The interpreter checks little of what it reads: the process may die.
"""

# pyright: reportMissingImports=false, reportMissingTypeStubs=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
# tflite-micro has no types.

import json
import os
import sys
from tempfile import TemporaryFile


def main(path: str, arena: int, inputs: int) -> None:
    with TemporaryFile() as heard:
        kept = os.dup(2)
        os.dup2(heard.fileno(), 2)
        try:
            ran = _run(path, arena, inputs)
        finally:
            os.dup2(kept, 2)
        heard.seek(0)
        lines = heard.read().decode(errors="replace").splitlines()
    print(json.dumps({"ran": ran, "lines": lines}))


def _run(path: str, arena: int, inputs: int) -> bool:
    import numpy as np
    from tflite_micro.python.tflite_micro import runtime

    try:
        interpreter = runtime.Interpreter.from_file(path, arena_size=arena)
        for place in range(inputs):
            told = interpreter.get_input_details(place)
            interpreter.set_input(np.zeros(told["shape"], told["dtype"]), place)
        interpreter.invoke()
        interpreter.print_allocations()
    except (MemoryError, RuntimeError, ValueError) as error:
        print(error, file=sys.stderr, flush=True)
        return False
    return True


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
