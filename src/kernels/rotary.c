/* Rotary position embedding kernels. Compiled once per ISA. */
#include "kernels/rotary.h"

#include "kernels/isa.h"

#define ROTARY(tag, type)                                                                                                  \
    static void turn_##tag(const struct rotary_table *t, const void *x_, const void *cosine_, const void *sine_, void *out_) \
    {                                                                                                                      \
        const type *const x = x_, *const cosine = cosine_, *const sine = sine_;                                            \
        type *const out = out_;                                                                                            \
        for (int64_t j = 0; j < t->width; ++j)                                                                             \
            out[j] = x[t->source[j]] * cosine[j] + (type)t->sign[j] * x[t->partner[j]] * sine[j];                          \
    }                                                                                                                      \
    static void turn_back_##tag(const struct rotary_table *t, const void *dy_, const void *cosine_, const void *sine_,     \
                                void *dx_)                                                                                 \
    {                                                                                                                      \
        const type *const dy = dy_, *const cosine = cosine_, *const sine = sine_;                                          \
        type *const dx = dx_;                                                                                              \
        for (int64_t j = 0; j < t->width; ++j)                                                                             \
            dx[t->source[j]] = dy[j] * cosine[j];                                                                          \
        for (int64_t j = 0; j < t->width; ++j)                                                                             \
            dx[t->partner[j]] += (type)t->sign[j] * dy[j] * sine[j];                                                       \
    }                                                                                                                      \
    static void angles_##tag(const struct rotary_table *t, const void *dy_, const void *x_, double *dcosine, double *dsine) \
    {                                                                                                                      \
        const type *const dy = dy_, *const x = x_;                                                                         \
        for (int64_t j = 0; j < t->width; ++j) {                                                                           \
            dcosine[j] += (double)(dy[j] * x[t->source[j]]);                                                               \
            dsine[j] += (double)((type)t->sign[j] * dy[j] * x[t->partner[j]]);                                             \
        }                                                                                                                  \
    }
ROTARY(f64, double)
ROTARY(f32, float)

const struct rotary_kernels KERNEL_TABLE(rotary_kernels) = {
    .real = {[ACCUMULATE_F64] = {turn_f64, turn_back_f64, angles_f64}, [ACCUMULATE_F32] = {turn_f32, turn_back_f32, angles_f32}},
};
