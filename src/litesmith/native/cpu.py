"""The features of the machine's processor that kernels depend on."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Cpu:
    """The shape of kernels: the instruction that multiplies pairs, and the size of a tile of
    sums.
    """

    pairs: str  # the feature whose multiply-and-add-pairs is used; "" for plain products
    rows: int  # rows and vectors of 16 lanes that one tile of sums has
    vectors: int
    fours: str = ""  # the feature whose multiply-and-add-four-bytes is used; "" for pairs


# From the best down. A tile's sums and their factors must fit into the registers.
_KINDS = (
    Cpu("avx512bw", 6, 4),  # 32 registers of 16 lanes
    Cpu("avx2", 3, 2),  # 16 of 8
    Cpu("sse2", 3, 1),  # 16 of 4
)
_OTHER = Cpu("", 6, 1)  # NEON: 32 of 4


# Features with an instruction that multiplies four bytes and adds them, from the best down.
_FOURS = ("avx512vnni", "avxvnni", "i8mm", "dotprod")


def cpu_of(features: frozenset[str]) -> Cpu:
    """The kind for a processor with these features, by LLVM's names."""
    kind = next((kind for kind in _KINDS if kind.pairs in features), _OTHER)
    fours = next((name for name in _FOURS if name in features), "")
    return replace(kind, fours=fours)
