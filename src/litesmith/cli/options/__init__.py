"""Options that several commands share, each declared once, and what becomes of them.

benchmark_switches.py  switches with a value, as `benchmark_model` takes them
compile_notice.py      what is said before our kernels are compiled, or if they cannot be
data_options.py        `--data`, `--samples`, `--norm` and the others that describe data
declare.py             commands made from functions: each parameter says how it is typed
engine_option.py       `--engine`, and the view of a Ray cluster's workers
language_option.py     `--lang`, taken out of the arguments before any command sees them
ops_option.py          `--ops`: custom ops and delegates of the user's own
overlay_option.py      `--overlay`: times or errors as node data for Model Explorer
shared_options.py      options that several commands have; importing them needs no more than a
                       parser
training_options.py    `--epochs`, `--minutes`, `--device` and the others of training

An option has the same name, help and meaning in every command, and the name of the argument in
Python.
"""
