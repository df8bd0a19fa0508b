"""ATen's operators on each element by itself."""

from math import pi, prod

import numpy as np

from litesmith.conversion.aten.call import Argument, Call, NotWritten, Ref, Row, computed
from litesmith.conversion.core.source import Setting

# The types in the order by which torch promotes a number beside tensors: its category counts, not
# its width.
_ORDER = ("bool", "uint8", "int8", "int16", "int32", "int64", "float32")


def promoted(*values: Argument) -> str:
    """The element type that operands are brought to."""
    tensors = [computed(v.dtype) for v in values if isinstance(v, Ref)]
    numbers = ["float32" if isinstance(v, float) else "bool" for v in values if type(v) is not Ref]
    return max(tensors + numbers, key=_ORDER.index, default="float32")


def _float(call: Call, name: str = "self") -> str:
    return call.operand(name, "float32")


def one(kind: str, **settings: Setting) -> Row:
    """An operator of one tensor that ONNX has as it is."""

    def row(call: Call) -> None:
        call.end(kind, call.operand("self", call.dtype), **settings)

    return row


def asked(kind: str) -> Row:
    """A question about each value."""
    return lambda call: call.end(kind, call.name("self"))


def two(kind: str) -> Row:
    """An operator of two tensors in the type of its result; `alpha` times the second."""

    def row(call: Call) -> None:
        a, b = (call.operand(name, call.dtype) for name in ("self", "other"))
        alpha = call.arguments.get("alpha", 1)
        if isinstance(alpha, int | float) and alpha != 1:
            b = call.step("Mul", b, call.constant(alpha, call.dtype))
        call.end(kind, a, b)

    return row


def compared(kind: str) -> Row:
    def row(call: Call) -> None:
        dtype = promoted(call.arguments["self"], call.arguments["other"])
        a, b = (call.operand(name, dtype) for name in ("self", "other"))
        if kind == "NotEqual":
            call.end("Not", call.step("Equal", a, b))
        else:
            call.end(kind, a, b)

    return row


def logical(kind: str) -> Row:
    def row(call: Call) -> None:
        call.end(kind, *(truth(call, name) for name in ("self", "other") if call.has(name)))

    return row


def truth(call: Call, name: str) -> str:
    """True where a value is not zero."""
    value = call.arguments[name]
    if not isinstance(value, Ref):
        return call.operand(name, "bool")
    if value.dtype == "bool":
        return value.name
    zero = call.constant(0, value.dtype)
    return call.step("Not", call.step("Equal", value.name, zero))


def bitwise(kind: str) -> Row:
    """On truth values these are logical; the last bits alone are a rest."""

    def row(call: Call) -> None:
        if call.dtype == "bool":
            logical({"BitwiseAnd": "And", "BitwiseOr": "Or"}.get(kind, "Xor"))(call)
        elif kind == "BitwiseAnd" and (size := _last_bits(call.arguments.get("other"))):
            call.end("Mod", call.name("self"), call.constant(size, call.dtype))
        else:
            two(kind)(call)

    return row


def _last_bits(mask: Argument) -> int:
    """The number of values that the low bits kept by a mask can represent; 0 where it keeps
    others."""
    return mask + 1 if isinstance(mask, int) and mask > 0 and not mask & mask + 1 else 0


def bitwise_not(call: Call) -> None:
    if call.dtype == "bool":
        call.end("Not", call.name("self"))
        return
    call.end("Sub", call.constant(-1, call.dtype), call.name("self"))


def rsub(call: Call) -> None:
    a, b = (call.operand(name, call.dtype) for name in ("self", "other"))
    alpha = call.number("alpha", 1)
    if alpha != 1:
        a = call.step("Mul", a, call.constant(alpha, call.dtype))
    call.end("Sub", b, a)


def divide(call: Call) -> None:
    a, b = (call.operand(name, call.dtype) for name in ("self", "other"))
    way = call.word("rounding_mode")
    if way == "floor":
        _floor_divide(call, a, b)
    elif way == "trunc" and call.dtype == "float32":
        _truncate(call, call.step("Div", a, b))
    else:
        call.end("Div", a, b)


