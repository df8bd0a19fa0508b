"""A network from the catalogue, for five classes of your own, as a file that LiteRT runs."""

import sys

import litesmith
from litesmith import networks as catalogue
from litesmith.anatomy.footprint import footprint

for name in ("mobilenet_v1:0.25@96", "mobilenet_v2:0.35@96", "mobilenet_v3_small:0.5@96"):
    facts = footprint(catalogue.build(name, classes=5, seed=None))
    print(f"{name:26} {facts.parameters:8} parameters {facts.macs:9} multiply-accumulates")

# The weights are random; catalogue.load_weights(name, file) puts in those of a file of yours.
model = catalogue.build("mobilenet_v1:0.25@96", classes=5)
litesmith.save(model, sys.argv[1])
with litesmith.Session(sys.argv[1]) as session:
    session.inputs["image"][...] = 0.5
    session.run()
    print("scores", session.outputs["scores"].round(3))
