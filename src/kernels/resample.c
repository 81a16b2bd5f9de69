/* Resampling kernels. Compiled once per ISA. */
#include "kernels/resample.h"

#include "kernels/isa.h"

typedef struct {
    uint64_t half[2];
} element_16;

#define PASS(tag, type)                                                                                                    \
    static void line_##tag(const type *in, type *out, const struct resample_table *t)                                      \
    {                                                                                                                      \
        for (int64_t o = 0; o < t->out; ++o) {                                                                             \
            type sum = 0;                                                                                                  \
            for (int32_t e = t->begin[o]; e < t->begin[o + 1]; ++e)                                                        \
                sum += (type)t->weight[e] * in[t->index[e]];                                                               \
            out[o] = sum;                                                                                                  \
        }                                                                                                                  \
    }                                                                                                                      \
    static void pass_##tag(const void *in_, void *out_, int64_t outer, int64_t inner, const struct resample_table *t)      \
    {                                                                                                                      \
        const type *in = in_;                                                                                              \
        type *out = out_;                                                                                                  \
        for (int64_t u = 0; u < outer; ++u, in += t->in * inner, out += t->out * inner) {                                  \
            if (inner == 1) {                                                                                              \
                line_##tag(in, out, t);                                                                                    \
                continue;                                                                                                  \
            }                                                                                                              \
            for (int64_t o = 0; o < t->out; ++o) {                                                                         \
                type *const to = out + o * inner;                                                                          \
                for (int64_t i = 0; i < inner; ++i)                                                                        \
                    to[i] = 0;                                                                                             \
                for (int32_t e = t->begin[o]; e < t->begin[o + 1]; ++e) {                                                  \
                    const type weight = (type)t->weight[e], *const from = in + t->index[e] * inner;                        \
                    INDEPENDENT_ITERATIONS                                                                                 \
                    for (int64_t i = 0; i < inner; ++i)                                                                    \
                        to[i] += weight * from[i];                                                                         \
                }                                                                                                          \
            }                                                                                                              \
        }                                                                                                                  \
    }
PASS(f64, double)
PASS(f32, float)

#define GATHER(bytes, type)                                                                                                \
    static void gather_##bytes(void *out, int64_t out_stride, const void *in, int64_t in_stride, const int32_t *index,     \
                               int64_t n)                                                                                  \
    {                                                                                                                      \
        type *const to = out;                                                                                              \
        const type *const from = in;                                                                                       \
        if (out_stride == 1 && in_stride == 1) {                                                                           \
            for (int64_t i = 0; i < n; ++i)                                                                                \
                to[i] = from[index[i]];                                                                                    \
            return;                                                                                                        \
        }                                                                                                                  \
        for (int64_t i = 0; i < n; ++i)                                                                                    \
            to[i * out_stride] = from[index[i] * in_stride];                                                               \
    }
GATHER(1, uint8_t)
GATHER(2, uint16_t)
GATHER(4, uint32_t)
GATHER(8, uint64_t)
GATHER(16, element_16)

const struct resample_kernels KERNEL_TABLE(resample_kernels) = {
    .pass = {[ACCUMULATE_F64] = pass_f64, [ACCUMULATE_F32] = pass_f32},
    .gather = {gather_1, gather_2, gather_4, gather_8, gather_16},
};
