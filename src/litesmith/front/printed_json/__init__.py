"""What `--json` prints and what files keep, as types: JSON schemas are made of them, and tests hold
the results of every command against the schemas.

bench_json.py    `bench`
change_json.py   `quantize`, `qat`, `prune`, `cluster`, `apply`, `export`
find_json.py     `choose`, `retrain`, `catalogue`, `convert`
keep_json.py     `gate`
look_json.py     `inspect`, `view`, `profile`, `eval`, `compare`, `diff`, `targets`
micro_facts.py   a model on a microcontroller, as `bench` and `export` print it
schemas.py       the table of all of them, and their schemas
shared_facts.py  objects that several commands print
start_json.py    `tune`, `doctor`

A type is a command's, `…Json`, or part of one, `…Facts`. A record that is printed as it is kept is
declared in `evidence/`.
"""
