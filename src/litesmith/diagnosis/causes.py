"""Why an op of a quantized model adds to its error, and the recipes that may repair it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from litesmith.diagnosis.op_losses import FORM, WEIGHTS, OpLoss
from litesmith.ir.types import Array
from litesmith.numeric.affine import rows_of
from litesmith.passes.core.layers import Layer, real_bias, real_values
from litesmith.passes.quantizing.scales import covered, form_of
from litesmith.phrases import phrase
from litesmith.units import number_text, percent_text, plain

# An error below this share of the signal (40 dB) is what rounding always causes.
_USUAL = 1e-4
# With an error above this share (30 dB), 8 bits are too few for the op's output.
_MUCH = 1e-3
# A sample or a channel stands out if it reaches this many times as far as the others.
_FAR_SAMPLE, _FAR_CHANNEL = 3.0, 8.0
# A value below the first number is a mask where all other values are smaller than this share of it.
_MASKING, _FAR_BELOW = -1000.0, 0.05
# A range is too wide if at most this share of it is used.
_WIDE = 0.4
# From this code on, a bias counts as being at the end of int32, where float32 has steps of 2**7.
FULL_BIAS = 2**31 - 2**8
_ENOUGH_SAMPLES = 8


@dataclass(frozen=True)
class Cause:
    """One way to lose accuracy.

    part      the part of the op at fault: the form of its output, or its weights
    seen      describes the evidence in an op; "" where this cause does not apply
    remedies  recipes, the likeliest first; {to} is the scheme, {keep} the ops at fault; a recipe
              without `quantize` is for the quantized file itself
    is_usual  True for what every quantized model has
    """

    what: str
    why: str
    part: str
    seen: Callable[[OpLoss], str]
    remedies: tuple[str, ...]
    is_usual: bool = False


class Blame(NamedTuple):
    """One part of one op, with its cause."""

    loss: OpLoss
    cause: Cause
    seen: str

    @property
    def noise(self) -> float:
        return self.loss.noise(self.cause.part)


def find_blames(losses: Sequence[OpLoss]) -> list[Blame]:
    """The cause of every part with an error."""
    found: list[Blame] = []
    for loss in losses:
        for part in (FORM, WEIGHTS):
            if loss.noise(part) > 0:
                cause, seen = _first(loss, part)
                found.append(Blame(loss, cause, seen))
    return found


def _first(loss: OpLoss, part: str) -> tuple[Cause, str]:
    causes = [cause for cause in CAUSES if cause.part == part]
    for cause in causes:
        seen = cause.seen(loss)
        if seen:
            return cause, seen
    raise AssertionError("the last cause of a part is always one")


# The form of what an op writes.


def _cut(loss: OpLoss) -> str:
    if loss.cut.power < 0.5 * loss.form.power or loss.noise("cut") < _USUAL:
        return ""
    form = form_of(loss.twin.ours)
    assert form is not None
    low, high = covered(form)
    samples = percent_text(loss.cut_samples / max(len(loss.peaks), 1))
    return phrase(
        "values from {number} to {number2} in a range of {number3} to {number4}; cut in "
        "{samples} of the samples",
        number_text(loss.low),
        number_text(loss.high),
        number_text(low),
        number_text(high),
        samples,
    )


def _far_below(loss: OpLoss) -> str:
    is_masked = loss.low < _MASKING and abs(loss.high) < -_FAR_BELOW * loss.low
    quant = loss.twin.quant
    if not is_masked or quant is None:
        return ""
    return phrase(
        "values up to {number}, and down to {number2}, in steps of {number3}",
        number_text(loss.high),
        number_text(loss.low),
        number_text(float(quant.scale[0])),
    )


def _outlier_sample(loss: OpLoss) -> str:
    if loss.noise(FORM) < _USUAL or len(loss.peaks) < _ENOUGH_SAMPLES:
        return ""
    peaks = sorted(loss.peaks, reverse=True)
    (top, name), usual = peaks[0], peaks[max(1, len(peaks) // 50)][0]
    if top <= _FAR_SAMPLE * usual:
        return ""
    return phrase(
        "sample {name} reaches {number}, all others {number2}",
        plain(name),
        number_text(top),
        number_text(usual),
    )


def _outlier_channel(loss: OpLoss) -> str:
    peaks = loss.channel_peak[loss.channel_peak > 0]
    if peaks.size < 3 or _noise_of_most(loss) < _USUAL:
        return ""
    top, usual = float(peaks.max()), float(np.median(peaks))
    if top <= _FAR_CHANNEL * usual:
        return ""
    channel = int(loss.channel_peak.argmax())
    return phrase(
        "channel {channel} reaches {number}, half of all {number2} at most",
        channel,
        number_text(top),
        number_text(usual),
    )


def _noise_of_most(loss: OpLoss) -> float:
    """The error of the form as a share of the signal, in the median channel: the power of one loud
    channel would hide all others."""
    used = loss.channel_peak > 0
    return float(np.median(loss.form.squares[used] / loss.signal.squares[used]))


def _wide(loss: OpLoss) -> str:
    form = form_of(loss.twin.ours)
    if loss.noise(FORM) < _USUAL or form is None or form[1] == 0:
        return ""
    low, high = covered(form)
    used = max(loss.high, 0.0) - min(loss.low, 0.0)
    if used > _WIDE * (high - low):
        return ""
    return phrase(
        "values from {number} to {number2} use {share} of a range of {number3} to {number4}",
        number_text(loss.low),
        number_text(loss.high),
        percent_text(used / (high - low)),
        number_text(low),
        number_text(high),
    )


def _fine(loss: OpLoss) -> str:
    if loss.noise(FORM) < _MUCH:
        return ""
    size, bits = float(np.sqrt(loss.signal.power)), 8 * np.dtype(loss.twin.ours.dtype).itemsize
    quant = loss.twin.quant
    step = float(quant.scale[0]) if quant is not None else 0.0
    return phrase(
        "steps of {number} in {bits} bits for values of {number2}",
        number_text(step),
        bits,
        number_text(size),
    )


def _any(loss: OpLoss) -> str:
    return phrase("rounded to the nearest step")


# The weights and the bias.


def _full_bias(loss: OpLoss) -> str:
    channels = _channels_at_limit(loss)
    if not channels.size:
        return ""
    wanted, stored = (float(real_bias(layer)[channels[0]]) for layer in reversed(_layers(loss)))
    dead = _dead(loss)[channels]
    what = phrase(", its weights all zero") if dead.all() else ""
    return phrase(
        "{size} channels, first {channels}{what}: a bias of {number} ends at {number2}",
        channels.size,
        channels[0],
        what,
        number_text(wanted),
        number_text(stored),
    )


def _dead_channel(loss: OpLoss) -> str:
    return _full_bias(loss) if _dead(loss)[_channels_at_limit(loss)].any() else ""


def _wrong_bias(loss: OpLoss) -> str:
    ours, theirs = _layers(loss)
    wanted, stored = real_bias(theirs), real_bias(ours)
    size = np.sqrt(loss.signal.squares / max(loss.signal.count, 1))
    far = np.abs(wanted - stored) > 0.5 * np.maximum(size, size.mean())
    if not far.any() or loss.weights.mean_share < 0.5:
        return ""
    channel = int(np.abs(wanted - stored).argmax())
    return phrase(
        "{count} channels, most channel {channel}: {number} in the float model, {number2} here",
        int(far.sum()),
        channel,
        number_text(wanted[channel]),
        number_text(stored[channel]),
    )


def _one_scale(loss: OpLoss) -> str:
    ours, theirs = _layers(loss)
    quant = ours.weight.quant
    if quant is None or quant.scale.size > 1 or theirs.channels < 2:
        return ""
    peaks = np.abs(rows_of(real_values(theirs.weight), theirs.axis)).max(axis=1)
    usual = float(np.median(peaks[peaks > 0])) if peaks.any() else 0.0
    if peaks.max() <= _FAR_CHANNEL * usual:
        return ""
    return phrase(
        "weights up to {number}, in half the channels {number2}",
        number_text(peaks.max()),
        number_text(usual),
    )


def _mean_shift(loss: OpLoss) -> str:
    share = loss.weights.mean_share
    return (
        phrase("{share} of its error is a shift of channels", percent_text(share))
        if share > 0.5
        else ""
    )


def _layers(loss: OpLoss) -> tuple[Layer, Layer]:
    assert loss.twin.layers is not None
    return loss.twin.layers


def _channels_at_limit(loss: OpLoss) -> Array:
    bias = _layers(loss)[0].bias
    if bias is None or bias.dtype != "int32":
        return np.zeros(0, np.int64)
    return np.flatnonzero(np.abs(bias.values().reshape(-1).astype(np.int64)) >= FULL_BIAS)


def _dead(loss: OpLoss) -> Array:
    """The channels of the float layer whose weights are almost zero."""
    theirs = _layers(loss)[1]
    peaks = np.abs(rows_of(real_values(theirs.weight), theirs.axis)).max(axis=1)
    return peaks <= 1e-6 * peaks.max()


CAUSES = (
    Cause(
        phrase("values cut off at the end of their range"),
        phrase("the range is too narrow: an average of samples, or other data"),
        FORM,
        _cut,
        ("quantize(to={to})", "quantize(to={to}) | correct"),
    ),
    Cause(
        phrase("a mask reaches far below all scores"),
        phrase("a number such as -10000 hides places from attention; far less is enough for that"),
        FORM,
        _far_below,
        ("masks | quantize(to={to})", "masks | quantize(to={to}) | correct"),
    ),
    Cause(
        phrase("one sample stretches the range"),
        phrase("it makes the steps so wide that all other samples use few; look at that sample"),
        FORM,
        _outlier_sample,
        ("quantize(to={to}, ranges=percentile)", "quantize(to={to}, ranges=mse)"),
    ),
    Cause(
        phrase("one channel stretches the range"),
        phrase("all channels of a tensor share one step, so that the small ones have few"),
        FORM,
        _outlier_channel,
        ("equalize | quantize(to={to})", "quantize(to={to}, keep={keep})"),
    ),
    Cause(
        phrase("a range far wider than the values"),
        phrase("shared with what the op reads, as its kernel wants it, or taken from other data"),
        FORM,
        _wide,
        ("quantize(to={to})", "quantize(to={to}, keep={keep})"),
    ),
    Cause(
        phrase("values that need 16 bits"),
        phrase("many small values beside few large ones: the steps are too wide"),
        FORM,
        _fine,
        ("quantize(to={to}, keep={keep})",),
    ),
    Cause(
        phrase("values rounded between the ops"),
        phrase("every 8-bit step does this; 16 bits between the ops reduce it"),
        FORM,
        _any,
        ("quantize(to=int16x8)",),
        is_usual=True,
    ),
    Cause(
        phrase("dead channels whose bias does not fit"),
        phrase("weights of zero got a tiny scale, at which the bias leaves int32"),
        WEIGHTS,
        _dead_channel,
        ("quantize(to={to})",),
    ),
    Cause(
        phrase("a bias at the end of int32"),
        phrase("its scale is too small, so that it was cut off"),
        WEIGHTS,
        _full_bias,
        ("quantize(to={to})",),
    ),
    Cause(
        phrase("a bias that is not the float model's"),
        phrase(
            "it was cut off, stored at another scale, or taken from another version of the model"
        ),
        WEIGHTS,
        _wrong_bias,
        ("correct", "quantize(to={to})"),
    ),
    Cause(
        phrase("one scale for weights of all channels"),
        phrase("the channels differ so much that the small ones have few steps"),
        WEIGHTS,
        _one_scale,
        ("quantize(to={to})",),
    ),
    Cause(
        phrase("rounded weights shift the mean of channels"),
        phrase("the inputs are mostly positive, so that the errors of weights add up"),
        WEIGHTS,
        _mean_shift,
        ("correct",),
    ),
    Cause(
        "weights rounded",
        phrase("to the nearest step of their channel; other roundings suit the data better"),
        WEIGHTS,
        _any,
        ("round",),
        is_usual=True,
    ),
)
