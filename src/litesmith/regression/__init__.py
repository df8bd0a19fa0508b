"""Is a model worse than another, or worse than before? `compare`, `gate`, sizes.

baseline.py       the file that `gate` compares with: measurements and allowances
comparison.py     two models on the same samples and in turns
gate_checks.py    one check per quantity (`CHECKS`)
gate_measures.py  the measurements of the gate: results by sample, delegation, time against the
                  workload (a model's graph with made-up weights, as a small text)
gate_rules.py     allowances, and a rule for each quantity (`QUANTITIES`); measures nothing
gate_run.py       a gate from the baseline to the verdict, one check per quantity
size_report.py    what a smaller model saves: disk, download, MACs, time; which kernels skip its
                  zeros

A time from another day or machine says nothing. A baseline therefore stores a workload that takes
as long as its model would on any machine, and the gate compares ratios. `docs/gate.md` explains the
statistics.
"""
