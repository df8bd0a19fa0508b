"""The form in which each op computes, float or integers, by what it costs on a target.

assignment.py     the form of every op at the least cost
fastest_forms.py  which ops are better left float, by time alone
float_form.py     the float model that a quantized one computes, to time its ops in float
form_costs.py     what ops take in both forms, profiled or by their kinds
op_costs.py       what every op takes, profiled and kept in the cache; what conversions take
width_clock.py    times for steps: of ops, and of two models in turns

An op without a fast integer kernel (PRELU, HARD_SWISH) is best left float where two conversions
cost less than the kernel. Where several such ops stand close together it may pay to leave all of
what lies between them float, or nothing: a minimum cut finds the choice that takes least time.
"""
