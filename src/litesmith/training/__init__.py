"""Training a .tflite: its graph as torch code, and back. Needs the extra `train`.

captured_step.py      one step, recorded and replayed when training on a GPU
augment.py            images shifted, mirrored and mixed
fit.py                the one training loop: learning rate by trial, early stopping, never a worse
                      result; its checkpoint on disk
learned_rounding.py   rounding of weights of few bits, learned block by block
lesson.py             what is learned: samples, target answers, the loss
recipe_context.py     the `Context` of steps with data and training
sample_arrays.py      samples as arrays, in memory or in a temporary file
settings.py           the settings and progress of a training; imports no torch
step_tuner.py         training as steps ask for it (`Context.tune`)
student.py            a model under training: its graph lifted, its weights as parameters, rounding
                      between the ops exactly as in the file
weight_parameters.py  weights as parameters: free, pruned, of a codebook
ops/                  the torch form of every op
teaching/             `retrain`: a new task for an old network

`qat` lifts the quantized graph: every tensor with a scale is rounded to it, so training sees
exactly what the file will compute. A float weight starts inside the cell of its code, at most a
quarter of a step from it; from the edge it would change sides at once and undo what `round` chose.

Parameters are in units of the size of their values, channel by channel, so one learning rate suits
all: batch normalization is folded away in a .tflite, and weights differ by orders of magnitude.

On CUDA, float models train in bfloat16. Its steps are as coarse as those of int8, so quantized
models train in TF32; losses that decide are computed in full precision.
"""

import os

# Threads that wait by spinning take the cores from those that work: 8 × slower on a busy machine.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
