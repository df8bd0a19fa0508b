"""Is a model worse than another, or than it was? `compare`, `gate`, sizes.

baseline.py       the file that `gate` compares with: measurements and allowances
comparison.py     `compare`: two models on the same samples and in turns
gate_case.py      a model at the gate: what every check sees, and what a check returns
gate_checks.py    one check a quantity (`CHECKS`)
gate_measures.py  what the gate measures: results by sample, time against the workload, delegation
gate_rules.py     allowances, and a rule for each quantity (`QUANTITIES`); measures nothing
gating.py         `gate` and `update_baseline`
size_report.py    what a smaller model saves: disk, download, MACs, time
workload.py       a model's graph with made-up weights as a small text, to time others against
zero_skipping.py  who skips the zeros of a model, op by op

A time from another day or machine says nothing. A baseline therefore keeps a workload that takes as
long as its model would on any machine, and the gate compares ratios. `docs/gate.md` tells the
statistics.
"""
