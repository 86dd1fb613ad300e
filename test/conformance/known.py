# Part of the LLM compiler, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the sweep is not expected to pass, and why; the subset of quick checks."""
import re

# (reason, operators): every case that uses one of them, in a subgraph or in the
# body of a function as well, is not supported.
OPERATORS = [
    (
        "images, audio and signals: no language model has them",
        """
        AffineGrid AveragePool BlackmanWindow CenterCropPad Col2Im Conv ConvInteger
        ConvTranspose DFT DeformConv DepthToSpace Det GlobalAveragePool GlobalMaxPool
        GridSample HammingWindow HannWindow ImageDecoder LRN LpPool MaxPool MaxUnpool
        MelWeightMatrix NonMaxSuppression QLinearConv Resize RoiAlign STFT SpaceToDepth
        Upsample
        """,
    ),
    (
        "training, loss and random numbers: not inference",
        """
        Bernoulli Dropout NegativeLogLikelihoodLoss RandomUniformLike
        SoftmaxCrossEntropyLoss ai.onnx.preview.training.Adagrad
        ai.onnx.preview.training.Adam ai.onnx.preview.training.Momentum
        """,
    ),
    (
        "classical machine learning",
        """
        TfIdfVectorizer ai.onnx.ml.ArrayFeatureExtractor ai.onnx.ml.Binarizer
        ai.onnx.ml.LabelEncoder ai.onnx.ml.TreeEnsemble
        """,
    ),
    (
        "strings, sequences and optionals: the dialect has tensors of numbers",
        """
        Optional OptionalGetElement OptionalHasElement RegexFullMatch SequenceAt
        SequenceConstruct SequenceEmpty SequenceInsert SequenceLength SequenceMap
        SplitToSequence StringConcat StringNormalizer StringSplit
        """,
    ),
    ("recurrent networks, and loops of another form than Loop", "GRU LSTM RNN Scan"),
    (
        "state-space layers: the dialect has no op for them yet",
        "CausalConvWithState LinearAttention",
    ),
    ("a preview that may change", "ai.onnx.preview.FlexAttention"),
    ("the number of results depends on the data", "Compress NonZero Unique"),
    (
        "normalizations of vision models",
        """
        BatchNormalization GroupNormalization InstanceNormalization LpNormalization
        MeanVarianceNormalization
        """,
    ),
    (
        "functions and bit operations that no decoder among the exporters' uses",
        """
        Acos Acosh Asin Asinh Atan Atanh BitCast BitShift BitwiseNot Celu Cosh CumProd
        Elu EyeLike HardSigmoid HardSwish Hardmax IsInf IsNaN Mish OneHot PRelu
        ReverseSequence Selu Shrink Sinh Softsign SwiGLU Tan ThresholdedRelu
        """,
    ),
]

# (reason, patterns of "case" or "case[variant]"): forms of operators that are
# supported otherwise.
CASES = [
    (
        "strings, sequences and optionals",
        "test_equal_string(_broadcast)? test_identity_(sequence|opt)",
    ),
    (
        "the scores of Attention as a result, which the fused op does not keep",
        """
        test_attention_[34]d_with_(past_and_present_)?qk_matmul(_bias|_softcap|_softmax)?
        test_attention_4d_with_past_and_present_qk_matmul_bias_[34]d_mask(_causal)?
        test_attention_2[34]_fullymasked_qk_matmul_output_mode3_zero
        test_attention_24_qk_matmul_output_mode3_softmax_precision
        """,
    ),
    (
        "a rank that hangs on what the run computes",
        "test_affine_grid_[23]d(_align_corners)?_expanded",
    ),
    ("a window over later tokens", "test_attention_bidirectional_window"),
    ("a softmax in double", "test_attention_local_window_gqa_rank4_mask"),
    (
        "blocks along an axis whose size, or one behind it, is not known",
        r"""
        test_dequantizelinear_blocked\[dynamic\]
        test_quantizelinear_blocked_(a?symmetric)\[dynamic\]
        """,
    ),
    ("a scan output of Loop whose rows have no static size", "test_loop11"),
    ("operator set 1: those from 7 on are read", "test_not_[234]d"),
    ("a gathered matrix of signed codes", "ort_gather_block_quantized_i4_False"),
]


class Unsupported:
    """The two lists, and which of their entries were met."""

    def __init__(self):
        self.operators = {name: why for why, names in OPERATORS for name in names.split()}
        self.cases = {name: why for why, names in CASES for name in names.split()}
        self.met = set()

    def reason(self, case, operators, variant):
        """Why a case is not supported, or None."""
        found = {name: self.operators[name] for name in operators if name in self.operators}
        for pattern, why in self.cases.items():
            if re.fullmatch(pattern, case) or re.fullmatch(pattern, f"{case}[{variant}]"):
                found[pattern] = why
        self.met.update(found)
        return next(iter(found.values()), None)

    def unused(self):
        return [n for n in [*self.operators, *self.cases] if n not in self.met]


def stays_static(operator, index, axis, rank):
    """Dimensions that the importer must know, also where a model's others are
    symbols: heads and their sizes; lengths of index tuples and of shapes, which
    are ranks; the one scale of a whole tensor."""
    if operator == "Attention":
        return axis in (1, 3) if rank == 4 and index < 3 else axis == 2
    if operator in ("GroupQueryAttention", "RotaryEmbedding"):
        return (rank == 3 and axis == 2) or (rank == 2 and axis == 1 and index > 1)
    if operator in ("GatherND", "ScatterND"):
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
    test_einsum_batch_diagonal test_einsum_batch_matmul test_gather_elements_negative_indices
    test_gathernd_example_int32_batch_dim1 test_scatter_elements_with_reduction_max
    test_tensorscatter_circular test_constant_pad_negative_axes test_reflect_pad test_wrap_pad
    test_matmulinteger test_qlinearmatmul_2D_int8_float16 test_dynamicquantizelinear
    test_quantizelinear_e5m2 test_reduce_max_bool_inputs ort_einsum_groups ort_pad_edge
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
