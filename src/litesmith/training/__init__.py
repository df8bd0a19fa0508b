"""Training on a .tflite: its graph as differentiable torch code. Needs the extra `train`."""

import os

# Threads that wait by spinning take the cores from those that work: 8 × slower on a busy machine.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
