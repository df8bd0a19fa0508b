"""Which ops compute in float and which in integers, by their measured time on a target.

assignment.py     chooses a form for every op at the least total cost
fastest_forms.py  which ops of a model are faster left in float
float_form.py     a quantized model turned back into float, to time its ops in float
form_costs.py     the time of every op in both forms, profiled or estimated from its kind
op_costs.py       the time of every op and of conversions, profiled once and cached
width_clock.py    the clock that steps use: ops profiled, two models timed in turns

An op without a fast integer kernel (PRELU, HARD_SWISH) is best left float where two conversions
cost less than the kernel. Where several such ops stand close together, it may pay to leave
everything between them in float too, or nothing at all: a minimum cut finds the fastest choice.
"""
