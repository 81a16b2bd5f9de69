/* Kernels of grid sampling. Compiled once per ISA. See grid.h. */
#include "kernels/grid.h"

#include "kernels/isa.h"

#define GRID_KERNELS(T, tag)                                                                                                 \
    static void sample_##tag(const struct grid_taps *taps, const void *in, int64_t plane, void *out, int64_t out_stride,     \
                             int64_t channels)                                                                               \
    {                                                                                                                        \
        for (int64_t c = 0; c < channels; ++c) {                                                                             \
            const T *const from = (const T *)in + c * plane;                                                                 \
            T sum = 0;                                                                                                       \
            for (int t = 0; t < taps->count; ++t)                                                                            \
                sum += (T)taps->weight[t] * from[taps->offset[t]];                                                           \
            ((T *)out)[c * out_stride] = sum;                                                                                \
        }                                                                                                                    \
    }                                                                                                                        \
    static void spread_##tag(const struct grid_taps *taps, void *in, int64_t plane, const void *grad, int64_t grad_stride,   \
                             int64_t channels)                                                                               \
    {                                                                                                                        \
        for (int64_t c = 0; c < channels; ++c) {                                                                             \
            T *const to = (T *)in + c * plane;                                                                               \
            const T g = ((const T *)grad)[c * grad_stride];                                                                  \
            for (int t = 0; t < taps->count; ++t)                                                                            \
                to[taps->offset[t]] += (T)taps->weight[t] * g;                                                               \
        }                                                                                                                    \
    }                                                                                                                        \
    static void slopes_##tag(const struct grid_taps *taps, const void *in, int64_t plane, const void *grad,                  \
                             int64_t grad_stride, int64_t channels, double *sums)                                            \
    {                                                                                                                        \
        for (int d = 0; d < GRID_DIMS; ++d)                                                                                  \
            sums[d] = 0;                                                                                                     \
        for (int64_t c = 0; c < channels; ++c) {                                                                             \
            const T *const from = (const T *)in + c * plane;                                                                 \
            const double g = (double)((const T *)grad)[c * grad_stride];                                                     \
            for (int t = 0; t < taps->count; ++t) {                                                                          \
                const double value = g * (double)from[taps->offset[t]];                                                      \
                for (int d = 0; d < GRID_DIMS; ++d)                                                                          \
                    sums[d] += taps->slope[d][t] * value;                                                                    \
            }                                                                                                                \
        }                                                                                                                    \
    }
GRID_KERNELS(float, f32)
GRID_KERNELS(double, f64)

const struct grid_kernels KERNEL_TABLE(grid_kernels) = {
    .real = {[ACCUMULATE_F64] = {sample_f64, spread_f64, slopes_f64}, [ACCUMULATE_F32] = {sample_f32, spread_f32, slopes_f32}},
};
