"""Vectors in LLVM's language: values with operators, and the few instructions that numpy cannot
express.
"""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# llvmlite leaves parts of its types open.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir  # pyright: ignore[reportMissingImports]

from litesmith.native.cpu import Cpu
from litesmith.operating_system import is_x86

I1, I8, I16, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
F32, F64 = ir.FloatType(), ir.DoubleType()

LANES = 16  # of 32 bits: the width for which weights are packed on every machine


def vec(element: ir.Type, count: int = LANES) -> ir.Type:
    return ir.VectorType(element, count)


@dataclass(frozen=True, eq=False)
class Value:
    """A number or a vector in emitted code; an operator appends an instruction."""

    b: ir.IRBuilder
    value: ir.Value

    @property
    def type(self) -> ir.Type:
        return self.value.type

    def of(self, number: float | Value) -> ir.Value:
        """The other operand: a plain number becomes a constant of this type."""
        if isinstance(number, Value):
            return number.value
        if isinstance(self.type, ir.VectorType):
            return ir.Constant(self.type, [number] * self.type.count)
        return ir.Constant(self.type, number)

    def _apply(self, whole: str, real: str, other: float | Value) -> Value:
        element = self.type.element if isinstance(self.type, ir.VectorType) else self.type
        name = whole if isinstance(element, ir.IntType) else real
        return Value(self.b, getattr(self.b, name)(self.value, self.of(other)))

    def __add__(self, other: float | Value) -> Value:
        return self._apply("add", "fadd", other)

    def __sub__(self, other: float | Value) -> Value:
        return self._apply("sub", "fsub", other)

    def __mul__(self, other: float | Value) -> Value:
        return self._apply("mul", "fmul", other)

    def __truediv__(self, other: float | Value) -> Value:
        return self._apply("sdiv", "fdiv", other)

    def __lshift__(self, other: float | Value) -> Value:
        return self._apply("shl", "shl", other)

    def __rshift__(self, other: float | Value) -> Value:
        return self._apply("ashr", "ashr", other)

    def __and__(self, other: float | Value) -> Value:
        return self._apply("and_", "and_", other)

    def __or__(self, other: float | Value) -> Value:
        return self._apply("or_", "or_", other)

    def __xor__(self, other: float | Value) -> Value:
        return self._apply("xor", "xor", other)

    def __lt__(self, other: float | Value) -> Value:
        return self._compare("<", other)

    def __gt__(self, other: float | Value) -> Value:
        return self._compare(">", other)

    def _compare(self, sign: str, other: float | Value) -> Value:
        element = self.type.element if isinstance(self.type, ir.VectorType) else self.type
        compare = self.b.icmp_signed if isinstance(element, ir.IntType) else self.b.fcmp_ordered
        return Value(self.b, compare(sign, self.value, self.of(other)))

    def where(self, yes: Value, no: Value) -> Value:
        return Value(self.b, self.b.select(self.value, yes.value, no.value))

    def clamped(self, low: Value, high: Value) -> Value:
        raised = (self < low).where(low, self)
        return (raised > high).where(high, raised)

    def convert(self, how: str, element: ir.Type) -> Value:
        """The same count of another element, by `sext`, `trunc`, `zext`, `sitofp` or `fptosi`."""
        wide = isinstance(self.type, ir.VectorType)
        target = vec(element, self.type.count) if wide else element
        return Value(self.b, getattr(self.b, how)(self.value, target))

    def bits(self, target: ir.Type) -> Value:
        return Value(self.b, self.b.bitcast(self.value, target))

    def picked(self, places: Sequence[int], other: Value | None = None) -> Value:
        """Elements by place; places past the end are those of `other`."""
        mask = ir.Constant(vec(I32, len(places)), list(places))
        second = self if other is None else other
        return Value(self.b, self.b.shuffle_vector(self.value, second.value, mask))

    def splat(self, count: int = LANES) -> Value:
        """A vector with this number everywhere."""
        empty = ir.Constant(vec(self.type, count), ir.Undefined)
        first = self.b.insert_element(empty, self.value, ir.Constant(I32, 0))
        return Value(self.b, first).picked([0] * count)


def splat32(value: Value) -> Value:
    """16 × int32 of one int64."""
    return value.convert("trunc", I32).splat()


