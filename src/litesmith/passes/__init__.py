"""Steps: each takes a model and returns a better one. `STEPS` lists all of them.

core/        what a step, a recipe, a scheme and a layer are
tidy/        the same results with less: `cleanup`, `fold`, `fuse`, `hoist`, `upgrade`, `borders`,
             `relayout`, `resize`
quantizing/  smaller numbers: `quantize`, `correct`, `round`, `equalize`, `masks`, `level`,
             `smooth`, `qat`
shrinking/   fewer weights, or fewer distinct ones: `prune`, `cluster`, `sparsify`
rewriting/   the same model with other ops: `rewrite`, `replace`

The steps for microcontrollers, `arrange` and `encode`, are in the room `micro`.

A step is a frozen dataclass; its fields are its whole configuration, in Python, in recipe text and
in the search. A step is pure: whatever it needs besides the model comes in a `Context`. Nothing is
stored beside a model; that weights are pruned or clustered shows in the weights.

`tests/test_every_step.py` checks the laws of every step on every model of the zoo. How to add one:
`docs/add-a-step.md`.
"""

# name in a recipe -> where its dataclass is; imported when it is used
STEPS = {
    "arrange": "litesmith.micro.arrange:Arrange",
    "borders": "litesmith.passes.tidy.borders:Borders",
    "cleanup": "litesmith.passes.tidy.cleanup:Cleanup",
    "cluster": "litesmith.passes.shrinking.cluster:Cluster",
    "correct": "litesmith.passes.quantizing.correct:Correct",
    "encode": "litesmith.micro.encode:Encode",
    "equalize": "litesmith.passes.quantizing.equalize:Equalize",
    "fold": "litesmith.passes.tidy.fold:Fold",
    "fuse": "litesmith.passes.tidy.fuse:Fuse",
    "hoist": "litesmith.passes.tidy.hoist:Hoist",
    "level": "litesmith.passes.quantizing.level:Level",
    "masks": "litesmith.passes.quantizing.masks:Masks",
    "prune": "litesmith.passes.shrinking.prune:Prune",
    "qat": "litesmith.passes.quantizing.qat:Qat",
    "quantize": "litesmith.passes.quantizing.quantize:Quantize",
    "relayout": "litesmith.passes.tidy.relayout:Relayout",
    "replace": "litesmith.passes.rewriting.replace:Replace",
    "resize": "litesmith.passes.tidy.resize:Resize",
    "rewrite": "litesmith.passes.rewriting.rewrite:Rewrite",
    "round": "litesmith.passes.quantizing.round:Round",
    "smooth": "litesmith.passes.quantizing.smooth:Smooth",
    "sparsify": "litesmith.passes.shrinking.sparsify:Sparsify",
    "upgrade": "litesmith.passes.tidy.upgrade:Upgrade",
}
