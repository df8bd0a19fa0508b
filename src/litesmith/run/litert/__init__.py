"""LiteRT: the compiled model, the interpreter, custom ops; and the target `numpy`.

capi.py            the functions and structs of LiteRT's C API that are used
compiled_model.py  the compiled model; inputs and outputs are the tensors' own memory
custom_ops.py      custom ops in the compiled model
delegated_ops.py   ops that a delegate claims, turned into custom ops as the model opens
gpu_messages.py    what the GPU accelerator says of a model, as values
interpreter.py     the classic interpreter, for what the compiled model cannot do
numpy_walker.py    the target `numpy`: reference kernels, no native library
own_kernels.py     our own kernels as this room knows them; they may be absent

The runtime keeps pointing into the bytes of a model, so these live as long as the compiled model;
buffers are given back before the compiled model, and that before the model. Memory of ours must
start on a boundary of 64 bytes.
"""