def constant(b: ir.IRBuilder, kind: ir.Type, number: float | Sequence[int]) -> Value:
    return Value(b, ir.Constant(kind, number))


def load(address: Value, kind: ir.Type, offset: int = 0, align: int = 1) -> Value:
    where = address + offset if offset else address
    loaded = address.b.load(address.b.inttoptr(where.value, kind.as_pointer()))
    loaded.align = align
    return Value(address.b, loaded)


def store(value: Value, address: Value, offset: int = 0) -> None:
    where = address + offset if offset else address
    target = value.b.inttoptr(where.value, value.type.as_pointer())
    value.b.store(value.value, target).align = 1


def store_some(value: Value, address: Value, count: Value) -> None:
    """The first `count` elements of a vector (a 64-bit number of them)."""
    b, kind = value.b, value.type
    places = constant(b, vec(I32, kind.count), list(range(kind.count)))
    mask = places < count.convert("trunc", I32).splat(kind.count)
    target = b.inttoptr(address.value, kind.as_pointer())
    suffix = {I16: "i16", F32: "f32"}[kind.element]
    call = external(
        b,
        f"llvm.masked.store.v{kind.count}{suffix}.p0",
        ir.VoidType(),
        [kind, kind.as_pointer(), I32, vec(I1, kind.count)],
    )
    b.call(call, [value.value, target, ir.Constant(I32, 1), mask.value])


def call(name: str, result: ir.Type, *arguments: Value) -> Value:
    """A function that LLVM knows by name."""
    b = arguments[0].b
    function = external(b, name, result, [argument.type for argument in arguments])
    return Value(b, b.call(function, [argument.value for argument in arguments]))


def external(b: ir.IRBuilder, name: str, result: ir.Type, kinds: Sequence[ir.Type]) -> ir.Function:
    known = b.module.globals.get(name)
    return known or ir.Function(b.module, ir.FunctionType(result, list(kinds)), name)


# How many lanes of 32 bits the multiply-and-add-pairs instruction has, and its name.
_PAIRS = {
    "avx512bw": (16, "llvm.x86.avx512.pmaddw.d.512"),
    "avx2": (8, "llvm.x86.avx2.pmadd.wd"),
    "sse2": (4, "llvm.x86.sse2.pmadd.wd"),
}


def dot_pairs(cpu: Cpu, total: Value, x: Value, w: Value) -> Value:
    """total + x₀w₀ + x₁w₁ in each of 16 lanes, whose halves are two int16 each.

    LLVM joins the product and the sum into one instruction where the machine has it.
    """
    pairs = vec(I16, 2 * LANES)
    x, w = x.bits(pairs), w.bits(pairs)
    if cpu.pairs not in _PAIRS:
        even, odd = range(0, 2 * LANES, 2), range(1, 2 * LANES, 2)
        for half in (even, odd):
            product = _wide(x.picked(half)) * _wide(w.picked(half))
            total = total + product
        return total
    count, name = _PAIRS[cpu.pairs]
    parts: list[Value] = []
    for first in range(0, 2 * LANES, 2 * count):
        part = range(first, first + 2 * count)
        parts.append(call(name, vec(I32, count), x.picked(part), w.picked(part)))
    return total + _together(parts)


