"""How sound becomes the input of a model: TFLite metadata has no field for that, so the features
are stored as text in a buffer of the model.
"""

from dataclasses import replace

import numpy as np

from litesmith.ir.types import Model

ENTRY = "LITESMITH_FEATURES"

_MOST_BYTES = 200


def state_features(model: Model, features: str) -> Model:
    """The model with a statement of the features of its input, as `--features` takes them."""
    others = tuple(entry for entry in model.metadata if entry[0] != ENTRY)
    content = np.frombuffer(features.encode(), np.uint8)
    return replace(model, metadata=(*others, (ENTRY, content)) if features else others)


def stated_features(model: Model) -> str:
    """The features that a model states; "" where it states none."""
    content = next((data for name, data in model.metadata if name == ENTRY), None)
    if content is None or content.nbytes > _MOST_BYTES:
        return ""
    return content.tobytes().decode("ascii", "replace")
