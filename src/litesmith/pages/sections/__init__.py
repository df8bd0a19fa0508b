"""Sections of pages; `pages/tune_page.py` and `pages/retrain_page.py` have them in order.

about.py          how the result came about: decisions, data, machine, how to repeat it
accelerators.py   which accelerators run the models, entirely or in part
class_tables.py   every class of a retrained model: its share right, what it is taken for
disagreements.py  the items that the result and the float model answer most differently
inside_models.py  time per op before and after; error per layer
micro_memory.py   the memory of a microcontroller: the plan over time, and its parts
trial_table.py    every trial, in a table and in the graphs
tune_verdict.py   what to ship, what it gains, how to run it

A section is a function from the record to its content; a section without content is left out.
"""
