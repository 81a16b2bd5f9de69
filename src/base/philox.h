/* Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"): 128 random bits from (key, counter).
 *
 * Invariant: a pure function, so element i's numbers don't depend on who computes them or in what order. Counter layout as
 * curand's: the low 64 bits count calls, the high 64 bits are the subsequence (the virtual thread); the key is the seed. */
#ifndef BASE_PHILOX_H
#define BASE_PHILOX_H

#include <stdint.h>

struct philox_block {
    uint32_t word[4];
};

static inline struct philox_block philox(uint64_t seed, uint64_t subsequence, uint64_t counter)
{
    uint32_t x0 = (uint32_t)counter, x1 = (uint32_t)(counter >> 32);
    uint32_t x2 = (uint32_t)subsequence, x3 = (uint32_t)(subsequence >> 32);
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; ++round) {
        const uint64_t p0 = (uint64_t)x0 * 0xD2511F53u, p1 = (uint64_t)x2 * 0xCD9E8D57u;
        const uint32_t y0 = (uint32_t)(p1 >> 32) ^ x1 ^ k0, y2 = (uint32_t)(p0 >> 32) ^ x3 ^ k1;
        x1 = (uint32_t)p1;
        x3 = (uint32_t)p0;
        x0 = y0;
        x2 = y2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return (struct philox_block){{x0, x1, x2, x3}};
}

/* The virtual grid that elements are dealt to, as torch's CUDA kernels deal them: T threads, element t + k*T takes value k of
 * thread t. One call of a thread gives PHILOX_UNROLL 32-bit values (half as many 64-bit ones). */
enum { PHILOX_BLOCK = 256, PHILOX_MAX_BLOCKS = 108 * 8, PHILOX_UNROLL = 4 };

static inline int64_t philox_threads(int64_t count)
{
    const int64_t blocks = (count + PHILOX_BLOCK - 1) / PHILOX_BLOCK;
    return (blocks < PHILOX_MAX_BLOCKS ? blocks : PHILOX_MAX_BLOCKS) * PHILOX_BLOCK;
}

/* By how much a generator's offset must grow after an operator that drew `count` values, whatever their width: the offset
 * counts 32-bit values of one thread in steps of 4 (one philox call). Callers of the aclnn random operators (which get
 * seed and offset as arguments) use this same formula:
 *     T = min(ceil(count / 256), 864) * 256;   increment = (ceil(count / (T * 2))) * 4      (0 for count == 0)
 * It is sized for the operators that use 64 bits a value (two values a call), which is at most twice what the others need. */
static inline uint64_t random_offset_increment(int64_t count)
{
    if (count <= 0)
        return 0;
    const int64_t a_call = philox_threads(count) * (PHILOX_UNROLL / 2);
    return (uint64_t)((count - 1) / a_call + 1) * 4;
}

#endif
