/* Normalisation kernels. Compiled once per ISA. */
#include "kernels/norm.h"

#include <math.h>

#include "kernels/isa.h"
#include "kernels/softmax_exp.h"

#define REAL float
#define TAG f32
#define EXP softmax_exp
#include "kernels/norm_float.h"
#undef REAL
#undef TAG
#undef EXP

#define REAL double
#define TAG f64
#define EXP exp
#include "kernels/norm_float.h"
#undef REAL
#undef TAG
#undef EXP

#define TABLE(tag)                                                                                                    \
    {sum_##tag, square_sum_##tag, affine_##tag, gradient_sums_##tag, gradient_##tag, column_sums_##tag,               \
     column_squares_##tag, column_affine_##tag, layer_##tag, layer_sums_##tag, layer_gradient_##tag, layer_parameters_##tag,\
     swish_##tag, swish_gradient_##tag}

const struct norm_kernels KERNEL_TABLE(norm_kernels) = {
    .real = {[ACCUMULATE_F64] = TABLE(f64), [ACCUMULATE_F32] = TABLE(f32)},
};
