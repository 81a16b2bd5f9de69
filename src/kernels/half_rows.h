/* Rows of f16, with the processor's own conversions where the instruction set has them.
 *
 * Invariant: bit for bit the results of base/half.h, NaN included, so that instruction sets and the ends of rows agree. */
#ifndef KERNELS_HALF_ROWS_H
#define KERNELS_HALF_ROWS_H

#include <stddef.h>
#ifdef __F16C__
#include <immintrin.h>
#endif

#include "base/half.h"
#include "kernels/isa.h"

static inline void half_f16_widen_row(float *restrict out, const uint16_t *restrict in, size_t n)
{
    size_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(out + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(in + i))));
#elif defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(in + i))));
#endif
    for (; i < n; ++i)
        out[i] = half_f16_to_f32(in[i]);
}

static inline void half_f16_narrow_row(uint16_t *restrict out, const float *restrict in, size_t n)
{
    size_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256((__m256i *)(out + i), _mm512_cvtps_ph(_mm512_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < n; ++i)
        out[i] = half_f16_from_f32(in[i]);
}

#endif
