/* Kernels on volumes. Compiled once per ISA. */
#include "kernels/volume.h"

#include <math.h>

#include "kernels/isa.h"

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

#define TABLE(tag) {max_##tag, scatter_##tag, unfold_##tag, fold_##tag}
const struct volume_kernels KERNEL_TABLE(volume_kernels) = {
    .real = {[ACCUMULATE_F64] = TABLE(f64), [ACCUMULATE_F32] = TABLE(f32)},
};
