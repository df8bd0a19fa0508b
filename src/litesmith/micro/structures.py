"""The structures that TensorFlow Lite Micro keeps in its arena, and their sizes by the word.

A structure is a text of letters, one a field in its order: p pointer, z size, i integer or float of
4 bytes, d of 8, h of 2, b of 1; brackets are a structure inside. Laid out as C++ does it, a field
begins at a multiple of its own size and the whole ends at one of its largest field. So one row
gives both the bytes on this 64-bit machine and those on a device of 32 bits.
"""

from functools import cache

WORDS = (4, 8)  # bytes of a pointer on a microcontroller, and on this machine

_FIXED = {"i": 4, "d": 8, "h": 2, "b": 1}

EVAL_TENSOR = "ppi"  # TfLiteEvalTensor, one a tensor
NODE = "[ppppppi]p"  # NodeAndRegistration, one an op
GRAPH = "pp"  # SubgraphAllocations
TENSOR = "[ip][ii]ppziib"  # TfLiteTensor, one an input or output of the model
QUANTIZATION = "ppi"  # TfLiteAffineQuantization
SINGLE_ARENA = "ppppppppi"  # SingleArenaBufferAllocator
PLANNER = "piippppiipb"  # GreedyMemoryPlanner
ALLOCATOR = "pppppbpzz"  # MicroAllocator
OPTIONS_ALLOCATOR = "pp"  # MicroBuiltinDataAllocator
VARIABLES = "pii"  # MicroResourceVariables
VARIABLE = "pppzb"  # MicroResourceVariable
# The wheel's allocator also counts its allocations, and can decompress weights.
WHEEL_GRAPH = "ppp"
COUNTING_ARENA = SINGLE_ARENA + "zzzz"
COUNTING_ALLOCATOR = ALLOCATOR + "p" + 8 * "[zzz]"
# The temporary memory of the planning itself.
ALLOCATION_INFO = "zpiiib"
PLANNED_BUFFER = "[iiii]ii[iii]i"
SCRATCH_REQUEST = "zii"


@cache
def layout(fields: str, word: int) -> tuple[int, int]:
    """Bytes and alignment of a structure.

    >>> layout("ppi", 4), layout("ppi", 8)
    ((12, 4), (24, 8))
    """
    size, widest, place = 0, 1, 0
    while place < len(fields):
        if fields[place] == "[":
            end = fields.index("]", place)
            inner, alignment = layout(fields[place + 1 : end], word)
            place = end + 1
        else:
            inner = alignment = _FIXED.get(fields[place], word)
            place += 1
        size = -(-size // alignment) * alignment + inner
        widest = max(widest, alignment)
    return -(-size // widest) * widest, widest


def size_of(fields: str, word: int) -> int:
    return layout(fields, word)[0]
