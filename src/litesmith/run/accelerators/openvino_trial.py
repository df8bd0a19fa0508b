"""A model opened by OpenVINO in a process of its own, which may die of it.

The program stands alone, to start in a moment. Its words are a file, and as JSON the sizes of the
inputs and the settings. It ends with 0 where all went well, with 1 where OpenVINO said why not.
Nothing is run: a loop may need the right inputs to come to its end.
"""

# pyright: reportUnknownMemberType=false
# openvino leaves parts of its types open.

import json
import sys


def main(path: str, sizes: dict[str, list[int]], settings: dict[str, str]) -> None:
    sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]  # it would phone home
    from openvino import Core  # pyright: ignore[reportMissingImports]

    core = Core()
    model = core.read_model(path)
    model.reshape(sizes)
    core.compile_model(model, "CPU", settings).create_infer_request()


if __name__ == "__main__":
    main(sys.argv[1], *map(json.loads, sys.argv[2:]))
