"""The front door: the public functions that need more than one room, one file each.

apply.py           `apply`: a recipe applied to a model; the result of a search made again
bench.py           `bench`: latency, threads, copies, all targets
catalogue.py       `catalogue`: networks by name, and as files
choose.py          `choose`: several models on the user's data and machine, and one to take
compare.py         `compare`: is one model as good as another, and faster?
convert.py         `convert`: a model of another tool as a .tflite, proven on the same inputs
demo.py            `demo`: the whole job on what ships with the package
doctor.py          `doctor`: why a model is slow or inaccurate, and the command that helps
evaluate.py        `evaluate`: accuracy with its interval, paired against a reference
export.py          `export`: a C array and op resolver for a microcontroller, memory planned
gate.py            `gate` and `update_baseline`: is a model worse than its baseline allows?
given_data.py      data as a user hands it over: opened, checked, described
made_model.py      what functions that make a model share: where the result goes, what is told of it
notebook.py        how a notebook shows a model
printed_json/      what `--json` prints and files keep, as types and schemas
profile.py         `profile`: time per op, traces
quantize.py        `quantize`: a scheme and an effort, applied and checked on the written file
recipe_job.py      a recipe that may train, carried out: data opened, result written, records kept
report.py          `report`: the page of a folder
resize.py          `resize`: a model with inputs of the sizes that the user gives
resized_copies.py  copies of models in other sizes, under the names that the user gave
retrain.py         `retrain`: a classifier of the user's classes from any float network
shrink.py          `prune`, `cluster` and `qat`: one step, trained on data, and what the result
                   costs
speed_check.py     whether a quantized file is faster than its source, and what makes it slower
tune.py            `tune`: from a model and a budget to the best file within it
view.py            `view`: a model as a graph, or two side by side, as one page

A function here opens what the user names, hands it to the rooms below, writes the files that were
asked for, and returns one frozen result. Arguments have the names of the command line's options; a
command calls its function and prints the result.
"""
