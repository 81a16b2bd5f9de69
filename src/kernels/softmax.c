/* Softmax kernels. Compiled once per ISA. */
#include "kernels/softmax.h"

#include <math.h>

#include "kernels/isa.h"
#include "kernels/softmax_exp.h"

#define REAL float
#define TAG f32
#define EXP softmax_exp
#define LOG logf
#include "kernels/softmax_float.h"
#undef REAL
#undef TAG
#undef EXP
#undef LOG

#define REAL double
#define TAG f64
#define EXP exp
#define LOG log
#include "kernels/softmax_float.h"
#undef REAL
#undef TAG
#undef EXP
#undef LOG

const struct softmax_kernels KERNEL_TABLE(softmax_kernels) = {
    .real = {[ACCUMULATE_F64] = {forward_f64, backward_f64, forward_columns_f64, backward_columns_f64},
             [ACCUMULATE_F32] = {forward_f32, backward_f32, forward_columns_f32, backward_columns_f32}},
};
