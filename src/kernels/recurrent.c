/* Kernels of recurrent cells. Compiled once per ISA. */
#include "kernels/recurrent.h"

#include <math.h>

#include "kernels/activation_f32.h"
#include "kernels/isa.h"
#include "kernels/math_f32.h"

#define REAL float
#define TAG f32
#define SIGMOID sigmoid_f32
#define TANH math_tanh
#include "kernels/recurrent_float.h"
#undef REAL
#undef TAG
#undef SIGMOID
#undef TANH

static inline double sigmoid(double x) { return 1 / (1 + exp(-x)); }

#define REAL double
#define TAG f64
#define SIGMOID sigmoid
#define TANH tanh
#include "kernels/recurrent_float.h"
#undef REAL
#undef TAG
#undef SIGMOID
#undef TANH

#define TABLE(tag) {lstm_##tag, lstm_gradient_##tag, gru_##tag, gru_gradient_##tag}

const struct recurrent_kernels KERNEL_TABLE(recurrent_kernels) = {
    .real = {[ACCUMULATE_F64] = TABLE(f64), [ACCUMULATE_F32] = TABLE(f32)},
};
