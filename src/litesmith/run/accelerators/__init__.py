"""Accelerators: usable here or why not, and which ops of a model each accepts.

gpu.py             LiteRT's GPU accelerator, asked in a child process
hexagon.py         Qualcomm's partition tool with the user's libraries
metal.py           the GPU that Metal shows, asked by a separate program
openvino.py        OpenVINO by its own reader, which also runs models
openvino_trial.py  the program that opens a model in OpenVINO and may die of it
probes.py          whether this machine has what a target needs
targets.py         the table of targets (`DELEGATES`)
tflite_micro.py    TensorFlow Lite Micro's interpreter, which also tells the arena it used
tflite_micro_trial.py  the program that opens a model there and may die of it
vela.py            Arm's compiler for Ethos-U
vulkan.py          the GPUs that Vulkan shows, asked by a separate program

Native code may crash, so it is asked in a child process; a crash becomes one line. Rules come
first, for what would crash a compiler. How to add one: `docs/add-a-target.md`.
"""
