"""Models of other tools become `Model`s: ONNX, PyTorch, Keras."""
