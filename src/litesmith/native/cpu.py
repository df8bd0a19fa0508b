"""What the machine's processor can do, as far as the kernels differ by it."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Cpu:
    """How kernels are cut: which instruction multiplies pairs, and how large a tile of sums is."""

    pairs: str  # the feature whose multiply-and-add-pairs is used; "" for plain products
    rows: int  # rows and vectors of 16 lanes that one tile of sums has
    vectors: int
    fours: int = 0  # lanes whose four bytes one instruction multiplies and adds; 0 for none


# From the best down. A tile's sums, and what they are made from, must fit into the registers.
_KINDS = (
    Cpu("avx512bw", 6, 4),  # 32 registers of 16 lanes
    Cpu("avx2", 3, 2),  # 16 of 8
    Cpu("sse2", 3, 1),  # 16 of 4
)
_OTHER = Cpu("", 6, 1)  # NEON: 32 of 4


# Lanes of the instruction that multiplies bytes, unsigned ones by signed ones.
_FOURS = {"avx512vnni": 16, "avxvnni": 8}


def cpu_of(features: frozenset[str]) -> Cpu:
    """The kind for a processor with these features, by LLVM's names."""
    kind = next((kind for kind in _KINDS if kind.pairs in features), _OTHER)
    fours = next((lanes for name, lanes in _FOURS.items() if name in features), 0)
    return replace(kind, fours=fours)
