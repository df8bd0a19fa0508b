"""`doctor`: why a model is slow, inaccurate or refused by an accelerator, and what to do.

accelerator_fit.py    what keeps a model off an accelerator, and the recipe that helps, found by
                      trying
accuracy_verdict.py   where accuracy is lost: the verdict, then causes by damage, each with the
                      recipe that helps, tried and measured
all_targets.py        one model on every target: timed in turns, compiled or predicted; `targets`
bundle.py             a zip file that reproduces a problem without the user's weights and names
causes.py             why an op of a quantized model adds to its error (`CAUSES`)
float_pairs.py        a quantized model beside its float one: which tensor is which
op_losses.py          what each part of a quantized model adds to its error, and does to its output
other_forms.py        the time of a model with other ops in float or int8, tried and timed
slowness.py           what costs time, ranked (`RULES`)
without_reference.py  what a quantized file reveals without the float model

Every finding names the evidence, why it matters and the command that acts on it. A remedy is
recommended only after it was tried on the user's data.
"""
