"""Is a model worse than another, or than it was? `compare`, `gate`, sizes.

baseline.py       the file that `gate` compares with: measurements and allowances
comparison.py     two models on the same samples and in turns
gate_checks.py    one check a quantity (`CHECKS`)
gate_measures.py  what the gate measures: results by sample, delegation, time against the workload
                  (a model's graph with made-up weights, as a small text)
gate_rules.py     allowances, and a rule for each quantity (`QUANTITIES`); measures nothing
gate_run.py       a gate from the baseline to the verdict, one check a quantity
size_report.py    what a smaller model saves: disk, download, MACs, time; who skips its zeros

A time from another day or machine says nothing. A baseline therefore keeps a workload that takes as
long as its model would on any machine, and the gate compares ratios. `docs/gate.md` tells the
statistics.
"""
