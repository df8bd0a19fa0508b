"""What steps are made of.

layers.py            an op as data, weight, bias and output channels
lstm.py              LSTMs that are one op, by the places of their inputs
recipe.py            recipes: steps in order, and their text form
schemes.py           the schemes of quantization (`SCHEMES`); which ops `keep` and `only` name
step.py              `Step`, `Change`, `Skip`, `Context`
weight_structure.py  zeros and codebooks found again in weights

`Context.reference` is the last model of the recipe that was still float: what a quantized model is
to stand for.
"""
