/* Kernels on volumes. Compiled once per ISA. */
#include "kernels/volume.h"

#include <math.h>

#include "kernels/isa.h"

#define LOWEST (-(REAL)INFINITY)
#define IS_NAN(value) ((value) != (value))
#define ADD(a, b) ((a) + (b))
#define REAL float
#define TAG f32
#include "kernels/volume_float.h"
#undef REAL
#undef TAG

#define REAL double
#define TAG f64
#include "kernels/volume_float.h"
#undef REAL
#undef TAG

#undef LOWEST
#undef IS_NAN
#undef ADD
#define LOWEST INT64_MIN
#define IS_NAN(value) 0
#define ADD(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
#define REAL int64_t
#define TAG i64
#include "kernels/volume_float.h"
#undef REAL
#undef TAG

#define TABLE(tag) {max_##tag, scatter_##tag, unfold_##tag, fold_##tag}
const struct volume_kernels KERNEL_TABLE(volume_kernels) = {
    .real = {[ACCUMULATE_F64] = TABLE(f64), [ACCUMULATE_F32] = TABLE(f32), [ACCUMULATE_I64] = TABLE(i64)},
};
