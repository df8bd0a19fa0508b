"""A model as C: an array that the linker puts into flash, and a resolver with just its ops."""

import re
from collections.abc import Iterator

from litesmith.errors import CannotApply
from litesmith.ir.types import Model
from litesmith.micro.arena import ArenaAccount
from litesmith.micro.kernel_memory import KERNELS
from litesmith.run.rules.micro import why_unfit

# Methods of MicroMutableOpResolver that are not the op's name in capitals and small letters.
_METHODS = {
    "AVERAGE_POOL_2D": "AddAveragePool2D",
    "BATCH_MATMUL": "AddBatchMatMul",
    "CONV_2D": "AddConv2D",
    "CUMSUM": "AddCumSum",
    "DEPTHWISE_CONV_2D": "AddDepthwiseConv2D",
    "L2_POOL_2D": "AddL2Pool2D",
    "MAX_POOL_2D": "AddMaxPool2D",
    "PADV2": "AddPadV2",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "AddUnidirectionalSequenceLSTM",
}
_CUSTOM_METHODS = {
    "CIRCULAR_BUFFER": "AddCircularBuffer",
    "TFLM_DECODE": "AddDecode",
    "TFLite_Detection_PostProcess": "AddDetectionPostprocess",
    "SignalDelay": "AddDelay",
    "SignalEnergy": "AddEnergy",
    "SignalFftAutoScale": "AddFftAutoScale",
    "SignalFilterBank": "AddFilterBank",
    "SignalFilterBankLog": "AddFilterBankLog",
    "SignalFilterBankSpectralSubtraction": "AddFilterBankSpectralSubtraction",
    "SignalFilterBankSquareRoot": "AddFilterBankSquareRoot",
    "SignalFramer": "AddFramer",
    "SignalIrfft": "AddIrfft",
    "SignalOverlapAdd": "AddOverlapAdd",
    "SignalPCAN": "AddPCAN",
    "SignalRfft": "AddRfft",
    "SignalStacker": "AddStacker",
    "SignalWindow": "AddWindow",
}
_A_LINE = 12

# Reserved words of C and C++, names that every program has, and names of the compiler.
_TAKEN = re.compile(
    r"alignas|alignof|and|asm|auto|bool|break|case|catch|char|class|compl|concept|const|"
    r"consteval|constexpr|constinit|continue|decltype|default|delete|do|double|else|enum|"
    r"explicit|export|extern|false|float|for|friend|goto|if|inline|int|long|main|mutable|"
    r"namespace|new|noexcept|not|NULL|nullptr|operator|or|private|protected|public|register|"
    r"requires|restrict|return|short|signed|sizeof|size_t|static|struct|switch|template|this|"
    r"throw|true|try|typedef|typeid|typename|typeof|union|unsigned|using|virtual|void|"
    r"volatile|while|xor"
    r"|__.*"
)


def c_name(stem: str) -> str:
    """A valid C name from the stem of a file."""
    name = re.sub(r"\W", "_", stem, flags=re.ASCII)
    is_free = name and not name[0].isdigit() and not _TAKEN.fullmatch(name)
    return name if is_free else f"model_{name}"


def resolver_methods(model: Model) -> list[str]:
    """The methods that register the ops of a model, each once, in alphabetical order."""
    found: set[str] = set()
    for _, _, op in model.ops():
        if op.is_custom:
            method = _CUSTOM_METHODS.get(op.custom, "")
        else:
            plain = "Add" + op.kind.title().replace("_", "")
            method = _METHODS.get(op.kind, plain) if op.kind in KERNELS else ""
        if not method:
            raise CannotApply(
                "op {label}: TensorFlow Lite Micro has no kernel for it; see litesmith targets",
                op.label,
            )
        found.add(method)
    unfit = why_unfit(model)
    if unfit:
        raise CannotApply("export: {unfit}", unfit)
    return sorted(found)


def header_text(name: str, length: int, account: ArenaAccount) -> str:
    """The declarations: the array, its length, and the arena that the model needs."""
    guard = f"{name.upper()}_H_"
    return f"""\
#ifndef {guard}
#define {guard}

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* The model, {length} bytes, aligned as the interpreter needs it. */
extern const unsigned char {name}[];
extern const size_t {name}_length;

/* Bytes of the tensor arena on a machine of 32 bits, with the reference kernels. */
enum {{ {name}_arena_size = {account.needed} }};

#ifdef __cplusplus
}}
#endif

#endif
"""


def array_pieces(name: str, content: bytes) -> Iterator[bytes]:
    """The definition of the array, in pieces of some lines each."""
    yield f'#include "{name}.h"\n\n'.encode()
    yield b"#ifdef __cplusplus\n#define MODEL_ALIGNED alignas(16)\n#else\n"
    yield b"#define MODEL_ALIGNED _Alignas(16)\n#endif\n\n"
    yield f"MODEL_ALIGNED const unsigned char {name}[] = {{\n".encode()
    for start in range(0, len(content), _A_LINE * 4096):
        block = content[start : start + _A_LINE * 4096]
        rows = (block[at : at + _A_LINE] for at in range(0, len(block), _A_LINE))
        lines = (f"  {', '.join(f'0x{byte:02x}' for byte in row)},\n" for row in rows)
        yield "".join(lines).encode()
    yield f"}};\nconst size_t {name}_length = sizeof({name});\n".encode()


def resolver_text(name: str, methods: list[str]) -> str:
    """A header that registers only the model's ops, so that no other kernel is linked."""
    guard = f"{name.upper()}_OPS_H_"
    calls = " ||\n         ".join(f"resolver.{method}() != kTfLiteOk" for method in methods)
    return f"""\
#ifndef {guard}
#define {guard}

#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"

/* The ops of {name}: make a tflite::MicroMutableOpResolver<{name}_op_count> and register them. */
constexpr int {name}_op_count = {max(1, len(methods))};

inline TfLiteStatus register_{name}_ops(
    tflite::MicroMutableOpResolver<{name}_op_count>& resolver) {{
  return ({calls or "false"})
             ? kTfLiteError
             : kTfLiteOk;
}}

#endif
"""
