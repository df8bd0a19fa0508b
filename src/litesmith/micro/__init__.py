"""Microcontrollers: the memory of a model under TensorFlow Lite Micro, and a file that fits.

arena.py          the arena added up: permanent memory by kind and by op, planned memory, the total
arrange.py        `arrange`: order, bands and plan, as far as the RAM requires
bands.py          layers computed a few rows at a time
boards.py         the table of boards (`BOARDS`), and the room that a user gives
buffers.py        planned tensors and scratch, each with the ops between which it lives
c_export.py       a model as a C array, and the op resolver that it needs
encode.py         `encode`: weights in the compressed form that the interpreter decodes
flash.py          the model, the interpreter and the kernels in flash, estimated
greedy_plan.py    the interpreter's own plan, placed as the interpreter places it
kernel_memory.py  the memory of each kernel in the arena (`KERNELS`)
memory_report.py  the whole answer for a model: arena, flash, and whether a board has room
offline_plan.py   the plan as metadata of a file
op_order.py       the order of ops with the lowest peak
overlap.py        how far below its input a layer's output must start to share its memory
plan_file.py      a model ordered, planned, proven and written with its plan
plan_proof.py     a plan proven: run op by op in memory that is poisoned between ops
structures.py     the interpreter's structures and their sizes on 32 and 64 bits
tight_plan.py     plans with less memory, and the proof that no two values clash

Nothing here needs the wheel. Sizes are computed from the structures and the kernels' requests;
`run/accelerators/tflite_micro.py` runs the real interpreter, and the tests compare the two. A plan
is proven before it is written, since stock TensorFlow Lite Micro checks nothing.
"""
