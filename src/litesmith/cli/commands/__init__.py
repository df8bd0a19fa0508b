"""The commands, one file each: options in, a public function called, its result printed.

apply.py      `litesmith apply`: a recipe
bench.py      `litesmith bench`: latency with intervals, models or targets in turns
cache.py      `litesmith cache`: what is kept between runs, and where
catalogue.py  `litesmith catalogue`: networks by name, and as files
choose.py     `litesmith choose`: one model picked among several
cluster.py    `litesmith cluster`: few values in each weight
compare.py    `litesmith compare`: is B as good as A, and faster?
demo.py       `litesmith demo`: the whole job on the model and data that ship with the package
diff.py       `litesmith diff`: what changed between two models
doctor.py     `litesmith doctor`: why a model is slow or inaccurate, and the command that helps
evaluate.py   `litesmith eval`: accuracy with its interval, paired against a reference
gate.py       `litesmith gate`: exit status 1 where a model is worse than its baseline allows
inspect.py    `litesmith inspect`: what is in a model
profile.py    `litesmith profile`: time per op, traces
prune.py      `litesmith prune`: zeros, or whole channels removed
qat.py        `litesmith qat`: quantize, then train
quantize.py   `litesmith quantize`: a scheme and an effort, applied and checked
report.py     `litesmith report`: the page of a folder again
retrain.py    `litesmith retrain`: a classifier of the user's classes
targets.py    `litesmith targets`: what a model can run on, here and elsewhere
tune.py       `litesmith tune`: from a budget to the best file within it

To add a command: a file here, a row in the table of `cli/main.py`, a public function that does the
work.
"""
