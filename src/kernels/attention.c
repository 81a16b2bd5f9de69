/* Attention kernels. Compiled once per ISA. */
#include "kernels/attention.h"

#include <math.h>

#include "kernels/isa.h"
#include "kernels/softmax_exp.h"

#define REAL float
#define TAG f32
#define EXP softmax_exp
#include "kernels/attention_float.h"
#undef REAL
#undef TAG
#undef EXP

#define REAL double
#define TAG f64
#define EXP exp
#include "kernels/attention_float.h"
#undef REAL
#undef TAG
#undef EXP

#define TABLE(tag) {step_##tag, probability_##tag, gradient_##tag, scale_##tag, add_##tag, dot_##tag, hide_##tag, drop_##tag}
const struct attention_kernels KERNEL_TABLE(attention_kernels) = {
    .real = {[ACCUMULATE_F64] = TABLE(f64), [ACCUMULATE_F32] = TABLE(f32)},
};