def _floor_divide(call: Call, a: str, b: str) -> None:
    if call.dtype == "float32":
        call.end("Floor", call.step("Div", a, b))
    else:  # less its rest it divides evenly, whichever way the kernel rounds
        call.end("Div", call.step("Sub", a, call.step("Mod", a, b)), b)


def floor_divide(call: Call) -> None:
    _floor_divide(call, *(call.operand(name, call.dtype) for name in ("self", "other")))


def _truncate(call: Call, x: str) -> None:
    size = call.step("Floor", call.step("Abs", x))
    call.end("Mul", size, call.step("Sign", x))


def truncate(call: Call) -> None:
    _truncate(call, call.name("self"))


def fraction(call: Call) -> None:
    x = call.name("self")
    size = call.step("Floor", call.step("Abs", x))
    call.end("Sub", x, call.step("Mul", size, call.step("Sign", x)))


def fmod(call: Call) -> None:
    call.end("Mod", *(call.operand(n, call.dtype) for n in ("self", "other")), fmod=1)


def power(call: Call) -> None:
    call.end("Pow", *(call.operand(name, call.dtype) for name in ("self", "exponent")))


def arc_tangent_2(call: Call) -> None:
    call.end("litesmith.ATAN2", _float(call), _float(call, "other"))


def scaled(kind: str, factor: float, *, before: bool = False) -> Row:
    """A function of a multiple, or a multiple of a function."""

    def row(call: Call) -> None:
        x, times = _float(call), call.constant(factor, "float32")
        if before:
            call.end(kind, call.step("Mul", x, times))
        else:
            call.end("Mul", call.step(kind, x), times)

    return row


def rsqrt(call: Call) -> None:
    call.end("litesmith.RSQRT", _float(call))


def log1p(call: Call) -> None:
    call.end("Log", call.step("Add", _float(call), call.constant(1.0, "float32")))


def expm1(call: Call) -> None:
    call.end("Sub", call.step("Exp", _float(call)), call.constant(1.0, "float32"))


def _bound(call: Call, name: str) -> str:
    return call.operand(name, call.dtype) if call.has(name) else ""


def clamp(call: Call) -> None:
    x = call.operand("self", call.dtype)
    ends = {"Max": _bound(call, "min"), "Min": _bound(call, "max")}
    if not any(isinstance(call.arguments.get(n), Ref) for n in ("min", "max")):
        call.end("Clip", x, *ends.values())
        return
    steps = [(kind, end) for kind, end in ends.items() if end]
    for kind, end in steps[:-1]:
        x = call.step(kind, x, end)
    call.end(steps[-1][0], x, steps[-1][1])


def hardtanh(call: Call) -> None:
    ends = (call.constant(call.number(n, d), call.dtype) for n, d in _TANH_ENDS)
    call.end("Clip", call.name("self"), *ends)


_TANH_ENDS = (("min_val", -1.0), ("max_val", 1.0))


def relu6(call: Call) -> None:
    call.end("Clip", call.name("self"), call.constant(0, call.dtype), call.constant(6, call.dtype))


def gelu(call: Call) -> None:
    call.end("Gelu", call.name("self"), approximate=call.word("approximate", "none"))


def elu(call: Call) -> None:
    scale, inner = call.number("scale", 1), call.number("input_scale", 1)
    if inner != 1:
        raise NotWritten("an ELU whose input is scaled; scale it in a step of its own")
    if scale == 1:
        call.end("Elu", call.name("self"), alpha=call.number("alpha", 1))
        return
    made = call.step("Elu", call.name("self"), alpha=call.number("alpha", 1))
    call.end("Mul", made, call.constant(scale, "float32"))


def celu(call: Call) -> None:
    call.end("Celu", call.name("self"), alpha=float(call.number("alpha", 1)))


def leaky_relu(call: Call) -> None:
    call.end("LeakyRelu", call.name("self"), alpha=float(call.number("negative_slope", 0.01)))


def prelu(call: Call) -> None:
    x, weight = call.ref("self"), call.ref("weight")
    shape = (prod(weight.shape), *[1] * (x.rank - 2))
    call.end("PRelu", x.name, call.step("Reshape", weight.name, call.whole(shape)))


