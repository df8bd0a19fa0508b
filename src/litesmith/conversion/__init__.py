"""Models of other tools become `Model`s: ONNX, PyTorch and Keras go in, without TensorFlow.

core/               what rules work with
rules/              what LiteRT has for each operator of ONNX
aten/               torch's operators as ONNX's
coded_constants.py  constants as the codes that they were made of
free_sizes.py       sizes that stay free, found by converting at two sizes
integer_islands.py  integers that a source holds stay integers
judge.py            what the source itself gives, run in a process of its own
keras_model.py      Keras models and .keras files, by torch
onnx_file.py        .onnx files
opening.py          what a user hands over, as nodes, and what runs it
other_formats.py    files that are not read, and the way from each to here
patterns.py         what exporters shatter, put together again
proof.py            source and result on the same inputs
protobuf.py         the wire format
rule_table.py       all rules
torch_archive.py    .pt2 files, of which nothing is run
torch_program.py    torch modules and exported programs
whole_model.py      a source as a model: lowered, its order of axes solved, tidied

Everything becomes nodes that speak ONNX (`core/source.py`); a rule for each kind of node adds
LiteRT's ops. Rules think channels first and put a TRANSPOSE wherever LiteRT wants another order;
`relayout` then solves the order over the whole graph, and `cleanup | fold | fuse` tidy what is
left. A new operator is a rule in `rules/`, in its table; `bench/convert_nodes.py` runs ONNX's own
tests of it.
"""
