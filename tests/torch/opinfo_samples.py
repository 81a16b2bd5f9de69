"""Arguments made by hand for overloads of ops_families.txt that no OpInfo and no namesake's arguments reach, and those tested elsewhere.

Invariant: arguments are on the CPU; opinfo_compare carries them over. Outputs need no entry: opinfo_compare adds empty ones.
"""

from __future__ import annotations

from typing import Any

import torch

# Overloads whose tests stand in another file.
ELSEWHERE = {
    **dict.fromkeys(("_fused_adam_", "_fused_adamw_", "_fused_sgd_"), "test_operators_optimizers.py"),
    **dict.fromkeys(("_fused_adam_.tensor_lr", "_fused_adamw_.tensor_lr", "_fused_sgd_.tensor_lr"), "test_operators_optimizers.py"),
    **dict.fromkeys(("_fused_adagrad_", "_fused_adagrad_.tensor_lr"), "test_operators_optimizers.py"),
    **dict.fromkeys(("_amp_foreach_non_finite_check_and_unscale_", "_amp_update_scale_"), "test_amp.py"),
    **dict.fromkeys(("embedding_bag", "_embedding_bag_dense_backward"), "test_operators_rare.py"),
    "_fused_rms_norm_backward": "test_fused.py",
    **dict.fromkeys(("lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"), "test_operators_recurrent.py"),
    **dict.fromkeys(("lstm.input", "gru.input", "rnn_tanh.input", "rnn_relu.input"), "test_operators_recurrent.py"),
}


