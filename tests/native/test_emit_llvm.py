"""Instructions that the kernels become: compiled for processors that this machine is not."""

import pytest

binding = pytest.importorskip("llvmlite.binding")
ir = pytest.importorskip("llvmlite.ir")

from litesmith.native.cpu import cpu_of  # noqa: E402
from litesmith.native.emit_llvm import I32, LANES, Value, dot_fours, dot_pairs, vec  # noqa: E402

ARM = "aarch64-unknown-linux-gnu"


def assembly(emitted, features: str) -> list[str]:
    """The instructions of a function of three vectors, by name."""
    kind = vec(I32, LANES)
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(kind, [kind] * 3), "product")
    b = ir.IRBuilder(function.append_basic_block())
    cpu = cpu_of(frozenset(features.replace("+", "").split(",")))
    b.ret(emitted(cpu, *(Value(b, one) for one in function.args)).value)
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    try:
        target = binding.Target.from_triple(ARM)
    except RuntimeError:
        pytest.skip("this LLVM knows no AArch64")
    machine = target.create_target_machine(features=features, opt=3)
    parsed = binding.parse_assembly(str(module))
    parsed.verify()
    lines = [line.split() for line in machine.emit_assembly(parsed).splitlines()]
    return [words[0] for words in lines if words and words[0][0].isalpha() and ":" not in words[0]]


@pytest.mark.parametrize(
    ("features", "name", "count"),
    [("+neon,+dotprod,+i8mm", "usdot", 4), ("+neon,+dotprod", "sdot", 8), ("+neon", "sdot", 0)],
)
def test_arm_multiplies_four_bytes_where_it_can(features: str, name: str, count: int) -> None:
    found = assembly(dot_fours, features)
    assert found.count(name) == count
    # Sixteen lanes of four products: 64 products by single instructions, or far fewer.
    assert (len(found) < 40) == (count > 0)


def test_arm_multiplies_and_adds_pairs() -> None:
    found = assembly(dot_pairs, "+neon")
    assert sum(name.startswith("smlal") for name in found) == 8
