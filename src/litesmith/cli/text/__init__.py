"""How results print for people.

apply_text.py      what was done, what was left alone, the sizes of the file
bench_text.py      latency, ratios and verdicts
catalogue_text.py  the table of networks
choose_text.py     progress and result of `choose`
compare_text.py    two models side by side, and the verdict
convert_text.py    the result of a conversion, and its distance from the source
demo_text.py       the steps of `demo`, and the next commands
diff_text.py       what changed between two models
doctor_text.py     findings, causes and the commands that help
evaluate_text.py   accuracy and differences, with intervals
gate_text.py       the table of a gate, and a reason for everything that is not ok
inspect_text.py    what is in a model
live_view.py       a view of long work, and of a cluster's workers, that disappears with the work
message.py         a message on stderr, broken at words where the terminal is narrow
micro_text.py      memory on a microcontroller, and what export wrote
printing.py        lines, headings, tables and commands to copy, in the language in use
profile_text.py    time per op
progress_text.py   long work while it lasts: a line that disappears, and notes that stay
quantize_text.py   what was done, left alone and checked, and the next command
retrain_text.py    what was learned, and the worst classes
shrink_text.py     what `prune`, `cluster` and `qat` did and how training went
size_text.py       all sizes and the time of a smaller model in one table
speed_text.py      the time of a quantized file beside its source's, and the cure
targets_text.py    what a model can run on
topic_text.py      first steps, and pages of help
tune_text.py       progress and result of `tune`
view_text.py       the path of a page of graphs, and how the ops changed

Only text is made here; `units.py` formats numbers, and sentences are translated when they are
printed.
"""
