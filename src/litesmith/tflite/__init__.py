"""Bytes to `Model` and back: the only room that knows flatbuffer positions.

file.py            `load` and `save`: mapped in, written whole or not at all
label_archive.py   the zip archive of label files behind a model
read.py            tables to `Model`; constants are views on the mapped file
read_metadata.py   the statements of metadata about inputs and labels
sound_metadata.py  how sound becomes a model's input, for which metadata has no field
unpack.py          tables read by the schema; no offset is trusted
write.py           `Model` to bytes, as a stream: one canonical file for each model
write_metadata.py  metadata for a model: normalisation and class names

Whatever a type does not model is kept in its `rest`, under the schema's names, and written back. A
field newer than the schema cannot be copied, because its type is unknown: such a model can be
inspected, and writing it is refused with the field's name.

One flaw is repaired on reading: scales along another axis than the only one of a tensor. `mended`
of the model names such tensors; a session runs the repaired bytes.

Reading has a budget: a file that visits more than twice its size is refused.
"""
