"""Models of other tools become `Model`s: ONNX, PyTorch and Keras go in, without TensorFlow.

aten/               torch's operators as ONNX's
coded_constants.py  constants as the codes that they were made of
core/               what rules work with
free_sizes.py       sizes that stay free, found by converting at two sizes
integer_islands.py  integers that a source holds stay integers
keras_model.py      Keras models and .keras files, by torch
lower_model.py      a source as a model: lowered, its order of axes solved, tidied
onnx_file.py        .onnx files
onnx_runner.py      what an .onnx file itself gives, run in a process of its own
open_to_convert.py  what a user hands over, as nodes, and what runs it
other_formats.py    files that are not read, and the way from each to here
patterns.py         what exporters shatter, put together again
proof.py            source and result on the same inputs
protobuf.py         the wire format
rule_table.py       all rules
rules/              what LiteRT has for each operator of ONNX
torch_archive.py    .pt2 files, of which nothing is run
torch_program.py    torch modules and exported programs

Everything becomes nodes that speak ONNX (`core/source.py`); a rule for each kind of node adds
LiteRT's ops. Rules think channels first and put a TRANSPOSE wherever LiteRT wants another order;
`relayout` then solves the order over the whole graph, and `cleanup | fold | fuse` tidy what is
left. A new operator is a rule in `rules/`, in its table; `bench/convert_nodes.py` runs ONNX's own
tests of it.
"""
