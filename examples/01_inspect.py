"""What is in a model: ops, weights and the work of one run."""

import sys

import litesmith
from litesmith.anatomy.findings import findings
from litesmith.anatomy.footprint import footprint

model = litesmith.load(sys.argv[1])
facts = footprint(model)
print(f"{facts.parameters} parameters, {facts.macs} multiply-accumulates")
for kind, count in facts.ops.items():
    print(f"{count:4} {kind}")
for finding in findings(model):
    print(f"{finding.what}: {finding.command}")
