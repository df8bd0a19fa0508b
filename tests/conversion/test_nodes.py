"""A sample of ONNX's own tests of operators; bench/convert_nodes.py runs all of them."""

from pathlib import Path

import pytest

from tests.conversion.node_cases import Outcome, cases, outcome

pytest.importorskip("onnx", reason="the tests are those of the onnx package")

# One or more for each operator that has a rule.
_SAMPLE = """
abs acos_example acosh_example add affine_grid_2d and2d argmax_no_keepdims_example
argmax_no_keepdims_example_select_last_index argmin_no_keepdims_example
argmin_no_keepdims_example_select_last_index asin_example asinh_example atan_example
atanh_example attention_4d attention_4d_diff_heads_with_past_and_present attention_3d_causal
attention_4d_gqa_causal_nonpad_decode_fp16 averagepool_2d_precomputed_pads
averagepool_2d_pads_count_include_pad batchnorm_example bernoulli_seed bitcast_float32_to_int32
bitshift_right_int32 bitwise_and_i32_2d bitwise_not_2d bitwise_or_i32_2d bitwise_xor_i32_2d
blackmanwindow causal_conv_with_state_basic causal_conv_with_state_kernel_size_one ceil_example
celu center_crop_pad_crop clip_example col2im compress_0 concat_1d_axis_0 concat_3d_axis_0
constant constantofshape_float_ones basic_conv_with_padding convtranspose cos_example
cosh_example cumprod_2d_int32 cumsum_2d_int32 dft_opset19 depthtospace_example det_2d
basic_deform_conv_with_padding deform_conv_with_mask_bias
div_example dropout_default elu_example equal erf exp_example expand_dim_changed
eyelike_without_dtype flatten_axis0 floor_example gather_0 gather_elements_0
gathernd_example_int32 gelu_tanh_1 gemm_default_zero_bias globalaveragepool globalmaxpool
greater greater_equal gridsample gridsample_nearest_align_corners_1_additional_1
group_normalization_example hammingwindow hannwindow hardsigmoid_example hardswish
hardmax_example identity instancenorm_example isinf isnan lrn layer_normalization_4d_axis0
layer_normalization_2d_axis0 leakyrelu_example less less_equal linear_attention_linear
linear_attention_gated_delta_mqa log_example logsoftmax_example_1 l2normalization_axis_0
lppool_1d_default matmul_2d max_example maxpool_2d_precomputed_pads maxpool_2d_same_lower
maxunpool_export_without_output_shape mean_example mvn melweightmatrix min_example mish
mod_mixed_sign_float32 mul_example neg_example nllloss_NC
nllloss_NCd1d2_no_weight_reduction_mean_ii nonmaxsuppression_suppress_by_IOU nonzero_example
onehot_without_axis optional_get_element_optional_tensor optional_has_element_tensor_input or2d
prelu_example constant_pad pow_example rms_normalization_4d_axis0 rms_normalization_2d_axis0
range_float_type_positive_delta reciprocal_example reduce_l1_do_not_keepdims_example
reduce_l2_do_not_keepdims_example reduce_log_sum_desc_axes reduce_log_sum_exp_empty_set
reduce_max_do_not_keepdims_example reduce_mean_do_not_keepdims_example
reduce_min_do_not_keepdims_example reduce_prod_do_not_keepdims_example
reduce_sum_do_not_keepdims_example reduce_sum_negative_axes_keepdims_example
reduce_sum_square_do_not_keepdims_example relu reshape_reordered_all_dims
resize_upsample_scales_nearest resize_downsample_sizes_linear_pytorch_half_pixel
reversesequence_time roialign_aligned_false rotary_embedding round stft scatter_without_axis
scatter_elements_without_axis scatternd selu_example shape_example shrink_hard sigmoid_example
sign sin_example sinh_example size_example slice softmax_example sce_none
sce_mean_no_weight_ii_log_prob softplus_example softsign_example spacetodepth
split_equal_parts_1d_opset13 split_variable_parts_1d_opset18 sqrt_example squeeze sub_example
sum_example swiglu swish tan_example tanh_example tensorscatter thresholdedrelu_example tile
top_k transpose_default triu tril unsqueeze_axis_0 upsample_nearest where_example xor2d
"""


@pytest.mark.parametrize("name", _SAMPLE.split())
def test_an_operator_gives_what_onnx_says(name: str, tmp_path: Path) -> None:
    found = [case for case in cases() if case.name == f"test_{name}"]
    if not found:
        pytest.skip("this version of onnx has no such test")
    assert outcome(found[0], tmp_path).why == ""


def test_an_input_that_litert_wants_constant_is_fixed_and_told(tmp_path: Path) -> None:
    found = [case for case in cases() if case.name == "test_resize_upsample_scales_linear"]
    if not found:
        pytest.skip("this version of onnx has no such test")
    assert outcome(found[0], tmp_path) == Outcome("", ("scales",))


def test_what_has_no_form_is_left_with_a_reason(tmp_path: Path) -> None:
    found = [case for case in cases() if case.name == "test_unique_sorted_without_axis"]
    if not found:
        pytest.skip("this version of onnx has no such test")
    assert "Unique: how many different values" in outcome(found[0], tmp_path).why
