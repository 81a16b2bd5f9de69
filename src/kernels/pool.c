/* Pooling kernels. Compiled once per ISA. */
#include "kernels/pool.h"

#include "kernels/isa.h"

#define REAL float
#define TAG f32
#include "kernels/pool_float.h"
#undef REAL
#undef TAG

#define REAL double
#define TAG f64
#include "kernels/pool_float.h"
#undef REAL
#undef TAG

static void widen_index(const int32_t *in, int64_t *out, int64_t n)
{
    for (int64_t i = 0; i < n; ++i)
        out[i] = in[i];
}

static void narrow_index(const int64_t *in, int32_t *out, int64_t n)
{
    for (int64_t i = 0; i < n; ++i)
        out[i] = (int32_t)in[i];
}

#define TABLE(tag) {max_##tag, max_backward_##tag, average_##tag, average_backward_##tag, adaptive_##tag, adaptive_backward_##tag}

const struct pool_kernels KERNEL_TABLE(pool_kernels) = {
    .real = {[ACCUMULATE_F64] = TABLE(f64), [ACCUMULATE_F32] = TABLE(f32)},
    .widen_index = widen_index,
    .narrow_index = narrow_index,
};
