"""Models of other tools become `Model`s: ONNX, PyTorch and Keras go in, without TensorFlow.

aten/               torch's operators as ONNX's
coded_constants.py  constants as the codes from which they were made
core/               the tools of rules
free_sizes.py       sizes that stay free, found by converting at two sizes
integer_islands.py  integers of a source stay integers
keras_model.py      Keras models and .keras files, by torch
lower_model.py      a source as a model: lowered, its order of axes solved, tidied
onnx_file.py        .onnx files
onnx_runner.py      the outputs of an .onnx file itself, run in a process of its own
open_to_convert.py  the user's source as nodes, with a way to run it
other_formats.py    files that are not read, and how to bring each of them here
patterns.py         patterns that exporters shatter, put together again
proof.py            source and result on the same inputs
protobuf.py         the wire format
rule_table.py       all rules
rules/              LiteRT's counterpart of each operator of ONNX
torch_archive.py    .pt2 files, from which nothing is executed
torch_program.py    torch modules and exported programs

Everything becomes nodes that speak ONNX (`core/source.py`); a rule for each kind of node adds
LiteRT's ops. Rules think channels first and insert a TRANSPOSE wherever LiteRT wants another order;
`relayout` then solves the order over the whole graph, and `cleanup | fold | fuse` tidy the rest. A
new operator is a rule in `rules/`, in its table; `bench/convert_nodes.py` runs ONNX's own tests of
it.
"""
