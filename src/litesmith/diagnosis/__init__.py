"""`doctor`: why a model is slow, inaccurate or refused by an accelerator, and what to do.

all_targets.py        one model on every target: timed in turns, compiled or predicted
bundle.py             a zip file that reproduces a problem without the user's weights and names
causes.py             why an op of a quantized model adds to its error (`CAUSES`)
fitting.py            what keeps a model off an accelerator, and the recipe that helps, found by
                      trying
float_pairs.py        a quantized model beside its float one: which tensor is which
loss.py               what each part of a quantized model adds to its error
op_errors.py          the error of each op, the numbers behind a verdict
remedies.py           recipes that help against a cause, tried and measured
single_op_error.py    the effect of a few quantized ops in an otherwise float model
slowness.py           what costs time, ranked (`RULES`)
target_list.py        `targets`: what a model can run on, here and elsewhere
verdict.py            where accuracy is lost: the verdict, then causes by damage
without_reference.py  what a quantized file reveals without the float model

Every finding names what was seen, why it matters and the command that acts on it. A remedy is
recommended only after it was tried on the user's data.
"""
