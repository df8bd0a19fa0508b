"""Finding a model: a recipe for one model (`tuning`), or one of several models (`choosing`).

trial/     one candidate built, measured and recorded; shared by both
tuning/    `tune`: the decision tree, mixed precision, the proof
choosing/  `choose`: candidates side by side, the front, the pick

A search remembers nothing but its folder. A candidate whose key (digests of model and data, recipe,
machine, versions) is on record is not built again: an interrupted search resumes, a repeated search
answers in seconds, and another budget judges the same measurements.
"""
