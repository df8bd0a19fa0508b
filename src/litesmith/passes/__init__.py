"""Steps: each one takes a model and gives a better one. `STEPS` is the list of all of them."""

# name in a recipe -> where its dataclass is; imported when it is used
STEPS = {
    "cleanup": "litesmith.passes.cleanup:Cleanup",
    "fold": "litesmith.passes.fold:Fold",
    "fuse": "litesmith.passes.fuse:Fuse",
    "upgrade": "litesmith.passes.upgrade:Upgrade",
}
