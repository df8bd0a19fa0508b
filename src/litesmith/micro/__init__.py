"""Microcontrollers: what a model takes of memory under TensorFlow Lite Micro, and a file that fits.

arena.py          the arena added up: what lasts by kind and by op, what is planned, the total
arrange.py        `arrange`: order, bands and plan, as far as the RAM asks
bands.py          layers made a few rows at a time
boards.py         the table of boards (`BOARDS`), and the room that a user gives
buffers.py        planned tensors and scratch, and from which op to which each one lives
c_export.py       a model as a C array, and the op resolver that it needs
encode.py         `encode`: weights in the compressed form that the interpreter decodes
flash.py          the model, the interpreter and the kernels in flash, estimated
greedy_plan.py    the interpreter's own plan, placed as it places it
kernel_memory.py  what each kernel takes of the arena (`KERNELS`)
memory_report.py  the whole answer for a model: arena, flash, and whether a board has room
offline_plan.py   the plan as metadata of a file
op_order.py       the order of ops whose peak is lowest
overlap.py        how far a layer's output must precede its input to share its memory
plan_file.py      a model ordered, planned, proven and written with its plan
plan_proof.py     a plan proven: followed op by op in memory that is poisoned in between
structures.py     the interpreter's structures and their sizes on 32 and 64 bits
tight_plan.py     plans with less memory, and the proof that no two values clash

Nothing here needs the wheel. Figures are computed from the structures and the kernels' requests;
`run/accelerators/tflite_micro.py` runs the real interpreter, and the tests hold one against the
other. A plan is proven before it is written, since stock TensorFlow Lite Micro checks nothing.
"""
