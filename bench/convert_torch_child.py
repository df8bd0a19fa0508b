"""A network of `torch_nets.py` by litert-torch: python bench/convert_torch_child.py NAME OUT."""

import sys

import litert_torch
from torch_nets import build

if __name__ == "__main__":
    module, inputs = build(sys.argv[1])
    litert_torch.convert(module, inputs).export(sys.argv[2])
