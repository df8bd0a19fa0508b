"""Steps: each one takes a model and gives a better one. `STEPS` is the list of all of them."""

# name in a recipe -> where its dataclass is; imported when it is used
STEPS = {
    "borders": "litesmith.passes.borders:Borders",
    "cleanup": "litesmith.passes.cleanup:Cleanup",
    "cluster": "litesmith.passes.cluster:Cluster",
    "correct": "litesmith.passes.correct:Correct",
    "equalize": "litesmith.passes.equalize:Equalize",
    "fold": "litesmith.passes.fold:Fold",
    "fuse": "litesmith.passes.fuse:Fuse",
    "prune": "litesmith.passes.prune:Prune",
    "qat": "litesmith.passes.qat:Qat",
    "quantize": "litesmith.passes.quantize:Quantize",
    "replace": "litesmith.passes.replace:Replace",
    "rewrite": "litesmith.passes.rewrite:Rewrite",
    "round": "litesmith.passes.round:Round",
    "sparsify": "litesmith.passes.sparse:Sparsify",
    "upgrade": "litesmith.passes.upgrade:Upgrade",
}
