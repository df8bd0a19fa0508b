"""Which recipes are refused by which models of the zoo, and in which words."""

from collections.abc import Iterable

# What the one line says, of which recipes, and of which models; or of all `but` these.
_TABLE: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "quantized already",
        ("quantize(to=int16x8, only=[0]) | quantize(to=dynamic)",),
        "but attention computed_shape convnet described half_weights multiplied_depth "
        "odd_layers padded picked recurrent shared_weights tied tiny_output two_inputs upsampled "
        "weighted_by_input",
    ),
    (
        "quantized already",
        (
            "quantize(only=[0]) | quantize(to=int16x8)",
            "quantize(only=[0], io=uint8) | quantize(to=int16x8)",
            "quantize(to=int16x8, only=[0]) | quantize(io=uint8)",
        ),
        "branches constant_output dead_channel passed_on same_twice scalars",
    ),
    (
        "quantized already",
        (
            "cleanup | fold(float16=true) | fuse | equalize | quantize | correct",
            "qat",
            "quantize",
            "quantize | correct",
            "quantize | round(bits=4)",
            "quantize(keep=[0])",
            "quantize(only=[0])",
            "quantize(per_channel=false)",
            "quantize(ranges=mse)",
            "quantize(to=dynamic)",
            "quantize(to=dynamic-int4)",
            "quantize(to=dynamic-int4, block=32)",
            "quantize(to=float16)",
            "quantize(to=int16x8)",
            "quantize(to=w4a8)",
            "quantize(to=w4a8) | round",
            "quantize(to=w4a8) | round(search=false)",
            "quantize(to=weight-int4)",
            "quantize(to=weight-int8)",
        ),
        "blockwise hybrid int4_weights legacy_uint8 residual_int8",
    ),
    (
        "quantized already",
        (
            "quantize(to=dynamic, only=[0]) | quantize",
            "quantize(to=weight-int8, only=[0]) | quantize",
        ),
        "constant_output dead_channel passed_on same_twice",
    ),
    (
        "no layer of the model",
        (
            "prune",
            "prune | cluster(k=8) | quantize",
            "prune(block=1x4)",
            "prune(block=2:4)",
            "prune(schedule=gradual)",
            "prune(sparsity=0.25)",
            "prune(sparsity=0.75, block=1x4) | sparsify(least=0.5)",
            "prune(tune=false)",
            "quantize(to=dynamic-int4, block=32)",
        ),
        "branches careless custom different_ranges half_weights loop nothing resizable "
        "same_names scalars sparse stateful strings tied two_signatures variables",
    ),
    (
        "no layer of the model",
        (
            "quantize(to=dynamic)",
            "quantize(to=dynamic-int4)",
            "quantize(to=float16)",
            "quantize(to=weight-int4)",
            "quantize(to=weight-int8)",
            "quantize(to=weight-int8, per_channel=false)",
        ),
        "branches careless custom different_ranges half_weights loop nothing resizable "
        "same_names scalars sparse stateful strings two_signatures variables",
    ),
    (
        "no layer of the model",
        (
            "cluster",
            "cluster(k=4)",
            "cluster(per_channel=false)",
            "cluster(tune=false)",
        ),
        "branches careless custom loop nothing resizable same_names scalars sparse stateful "
        "strings tied two_signatures variables",
    ),
    (
        "no layer of the model",
        (
            "cluster(only=[0])",
            "prune(keep=[0])",
            "prune(only=[0])",
        ),
        "branches careless custom half_weights loop resizable same_names sparse stateful "
        "strings two_signatures variables",
    ),
    (
        "no layer of the model",
        (
            "quantize(to=dynamic, only=[0]) | quantize",
            "quantize(to=weight-int8, only=[0]) | quantize",
        ),
        "branches careless convnet described different_ranges half_weights multiplied_depth "
        "padded scalars tiny_output upsampled weighted_by_input",
    ),
    (
        "no layer of the model",
        (
            "cleanup | fold(float16=true) | fuse | equalize | quantize | correct",
            "quantize",
            "quantize | correct",
            "quantize | round(bits=4)",
            "quantize(per_channel=false)",
            "quantize(ranges=mse)",
            "quantize(to=int16x8)",
            "quantize(to=w4a8)",
            "quantize(to=w4a8) | round",
            "quantize(to=w4a8) | round(search=false)",
            "quantize(io=int8)",
            "quantize(io=uint8)",
            "quantize(ranges=percentile)",
            "quantize(to=int16x8, io=int16)",
        ),
        "branches custom loop nothing resizable same_names sparse stateful strings "
        "two_signatures variables",
    ),
    (
        "no layer of the model",
        (
            "cluster(keep=[0])",
            "cluster(own=[0:8])",
        ),
        "branches careless custom loop resizable same_names sparse stateful strings "
        "two_signatures variables",
    ),
    (
        "no layer of the model",
        ("quantize(keep=[0])",),
        "branches custom loop resizable same_names sparse stateful strings two_signatures "
        "variables",
    ),
    (
        "no layer of the model",
        ("quantize(only=[0])",),
        "custom half_weights loop sparse stateful strings variables",
    ),
    (
        "no layer of the model",
        (
            "quantize(to=int16x8, only=[0]) | quantize(io=uint8)",
            "quantize(to=int16x8, only=[0]) | quantize(to=dynamic)",
        ),
        "half_weights tied weighted_by_input",
    ),
    (
        "no layer of the model",
        (
            "quantize(only=[0]) | quantize(to=int16x8)",
            "quantize(only=[0], io=uint8) | quantize(to=int16x8)",
        ),
        "half_weights weighted_by_input",
    ),
    (
        "is quantized;",
        (
            "cluster",
            "cluster(k=4)",
            "cluster(keep=[0])",
            "cluster(only=[0])",
            "cluster(own=[0:8])",
            "cluster(per_channel=false)",
            "cluster(tune=false)",
            "prune",
            "prune | cluster(k=8) | quantize",
            "prune(block=1x4)",
            "prune(block=2:4)",
            "prune(block=channels)",
            "prune(keep=[0])",
            "prune(only=[0])",
            "prune(schedule=gradual)",
            "prune(sparsity=0.25)",
            "prune(sparsity=0.75, block=1x4) | sparsify(least=0.5)",
            "prune(tune=false)",
        ),
        "blockwise hybrid int4_weights legacy_uint8 residual_int8",
    ),
    (
        "no op 0",
        (
            "cluster(keep=[0])",
            "cluster(only=[0])",
            "cluster(own=[0:8])",
            "prune(keep=[0])",
            "prune(only=[0])",
            "quantize(keep=[0])",
            "quantize(only=[0])",
            "replace(ops=[0], op=Another)",
        ),
        "nothing",
    ),
    (
        "the model is float",
        (
            "correct",
            "round",
        ),
        "but blockwise half_weights hybrid int4_weights legacy_uint8 odd_layers residual_int8 "
        "weighted_by_input",
    ),
    (
        "needs the float model",
        (
            "correct",
            "round",
        ),
        "blockwise hybrid int4_weights legacy_uint8 residual_int8",
    ),
    (
        "layers are not the",
        (
            "correct",
            "round",
        ),
        "half_weights odd_layers weighted_by_input",
    ),
    (
        "no channel can go",
        ("prune(block=channels)",),
        "branches careless half_weights loop nothing resizable same_names sparse stateful "
        "strings two_signatures variables",
    ),
    (
        "no kernel is registered",
        ("prune(block=channels)",),
        "custom",
    ),
    (
        "no data to train on",
        ("qat",),
        "but blockwise hybrid int4_weights legacy_uint8 residual_int8",
    ),
    (
        "which would be lost",
        ("replace(ops=[0], op=Another)",),
        "loop stateful",
    ),
    (
        "nobody reads",
        ("replace(ops=[0], op=Another)",),
        "variables",
    ),
    (
        "computes in uint8",
        (
            "upgrade",
            "upgrade | cleanup",
        ),
        "but legacy_uint8",
    ),
)


def refusal(recipe: str, name: str) -> str | None:
    """What a model is told that this recipe does not fit; None where it does."""
    for words, recipes, names in _TABLE:
        listed = names.removeprefix("but ").split()
        if recipe in recipes and (name in listed) != names.startswith("but "):
            return words
    return None


def fitting(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pairs of a recipe and a model that are not refused."""
    return [pair for pair in pairs if refusal(*pair) is None]


def refused(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """The pairs that are, each with what it is told."""
    return [(*pair, words) for pair in pairs if (words := refusal(*pair)) is not None]
