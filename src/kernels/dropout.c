/* Dropout kernels. Compiled once per ISA. */
#include "kernels/dropout.h"

#include "base/philox.h"
#include "kernels/isa.h"

/* The philox blocks [first, first + DROPOUT_BLOCK / 4), as one loop of 32-bit lanes that vectorises. */
static void random_words(const struct dropout_mask *m, uint64_t first, uint32_t *restrict words)
{
    INDEPENDENT_ITERATIONS
    for (uint32_t i = 0; i < DROPOUT_BLOCK / 4; ++i) {
        uint32_t x0 = (uint32_t)m->counter, x1 = (uint32_t)(m->counter >> 32);
        uint32_t x2 = (uint32_t)first + i, x3 = (uint32_t)(first >> 32); /* first is a multiple of the count: no carry */
        uint32_t k0 = (uint32_t)m->seed, k1 = (uint32_t)(m->seed >> 32);
#pragma GCC unroll 10
        for (int round = 0; round < 10; ++round) {
            const uint64_t p0 = (uint64_t)x0 * 0xD2511F53u, p1 = (uint64_t)x2 * 0xCD9E8D57u;
            x0 = (uint32_t)(p1 >> 32) ^ x1 ^ k0;
            x2 = (uint32_t)(p0 >> 32) ^ x3 ^ k1;
            x1 = (uint32_t)p1;
            x3 = (uint32_t)p0;
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        words[4 * i] = x0;
        words[4 * i + 1] = x1;
        words[4 * i + 2] = x2;
        words[4 * i + 3] = x3;
    }
}

static void bytes(const struct dropout_mask *m, int64_t first, int64_t n, uint8_t *out)
{
    for (int64_t block = 0; block < n; block += DROPOUT_BLOCK) {
        uint32_t words[DROPOUT_BLOCK];
        random_words(m, (uint64_t)(first + block) / 4, words);
        const int64_t count = n - block < DROPOUT_BLOCK ? n - block : DROPOUT_BLOCK;
        for (int64_t i = 0; i < count; ++i)
            out[block + i] = words[i] >= m->threshold;
    }
}

static void bits(const struct dropout_mask *m, int64_t first, int64_t n, uint8_t *out)
{
    for (int64_t block = 0; block < n; block += DROPOUT_BLOCK) {
        uint8_t kept[DROPOUT_BLOCK] = {0};
        bytes(m, first + block, n - block < DROPOUT_BLOCK ? n - block : DROPOUT_BLOCK, kept);
        const int64_t whole = n - block < DROPOUT_BLOCK ? (n - block + 7) / 8 : DROPOUT_BLOCK / 8;
        for (int64_t i = 0; i < whole; ++i) {
            const uint8_t *const k = kept + 8 * i;
            out[block / 8 + i] =
                (uint8_t)(k[0] | k[1] << 1 | k[2] << 2 | k[3] << 3 | k[4] << 4 | k[5] << 5 | k[6] << 6 | k[7] << 7);
        }
    }
}

#define APPLY(tag, REAL)                                                                                            \
    static void apply_bits_##tag(const void *x_, const uint8_t *mask, double scale_, void *out_, int64_t n)         \
    {                                                                                                               \
        const REAL *const x = x_, scale = (REAL)scale_;                                                             \
        REAL *const out = out_;                                                                                     \
        for (int64_t i = 0; i < n / 8; ++i)                                                                         \
            for (int b = 0; b < 8; ++b)                                                                             \
                out[8 * i + b] = x[8 * i + b] * (mask[i] & 1 << b ? scale : 0);                                     \
        for (int64_t i = n / 8 * 8; i < n; ++i)                                                                     \
            out[i] = x[i] * (mask[i / 8] & 1 << i % 8 ? scale : 0);                                                 \
    }                                                                                                               \
    static void apply_bytes_##tag(const void *x_, const uint8_t *mask, double scale_, void *out_, int64_t n)        \
    {                                                                                                               \
        const REAL *const x = x_, scale = (REAL)scale_;                                                             \
        REAL *const out = out_;                                                                                     \
        for (int64_t i = 0; i < n; ++i)                                                                             \
            out[i] = x[i] * (mask[i] ? scale : 0);                                                                  \
    }
APPLY(f64, double)
APPLY(f32, float)

const struct dropout_kernels KERNEL_TABLE(dropout_kernels) = {
    .bits = bits,
    .bytes = bytes,
    .apply_bits = {[ACCUMULATE_F64] = apply_bits_f64, [ACCUMULATE_F32] = apply_bits_f32},
    .apply_bytes = {[ACCUMULATE_F64] = apply_bytes_f64, [ACCUMULATE_F32] = apply_bytes_f32},
};