def softplus(call: Call) -> None:
    beta = call.number("beta", 1)
    if beta == 1:
        call.end("Softplus", call.name("self"))
        return
    inner = call.step("Mul", call.name("self"), call.constant(beta, "float32"))
    call.end("Mul", call.step("Softplus", inner), call.constant(1 / beta, "float32"))


def log_sigmoid(call: Call) -> None:
    call.end("Neg", call.step("Softplus", call.step("Neg", call.name("self"))))


def shrink(hard: bool) -> Row:
    def row(call: Call) -> None:
        edge = float(call.number("lambd", 0.5))
        call.end("Shrink", call.name("self"), lambd=edge, bias=0.0 if hard else edge)

    return row


def threshold(call: Call) -> None:
    x = call.name("self")
    above = call.step("Greater", x, call.constant(call.number("threshold"), call.dtype))
    call.end("Where", above, x, call.constant(call.number("value"), call.dtype))


def gated(call: Call) -> None:
    x = call.ref("self")
    axis = call.integer("dim", -1) % x.rank
    value, gate = call.steps("Split", 2, x.name, axis=axis, num_outputs=2)
    call.end("Mul", value, call.step("Sigmoid", gate))


def identity(name: str = "self") -> Row:
    """An operator that changes nothing at inference: a copy, possibly in another type."""

    def row(call: Call) -> None:
        call.end("Identity", call.cast(call.ref(name), call.dtype))

    return row


def native_dropout(call: Call) -> None:
    call.end("Dropout", call.name("input"))


def filled(call: Call) -> None:
    """A tensor of one value, of the result's sizes."""
    value = call.arguments.get("fill_value", call.arguments.get("value"))
    if isinstance(value, Ref):
        call.end("Expand", call.cast(value, call.dtype), call.whole(call.shape))
        return
    numbers = np.full(call.shape, value, computed(call.dtype))
    call.end("Identity", call.constant(numbers))


def filled_with(value: int) -> Row:
    def row(call: Call) -> None:
        call.end("Identity", call.constant(np.full(call.shape, value, computed(call.dtype))))

    return row


def where(call: Call) -> None:
    condition = call.ref("condition")
    a, b = (call.operand(name, call.dtype) for name in ("self", "other"))
    call.end("Where", call.cast(condition, "bool"), a, b)


def masked_fill(call: Call) -> None:
    value = call.operand("value", call.dtype)
    call.end("Where", call.name("mask"), value, call.name("self"))


def add_product(kind: str) -> Row:
    """A tensor plus a multiple of a product or a quotient."""

    def row(call: Call) -> None:
        made = call.step(kind, *(call.operand(n, call.dtype) for n in ("tensor1", "tensor2")))
        factor = call.number("value", 1)
        if factor != 1:
            made = call.step("Mul", made, call.constant(factor, call.dtype))
        call.end("Add", call.operand("self", call.dtype), made)

    return row


def lerp(call: Call) -> None:
    start, end = call.name("self"), call.name("end")
    step = call.step("Mul", call.step("Sub", end, start), call.operand("weight", call.dtype))
    call.end("Add", start, step)


def hypotenuse(call: Call) -> None:
    squares = (call.step("Mul", n, n) for n in (_float(call), _float(call, "other")))
    call.end("Sqrt", call.step("Add", *squares))


def random_leak(call: Call) -> None:
    """`rrelu` as it runs for inference: with the mean of its slopes."""
    ends = call.number("lower", 0.125), call.number("upper", 1 / 3)
    call.output(0).end("LeakyRelu", call.name("self"), alpha=sum(ends) / 2)


def shifted(left: bool) -> Row:
    """Bits moved by a number that is known: a product, or a quotient rounded down."""

    def row(call: Call) -> None:
        factor = call.constant(2 ** call.integer("other"), call.dtype)
        x = call.operand("self", call.dtype)
        if left:
            call.end("Mul", x, factor)
        else:
            _floor_divide(call, x, factor)

    return row