def t(*sizes: int, low: float = -2, high: float = 2, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Evenly drawn numbers of fixed seed."""
    generator = torch.Generator().manual_seed(sum(sizes) + 1)
    return (torch.rand(sizes, generator=generator, dtype=torch.float64) * (high - low) + low).to(dtype)


def integers(*sizes: int, high: int) -> torch.Tensor:
    """Indices below `high`."""
    return torch.randint(high, sizes, generator=torch.Generator().manual_seed(3))


def samples() -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """(overload, arguments, options)."""
    return [
        *elementwise(),
        *shapes(),
        *numbers(),
        *network(),
        *lists(),
    ]


def elementwise() -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """Unary, binary, comparisons."""
    a, b, bools = t(3, 4), t(3, 4, low=0.5), t(3, 4) > 0
    whole = integers(3, 4, high=9)
    return [
        *((name, (a, -1.0, 1.0), {}) for name in ("clip", "clip_", "clip.out")),
        *((name, (a, -b, b), {}) for name in ("clip.Tensor", "clip_.Tensor", "clip.Tensor_out")),
        *((name, (b.double(), 1.5), {}) for name in ("float_power_.Scalar",)),
        *((name, (a, b), {"rounding_mode": "floor"}) for name in ("divide.Tensor_mode", "divide_.Tensor_mode", "divide.out_mode")),
        *((name, (a, 1.5), {"rounding_mode": "trunc"}) for name in ("divide.Scalar_mode", "divide_.Scalar_mode")),
        *((name, (a, 1.0), {}) for name in ("fill_diagonal_",)),
        *((name, (whole, 3), {}) for name in ("isin.Tensor_Scalar", "isin.Tensor_Scalar_out")),
        *((name, (3, whole), {}) for name in ("isin.Scalar_Tensor", "isin.Scalar_Tensor_out")),
        *((name, (whole, 2), {}) for name in ("__lshift__.Scalar", "__rshift__.Scalar", "__ilshift__.Scalar", "__irshift__.Scalar")),
        *((name, (whole, whole % 4), {}) for name in ("__lshift__.Tensor", "__rshift__.Tensor", "__ilshift__.Tensor", "__irshift__.Tensor")),
        *(
            (name, (whole, 5), {})
            for name in ("__and__.Scalar", "__or__.Scalar", "__xor__.Scalar", "__iand__.Scalar", "__ior__.Scalar", "__ixor__.Scalar")
        ),
        *((name, (whole, whole + 1), {}) for name in ("__and__.Tensor", "__or__.Tensor", "__xor__.Tensor", "__ixor__.Tensor")),
        ("where", (bools,), {}),
        ("conj", (a,), {}),
        ("infinitely_differentiable_gelu_backward", (a, b), {}),
    ]


def shapes() -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """Views and their copies, joining, pads."""
    a = t(4, 6)
    return [
        *((name, (a, 0, 1), {}) for name in ("swapaxes", "swapaxes_", "swapdims", "swapdims_")),
        ("moveaxis.int", (t(2, 3, 4), 0, 2), {}),
        ("moveaxis.intlist", (t(2, 3, 4), [0, 1], [1, 2]), {}),
        ("adjoint", (a,), {}),
        ("split.sizes", (a, [1, 3], 0), {}),
        ("to.other", (a, integers(2, high=3)), {}),
        ("view.dtype", (a, torch.int32), {}),
        ("_reshape_alias", (a, [2, 12], [12, 1]), {}),
        ("unsafe_split_with_sizes", (a, [1, 3], 0), {}),
        ("squeeze_copy.dims", (t(4, 1, 3), [1]), {}),
        ("view_copy.dtype", (a, torch.int32), {}),
        ("split_copy.Tensor", (a, 3, 1), {}),
        ("select_copy.int", (a, 1, 2), {}),
        ("slice_copy.Tensor", (a, 1, 1, 5, 2), {}),
        ("detach_copy", (a,), {}),
        ("view_as_real_copy", (torch.complex(a, a),), {}),
        ("meshgrid", ([t(3), t(2)],), {}),
        ("_stack", ([a, a + 1], 1), {}),
        ("_stack.out", ([a, a + 1], 1), {}),
        *((name, ([a, a + 1], 1), {}) for name in ("concat", "concat.out", "concatenate", "concatenate.out")),
        ("_pad_enum", (t(1, 2, 4), [1, 1], 1), {}),
        *((name, (t(1, 4, 5, 6), t(1, 2, 3, 4), [1] * 6), {}) for name in ("reflection_pad3d_backward", "replication_pad3d_backward")),
        *(
            (name, (t(1, 4, 5, 6), t(1, 2, 3, 4), [1] * 6), {})
            for name in ("reflection_pad3d_backward.grad_input", "replication_pad3d_backward.grad_input")
        ),
    ]


def numbers() -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """Made tensors, windows, reductions, cumulative and matrix forms, random."""
    a, square = t(4, 6), t(4, 4)
    windows = ("hann_window", "hamming_window", "bartlett_window", "blackman_window", "kaiser_window")
    values, places = torch.cummax(a, 1)
    whole = integers(6, high=5)
    return [
        *((name, (0, 5, 0.5), {"device": "cpu"}) for name in ("range.step",)),
        ("range", (0, 5), {"device": "cpu"}),
        ("range.out", (0, 5, 0.5), {"like": a}),
        ("range.out_", (0, 5), {"like": a}),
        ("vander", (t(4), 3, False), {}),
        *((name, (7,), {"device": "cpu"}) for name in windows),
        *((f"{name}.periodic", (7, False), {"device": "cpu"}) for name in windows),
        ("hamming_window.periodic_alpha", (7, True, 0.6), {"device": "cpu"}),
        ("hamming_window.periodic_alpha_beta", (7, True, 0.6, 0.4), {"device": "cpu"}),
        ("kaiser_window.beta", (7, True, 9.0), {"device": "cpu"}),
        ("norm.ScalarOpt_dtype", (a, 2.0), {"dtype": torch.float64}),
        ("norm.Scalar", (a, 3.0), {}),
        ("norm.ScalarOpt_dim_dtype", (a, 2.0, [1], False), {"dtype": torch.float64}),
        ("norm.dtype_out", (a, 2.0, [1], False), {"dtype": torch.float64}),
        *((name, (a, [1], True), {}) for name in ("frobenius_norm.dim", "frobenius_norm.out", "special_logsumexp", "special_logsumexp.out")),
        ("_aminmax", (a,), {}),
        ("_aminmax.dim", (a, 1), {}),
        ("gradient.scalararray", (a,), {"spacing": 2.0, "dim": [0, 1]}),
        ("gradient.array", (a,), {"dim": [0, 1]}),
        ("gradient.tensorarrayint", (a,), {"spacing": [torch.arange(6.0)], "dim": 1}),
        ("_logcumsumexp", (a, 1), {}),
        ("_logcumsumexp.out", (a, 1), {}),
        ("_cummax_helper", (a, torch.zeros_like(a), torch.zeros(4, 6, dtype=torch.int64), 1), {}),
        ("_cummin_helper", (a, torch.zeros_like(a), torch.zeros(4, 6, dtype=torch.int64), 1), {}),
        ("cummaxmin_backward", (a, values, places, 1), {}),
        ("cumprod_backward", (a, a + 3, 1, torch.cumprod(a + 3, 1)), {}),
        ("ger", (t(3), t(4)), {}),
        ("ger.out", (t(3), t(4)), {}),
        ("chain_matmul", ([t(3, 4), t(4, 5), t(5, 2)],), {}),
        ("chain_matmul.out", ([t(3, 4), t(4, 5), t(5, 2)],), {}),
        ("linalg_matmul", (square, a), {}),
        ("linalg_matmul.out", (square, a), {}),
        ("matrix_power", (square, 3), {}),
        ("matrix_power.out", (square, 3), {}),
        ("_addmm_activation", (t(3), t(2, 4), t(4, 3)), {"use_gelu": False}),
        ("_addmm_activation.out", (t(3), t(2, 4), t(4, 3)), {"use_gelu": False}),
        ("special_softmax", (a, 1), {}),
        ("special_log_softmax", (a, 1), {}),
        ("value_selecting_reduction_backward", (t(4), 1, integers(4, high=6), [4, 6], False), {}),
        ("gather_backward", (t(4, 2), a, 1, integers(4, 2, high=6), False), {}),
        ("index_select_backward", (t(4, 3), [4, 6], 1, integers(3, high=6)), {}),
        ("masked_select_backward", (t(int((a > 0).sum())), a, a > 0), {}),
        ("_index_put_impl_", (a, [integers(5, high=4), integers(5, high=6)], t(5), True), {}),
        ("_unsafe_index_put", (a, [integers(5, high=4), integers(5, high=6)], t(5), True), {}),
        ("unique_dim_consecutive", (whole.reshape(3, 2), 0, True, True), {}),
        *((name, (a.abs(),), {}) for name in ("random_", "rand_like", "poisson")),
        ("random_.from", (a, 2, 7), {}),
        ("random_.to", (a, 7), {}),
        ("bernoulli_.Tensor", (a, t(4, 6, low=0, high=1)), {}),
        ("bernoulli.p", (a, 0.5), {}),
        ("randperm", (9,), {"device": "cpu"}),
        ("randperm.out", (9,), {"like": whole}),
        ("rand.out", ([3, 4],), {"like": a}),
    ]


def network() -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """Operators of networks."""
    image, filters = t(2, 3, 6, 6), t(4, 3, 3, 3)
    convolution = (image, filters, t(4), [1, 1], [1, 1], [1, 1], False, [0, 0], 1, False, False, True)
    resized = ([9, 9], False, None, None)
    return [
        ("_convolution", (*convolution, True), {}),
        ("_convolution.deprecated", convolution, {}),
        ("adaptive_avg_pool3d_backward.grad_input", (t(1, 2, 2, 2, 2), t(1, 2, 4, 4, 4)), {}),
        ("_weight_norm", (t(4, 3), t(4, 1), 0), {}),
        ("_weight_norm_interface", (t(4, 3), t(4, 1), 0), {}),
        ("_weight_norm_interface_backward", (t(4, 3), t(4, 3) + 1, t(4, 1), t(4, 1, low=1), 0), {}),
        ("norm_except_dim", (t(4, 3), 2, 0), {}),
        ("embedding_backward", (t(5, 3), integers(5, high=7), 7, -1, False, False), {}),
        ("_upsample_bicubic2d_aa", (image, *resized), {}),
        ("_upsample_bicubic2d_aa.vec", (image, [9, 9], False, None), {}),
        ("_upsample_bicubic2d_aa.out", (image, *resized), {}),
        ("_upsample_bicubic2d_aa_backward", (t(2, 3, 9, 9), [9, 9], [2, 3, 6, 6], False, None, None), {}),
        ("_upsample_bicubic2d_aa_backward.grad_input", (t(2, 3, 9, 9), [9, 9], [2, 3, 6, 6], False, None, None), {}),
        ("affine_grid_generator", (t(2, 2, 3), [2, 3, 4, 5], False), {}),
        ("affine_grid_generator_backward", (t(2, 4, 5, 2), [2, 3, 4, 5], False), {}),
    ]


def lists() -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """Lists of tensors."""
    some, others, numbers = [t(3), t(2, 4)], [t(3) + 3, t(2, 4) + 3], torch.tensor([0.5, 2.0])
    return [
        *((name, (some, others, others, numbers), {}) for name in ("_foreach_addcdiv.Tensor", "_foreach_addcdiv_.Tensor")),
        *((name, (some, others, others, numbers), {}) for name in ("_foreach_addcmul.Tensor", "_foreach_addcmul_.Tensor")),
        ("_foreach_powsum.Scalar", (some, 2), {}),
        ("_foreach_pow.ScalarAndTensor", (2.0, some), {}),
        ("_foreach_copy", (some, others), {}),
    ]
