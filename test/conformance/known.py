# Part of the LLM compiler, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases that are not run, and why; and the subset of the quick checks."""
import re

# (pattern of the case's name, pattern of the variant, reason)
SKIPS = []

# What the importer says of a case that it does not take.
UNSUPPORTED = re.compile(r"unsupported operator|not supported")


def reason(name, variant):
    """Why a case is skipped, or None."""
    for case, which, why in SKIPS:
        if re.fullmatch(case, name) and re.fullmatch(which, variant):
            return why
    return None


def is_unsupported(message):
    return bool(UNSUPPORTED.search(message))


def stays_static(operator, index, axis, rank):
    """Dimensions that the importer must know, also where a model's others are
    symbols: heads and their sizes; lengths of index tuples and of shapes, which
    are ranks; the one scale of a whole tensor."""
    if operator == "Attention":
        return axis in (1, 3) if rank == 4 and index < 3 else axis == 2
    if operator in ("GroupQueryAttention", "RotaryEmbedding"):
        return (rank == 3 and axis == 2) or (rank == 2 and axis == 1 and index > 1)
    if operator == "ScatterND":
        return index == 1 and axis == rank - 1
    if operator == "ConstantOfShape":
        return True
    if operator in ("DequantizeLinear", "QuantizeLinear"):
        return index > 0
    return False


# A case or two of each operator, for the quick checks.
SUBSET = set(
    """
    test_abs test_add_bcast test_and_bcast3v1d test_argmax_keepdims_example_select_last_index
    test_attention_3d_gqa test_attention_4d_attn_mask_bool_4d test_attention_4d_causal_with_past_and_present
    test_cast_FLOAT_to_BFLOAT16 test_cast_FLOAT_to_FLOAT8E4M3FN test_cast_FLOAT_to_INT4
    test_cast_no_saturate_FLOAT_to_FLOAT8E5M2 test_castlike_FLOAT_to_DOUBLE test_ceil test_clip
    test_concat_3d_axis_1 test_constantofshape_int_zeros test_cos test_cumsum_2d_axis_1
    test_dequantizelinear_uint4 test_div_int32_trunc test_equal_bcast test_erf test_exp
    test_expand_dim_changed test_flatten_axis1 test_floor test_gather_negative_indices
    test_gelu_default_1 test_gelu_tanh_1 test_gemm_all_attributes test_greater_bcast test_identity
    test_layer_normalization_4d_axis1 test_leakyrelu test_less_equal_bcast test_log
    test_logsoftmax_axis_0 test_matmul_4d test_max_int64 test_mean_two_inputs test_min_uint8
    test_mod_int64_fmod test_mod_mixed_sign_float16 test_mul_bcast test_neg test_not_2d
    test_or_bcast4v3d test_pow_bcast_scalar test_pow_types_int32_int32
    test_quantizelinear_e4m3fn test_range_float_type_positive_delta_expanded
    test_range_int32_type_negative_delta test_reciprocal test_reduce_l2_default_axes_keepdims_random
    test_reduce_log_sum_exp_keepdims_random test_reduce_max_empty_set
    test_reduce_mean_negative_axes_keepdims_random test_reduce_prod_keepdims_random
    test_reduce_sum_square_do_not_keepdims_random test_relu test_reshape_negative_dim
    test_reshape_zero_and_negative_dim test_rms_normalization_3d_axis1_epsilon
    test_rotary_embedding_with_interleaved_rotary_dim test_round test_scatternd_add
    test_shape_start_1_end_negative_1 test_sigmoid test_sign test_sin test_size
    test_slice_neg_steps test_softmax_large_number test_softplus
    test_split_variable_parts_2d_opset18 test_sqrt test_squeeze_negative_axes test_sub_bcast
    test_sum_example test_swish test_tanh test_tile test_top_k_smallest
    test_transpose_all_permutations_3 test_tril_neg test_triu_pos test_unsqueeze_two_axes
    test_where_example test_xor_bcast3v2d
    """.split()
)