ROWS: dict[str, Row] = {
    **{
        name: one(kind)
        for name, kind in (
            ("abs", "Abs"),
            ("acos", "Acos"),
            ("acosh", "Acosh"),
            ("asin", "Asin"),
            ("asinh", "Asinh"),
            ("atan", "Atan"),
            ("atanh", "Atanh"),
            ("ceil", "Ceil"),
            ("cos", "Cos"),
            ("cosh", "Cosh"),
            ("erf", "Erf"),
            ("exp", "Exp"),
            ("floor", "Floor"),
            ("hardswish", "HardSwish"),
            ("log", "Log"),
            ("mish", "Mish"),
            ("neg", "Neg"),
            ("reciprocal", "Reciprocal"),
            ("relu", "Relu"),
            ("round", "Round"),
            ("selu", "Selu"),
            ("sgn", "Sign"),
            ("sigmoid", "Sigmoid"),
            ("sign", "Sign"),
            ("silu", "Swish"),
            ("sin", "Sin"),
            ("sinh", "Sinh"),
            ("sqrt", "Sqrt"),
            ("tan", "Tan"),
            ("tanh", "Tanh"),
        )
    },
    "__lshift__.Scalar": shifted(True),
    "__rshift__.Scalar": shifted(False),
    "add": two("Add"),
    "addcdiv": add_product("Div"),
    "addcmul": add_product("Mul"),
    "alias": identity(),
    "atan2": arc_tangent_2,
    "bitwise_and": bitwise("BitwiseAnd"),
    "bitwise_left_shift.Tensor_Scalar": shifted(True),
    "bitwise_not": bitwise_not,
    "bitwise_or": bitwise("BitwiseOr"),
    "bitwise_right_shift.Tensor_Scalar": shifted(False),
    "bitwise_xor": bitwise("BitwiseXor"),
    "celu": celu,
    "clamp": clamp,
    "clamp_max": clamp,
    "clamp_min": clamp,
    "clone": identity(),
    "contiguous": identity(),
    "deg2rad": scaled("Identity", pi / 180),
    "detach": identity(),
    "detach_": identity(),
    "div": divide,
    "dropout": identity("input"),
    "elu": elu,
    "eq": compared("Equal"),
    "exp2": scaled("Exp", float(np.log(2)), before=True),
    "expm1": expm1,
    "feature_dropout": identity("input"),
    "fill": filled,
    "floor_divide": floor_divide,
    "fmod": fmod,
    "frac": fraction,
    "full": filled,
    "full_like": filled,
    "ge": compared("GreaterOrEqual"),
    "gelu": gelu,
    "glu": gated,
    "gt": compared("Greater"),
    "hardshrink": shrink(True),
    "hardsigmoid": one("HardSigmoid", alpha=1 / 6, beta=0.5),
    "hardtanh": hardtanh,
    "hypot": hypotenuse,
    "isinf": asked("IsInf"),
    "isnan": asked("IsNaN"),
    "le": compared("LessOrEqual"),
    "leaky_relu": leaky_relu,
    "lerp": lerp,
    "lift_fresh_copy": identity(),
    "log10": scaled("Log", float(1 / np.log(10))),
    "log1p": log1p,
    "log2": scaled("Log", float(1 / np.log(2))),
    "log_sigmoid": log_sigmoid,
    "log_sigmoid_forward": log_sigmoid,
    "logical_and": logical("And"),
    "logical_not": logical("Not"),
    "logical_or": logical("Or"),
    "logical_xor": logical("Xor"),
    "lt": compared("Less"),
    "masked_fill": masked_fill,
    "max.other": two("Max"),
    "maximum": two("Max"),
    "min.other": two("Min"),
    "minimum": two("Min"),
    "mul": two("Mul"),
    "native_dropout": native_dropout,
    "ne": compared("NotEqual"),
    "new_full": filled,
    "new_ones": filled_with(1),
    "new_zeros": filled_with(0),
    "ones": filled_with(1),
    "ones_like": filled_with(1),
    "pow": power,
    "prelu": prelu,
    "relu6": relu6,
    "remainder": two("Mod"),
    "rrelu_with_noise_functional": random_leak,
    "rsqrt": rsqrt,
    "rsub": rsub,
    "softplus": softplus,
    "softshrink": shrink(False),
    "sub": two("Sub"),
    "subtract": two("Sub"),
    "threshold": threshold,
    "to": identity(),
    "_to_copy": identity(),
    "trunc": truncate,
    "type_as": identity(),
    "where": where,
    "zeros": filled_with(0),
    "zeros_like": filled_with(0),
    "empty": filled_with(0),
    "empty_like": filled_with(0),
}
