"""Steps: each one takes a model and gives a better one. `STEPS` is the list of all of them."""

# name in a recipe -> where its dataclass is; imported when it is used
STEPS = {
    "borders": "litesmith.passes.tidy.borders:Borders",
    "cleanup": "litesmith.passes.tidy.cleanup:Cleanup",
    "cluster": "litesmith.passes.shrinking.cluster:Cluster",
    "correct": "litesmith.passes.quantizing.correct:Correct",
    "equalize": "litesmith.passes.quantizing.equalize:Equalize",
    "fold": "litesmith.passes.tidy.fold:Fold",
    "fuse": "litesmith.passes.tidy.fuse:Fuse",
    "prune": "litesmith.passes.shrinking.prune:Prune",
    "qat": "litesmith.passes.quantizing.qat:Qat",
    "quantize": "litesmith.passes.quantizing.quantize:Quantize",
    "replace": "litesmith.passes.rewriting.replace:Replace",
    "rewrite": "litesmith.passes.rewriting.rewrite:Rewrite",
    "round": "litesmith.passes.quantizing.round:Round",
    "sparsify": "litesmith.passes.shrinking.sparsify:Sparsify",
    "upgrade": "litesmith.passes.tidy.upgrade:Upgrade",
}