def _together(parts: list[Value]) -> Value:
    """Vectors end to end; a power of two of them."""
    while len(parts) > 1:
        together = range(2 * parts[0].type.count)
        parts = [a.picked(together, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


# How many lanes the instruction has that multiplies four bytes of a lane and adds them, its name,
# and the element that its arguments have.
_FOURS = {
    "avx512vnni": (16, "llvm.x86.avx512.vpdpbusd.512", I32),
    "avxvnni": (8, "llvm.x86.avx512.vpdpbusd.256", I32),
    "i8mm": (4, "llvm.aarch64.neon.usdot.v4i32.v16i8", I8),
    "dotprod": (4, "llvm.aarch64.neon.sdot.v4i32.v16i8", I8),
}


def dot_fours(cpu: Cpu, total: Value, x: Value, w: Value) -> Value:
    """total + x₀w₀ + … + x₃w₃ in each of 16 lanes, whose quarters are bytes: x from 0, w signed."""
    if cpu.fours not in _FOURS:
        shorts = vec(I16, 2 * LANES)
        x, w = x.bits(shorts), w.bits(shorts)
        total = dot_pairs(cpu, total, x & 0xFF, (w << 8) >> 8)
        return dot_pairs(cpu, total, (x >> 8) & 0xFF, w >> 8)
    if cpu.fours != "dotprod":
        return _dot_parts(cpu.fours, total, x, w)
    # Both bytes are signed: x is lessened by 128, and 128 times the sum of w is added.
    low = constant(x.b, x.type, [-0x7F7F7F80] * LANES)  # four bytes of -128
    nothing = constant(x.b, total.type, [0] * LANES)
    return _dot_parts(cpu.fours, total, x ^ low, w) - _dot_parts(cpu.fours, nothing, low, w)


def _dot_parts(feature: str, total: Value, x: Value, w: Value) -> Value:
    """The products of four bytes and their sum, for 16 lanes."""
    count, name, element = _FOURS[feature]
    parts: list[Value] = []
    for first in range(0, LANES, count):
        lanes = range(first, first + count)
        kind = vec(element, count * 32 // element.width)
        given = x.picked(lanes).bits(kind), w.picked(lanes).bits(kind)
        parts.append(call(name, vec(I32, count), total.picked(lanes), *given))
    return _together(parts)


def _wide(value: Value) -> Value:
    return value.convert("sext", I32)


def pick_words(cpu: Cpu, at: Value, places: Value) -> Value:
    """16 of the 32 words at an address, by their places: 16 × int32 from 0 to 31."""
    if cpu.pairs == "avx512bw":
        halves = load(at, vec(I32)), load(at, vec(I32), 64)
        return call("llvm.x86.avx512.vpermi2var.d.512", vec(I32), halves[0], places, halves[1])
    found = constant(at.b, vec(I32), [0] * LANES)
    for lane in range(LANES):
        number = ir.Constant(I32, lane)
        place = Value(at.b, at.b.extract_element(places.value, number)).convert("zext", I64)
        word = load(at + place * 4, I32)
        found = Value(at.b, at.b.insert_element(found.value, word.value, number))
    return found


def halves(value: Value) -> tuple[Value, Value]:
    """The even and the odd lanes of 16 × int32, each as 8 × int64."""
    wide = value.bits(vec(I64, LANES // 2))
    return (wide << 32) >> 32, wide >> 32


def joined(even: Value, odd: Value) -> Value:
    """The low 32 bits of even and odd lanes: 2 × 8 × int64 -> 16 × int32."""
    return ((even & 0xFFFFFFFF) | (odd << 32)).bits(vec(I32))


def exact(value: Value) -> Value:
    """Numbers known to fit into 32 bits, in a form that makes products cheap."""
    return (value << 32) >> 32


def rounded(value: Value) -> Value:
    """To the nearest, halves away from zero: n × float64 -> n × int32."""
    return to_int32(call(f"llvm.round.v{value.type.count}f64", value.type, value))


def to_int32(whole: Value) -> Value:
    """Whole numbers as int32. Numbers that are too large become what the machine, and so the
    runtime, makes of them.

    On x86 this is the lowest number, elsewhere the nearest one.
    """
    kind, bits = whole.type, {F32: 32, F64: 64}[whole.type.element]
    if not is_x86():
        name = f"llvm.fptosi.sat.v{kind.count}i32.v{kind.count}f{bits}"
        return call(name, vec(I32, kind.count), whole)
    size = call(f"llvm.fabs.v{kind.count}f{bits}", kind, whole)
    lowest = constant(whole.b, kind, [float(-(2**31))] * kind.count)
    return (size < float(2**31)).where(whole, lowest).convert("fptosi", I32)


def scaled(value: Value, multiplier: Value, right: Value) -> Value:
    """A 16 × int32 times a 32-bit fraction, rounded twice: by 2³¹, then by a power of two.

    `multiplier` is 8 × int64; `right` is that power, as 16 × int32.
    """
    high = joined(*((part * exact(multiplier) + (1 << 30)) >> 31 for part in halves(value)))
    mask = (constant(value.b, high.type, [1] * LANES) << right) - 1
    negative = (high >> 31) & 1  # 1 where below zero
    threshold = ((mask >> 1) & 0x7FFFFFFF) + negative
    more = ((high & mask) > threshold).convert("zext", I32)
    return (high >> right) + more
