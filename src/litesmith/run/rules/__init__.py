"""Which ops accelerators accept, by their makers' documents and by observation.

all_rules.py      the table (`RULES`)
coreml.py         Apple Core ML
edgetpu.py        Coral Edge TPU
ethos_u.py        Arm Ethos-U55 and U65, where Vela is not installed
gpu.py            LiteRT's GPU accelerator: what it takes, computes wrongly or dies of
hexagon.py        Qualcomm Hexagon
micro.py          TensorFlow Lite Micro
nnapi.py          Android NNAPI
op_conditions.py  conditions that several makers share
openvino.py       Intel OpenVINO: what it takes, computes wrongly or dies of
rule_row.py       the type of a row, and the placement of a model by a row

A condition returns the reason for refusing an op, or "" to accept it. Every row names its sources.
Where a compiler is installed, a test counts the ops on which rule and compiler disagree: none may.
"""
