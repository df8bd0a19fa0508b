"""ATen's operators that have no form in LiteRT, each with the reason and the way out."""

from litesmith.conversion.aten.call import Call, NotWritten, Row
from litesmith.phrases import phrase

_BAGS = phrase("sums of bags of rows; use nn.Embedding and a sum or a mean over its axis")
_CHANCE = phrase("it draws numbers at random; make them before the model and give them as an input")
_COMPLEX = phrase(
    "LiteRT does not compute with complex numbers; keep their real and imaginary parts in tensors "
    "of their own"
)
_COUNT = phrase(
    "how many values it gives is known only while it runs; do this step behind the model, or use "
    "torch.where"
)
_SOLVER = phrase("LiteRT has no solver for matrices; compute it before the model")
_SPECTRUM = phrase(
    "LiteRT does not compute with complex numbers; make the spectrum before the model, or by a "
    "product with sines and cosines"
)
BRANCH = phrase("a branch or a loop by torch; use torch.where, or write the loop out")

_REASONS = {
    _BAGS: "_embedding_bag _embedding_bag_forward_only",
    _CHANCE: (
        "bernoulli multinomial normal_functional rand rand_like randint randint_like randn "
        "randn_like randperm uniform"
    ),
    _COMPLEX: "complex polar view_as_complex view_as_real",
    _COUNT: "_unique2 masked_select nonzero unique_consecutive unique_dim",
    _SOLVER: (
        "_linalg_det _linalg_eigh _linalg_slogdet _linalg_solve_ex _linalg_svd linalg_cholesky_ex "
        "linalg_inv_ex linalg_lstsq linalg_qr triangular_solve"
    ),
    _SPECTRUM: "_fft_c2c _fft_c2r _fft_r2c",
}


def refused(why: str) -> Row:
    def row(call: Call) -> None:
        raise NotWritten(why)

    return row


ROWS: dict[str, Row] = {
    name: refused(why) for why, names in _REASONS.items() for name in names.split()
}
