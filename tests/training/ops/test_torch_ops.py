"""Every row of the torch op table, against the reference kernels or the runtime."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: the extra `train`")

from litesmith.numeric.kernels import KERNELS, evaluate  # noqa: E402
from litesmith.training.ops.lift import TORCH_OPS  # noqa: E402
from tests.op_cases import Case, Input, State, case, real  # noqa: E402
from tests.op_cases_shaping import CASES  # noqa: E402
from tests.op_models import Built, build, run  # noqa: E402

# Stored numbers are real ones here, so what only converts them does nothing.
IDENTITIES = ("DENSIFY", "DEQUANTIZE", "QUANTIZE")


def is_float(array: np.ndarray | None) -> bool:
    return array is not None and array.dtype == np.float32


def takes_floats(case: Case, kind: str) -> bool:
    return any(is_float(array) for array in build(kind, case).arrays)


ALL = [
    pytest.param(kind, case, id=f"{kind}-{n}")
    for kind in TORCH_OPS
    if kind not in IDENTITIES
    for n, case in enumerate(CASES[kind])
    if takes_floats(case, kind)
]


def unit(*shape: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def lstm(**changes) -> Case:
    """A sequence LSTM of 3 inputs and 4 units; changes are by the place of an input."""
    outputs = 2 if "projection" in changes else 4
    inputs: dict[int, Input] = {
        **{1 + gate: unit(4, 3, seed=gate) for gate in range(4)},
        **{5 + gate: unit(4, outputs, seed=4 + gate) for gate in range(4)},
        **{12 + gate: unit(4, seed=8 + gate) for gate in range(4)},
        18: State((2, outputs)),
        19: State((2, 4)),
        **{int(name[2:]): value for name, value in changes.items() if name.startswith("at")},
    }
    if outputs == 2:
        inputs |= {16: unit(2, 4, seed=20), 17: unit(2, seed=21)}
    options = {name: value for name, value in changes.items() if name in OPTIONS}
    listed = [inputs.get(place) for place in range(1, 24 if 20 in inputs else 20)]
    return case(real(5, 2, 3), *listed, version=4, **{"time_major": True, **options})


OPTIONS = ("cell_clip", "fused_activation_function", "proj_clip", "time_major")
PEEPHOLES = {f"at{9 + n}": unit(4, seed=30 + n) for n in range(3)}
NORMS = {f"at{20 + n}": unit(4, seed=40 + n) for n in range(4)}
NO_INPUT_GATE = dict.fromkeys(("at1", "at5", "at9", "at12", "at20"), None)
LSTMS = {
    "plain": lstm(),
    "batch first": lstm(time_major=False, at18=State((5, 4)), at19=State((5, 4))),
    "clipped": lstm(cell_clip=0.1),
    "peepholes": lstm(**PEEPHOLES),
    "no input gate": lstm(**{**PEEPHOLES, **NO_INPUT_GATE}),
    "projection": lstm(projection=True, proj_clip=0.2),
    "norms": lstm(**NORMS),
    "all": lstm(projection=True, **{**PEEPHOLES, **NORMS, **NO_INPUT_GATE}),
}


@pytest.mark.parametrize("name", LSTMS)
def test_lstm_computes_what_the_runtime_does(name: str) -> None:
    built = build("UNIDIRECTIONAL_SEQUENCE_LSTM", LSTMS[name])
    (wanted,) = run(built.model, built.fed)
    (result,) = results_of(built, as_values(built))
    np.testing.assert_allclose(plain(result), wanted, rtol=0, atol=1e-5)


def as_values(built: Built) -> list:
    """Real numbers as torch tensors that want a gradient, the rest as it is."""
    return [
        torch.from_numpy(np.array(a)).requires_grad_() if a is not None and is_float(a) else a
        for a in built.arrays
    ]


def results_of(built: Built, values: list) -> list:
    results = TORCH_OPS[built.op.kind](built.op, *values)
    return results if isinstance(results, list) else [results]


def plain(value) -> np.ndarray:
    return value.detach().numpy() if isinstance(value, torch.Tensor) else value


@pytest.mark.parametrize(("kind", "case"), ALL)
def test_row_computes_what_the_kernel_does(kind: str, case: Case) -> None:
    built = build(kind, case)
    known = evaluate(built.op, built.arrays) if kind in KERNELS else run(built.model, built.fed)
    results = results_of(built, as_values(built))
    assert len(results) == len(known)
    for result, wanted in zip(results, known, strict=True):
        array = plain(result)
        kind_of = np.float32 if wanted.dtype == np.float16 else wanted.dtype
        assert (array.shape, array.dtype) == (wanted.shape, kind_of)
        if wanted.dtype.kind != "f":
            np.testing.assert_array_equal(array, wanted)
        elif wanted.size:
            np.testing.assert_allclose(array, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize(("kind", "case"), ALL)
def test_gradient_is_finite(kind: str, case: Case) -> None:
    values = as_values(built := build(kind, case))
    reals = [r for r in results_of(built, values) if isinstance(r, torch.Tensor)]
    learned = [r for r in reals if r.requires_grad and r.numel()]
    for result in learned:
        result.sum().backward(retain_graph=True)
    found = [v.grad for v in values if isinstance(v, torch.Tensor) and v.grad is not None]
    assert found or not learned
    assert all(bool(gradient.isfinite().all()) for gradient in found)


@pytest.mark.parametrize("kind", IDENTITIES)
def test_conversions_do_nothing(kind: str) -> None:
    x = torch.randn(3)
    built = build(kind, CASES[kind][0])
    assert TORCH_OPS[kind](built.op, x) is x


def test_every_row_has_a_case_with_floats() -> None:
    assert {param.values[0] for param in ALL} | set(IDENTITIES) == set(TORCH_OPS)
