/* What tests of kernels share: memory between guards, values with edges among them, sizes around vector lengths, and comparison.
 *
 * Invariant: memory from guarded() starts at an address that is aligned for its element only, and ends where its last element ends:
 * what a kernel writes beyond shows in guarded_end(), what it reads beyond is NaN (or -1), and AddressSanitizer reports both. Each
 * test case ends with guarded_end(), which frees everything. */
#ifndef TESTS_KERNELS_KERNEL_CHECK_H
#define TESTS_KERNELS_KERNEL_CHECK_H

#include "check.h"
#include "kernels/convert.h"
#include "kernels/kernels.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

enum { GUARD_BYTES = 128, GUARD_BLOCKS = 64, GUARD_VALUE = 0xff /* of whole elements: NaN, -1 */ };

static struct {
    char *memory;
    size_t before, bytes; /* of the guard, of the elements */
} guarded_blocks[GUARD_BLOCKS];
static int guarded_count;
static uint64_t test_state = 1;

/* Room for n elements; the same value of every byte as the guards', so that what a kernel forgot to write shows, too. */
static inline void *guarded(int64_t n, size_t element)
{
    const size_t bytes = (size_t)n * element, before = GUARD_BYTES + element;
    char *const memory = aligned_alloc(64, (before + bytes + GUARD_BYTES + 63) / 64 * 64);
    if (!memory || guarded_count == GUARD_BLOCKS) {
        fprintf(stderr, "no room for another guarded block\n");
        abort();
    }
    memset(memory, GUARD_VALUE, before + bytes + GUARD_BYTES);
    ASAN_POISON_MEMORY_REGION(memory, before);
    ASAN_POISON_MEMORY_REGION(memory + before + bytes, GUARD_BYTES);
    guarded_blocks[guarded_count].memory = memory;
    guarded_blocks[guarded_count].before = before;
    guarded_blocks[guarded_count++].bytes = bytes;
    return memory + before;
}

/* Looks at all guards and frees all blocks. */
static inline void guarded_end(const char *isa, const char *what)
{
    for (; guarded_count > 0; --guarded_count) {
        char *const memory = guarded_blocks[guarded_count - 1].memory;
        const size_t before = guarded_blocks[guarded_count - 1].before, end = before + guarded_blocks[guarded_count - 1].bytes;
        int whole = 1;
        ASAN_UNPOISON_MEMORY_REGION(memory, end + GUARD_BYTES);
        for (size_t i = 0; i < end + GUARD_BYTES; i = i + 1 == before ? end : i + 1)
            whole &= (uint8_t)memory[i] == GUARD_VALUE;
        CHECK(whole, "%s: %s wrote beyond its memory", isa, what);
        free(memory);
    }
}

/* Around the lengths of vectors, of 64 partial sums, and of the blocks that kernels work in. */
static const int64_t test_sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 300};
enum { TEST_SIZES = sizeof test_sizes / sizeof test_sizes[0] };

/* How often among ordinary numbers of [-4, 4) there are edges: never, now and then (but none that is too large to add), often. */
enum test_values { VALUES_ORDINARY, VALUES_SPECIAL, VALUES_EXTREME };

static inline double test_edge(enum accumulate type, enum test_values values)
{
    static const double special[] = {0, -0.0, INFINITY, -INFINITY, NAN, 1, -1, 1e-40, -1e-42, 1e-30};
    static const double extreme[2][6] = {{1.79e308, -1.79e308, 2.3e-308, -5e-324, 1e-310, 1e200},
                                         {3.4e38, -3.4e38, 1.2e-38, -1e-45, 1e-39, 1e30}};
    const uint64_t dice = check_random(&test_state) % (values == VALUES_EXTREME ? 16 : 10);
    return dice < 10 ? special[dice] : extreme[type == ACCUMULATE_F32][dice - 10];
}

static inline double test_value(enum accumulate type, enum test_values values)
{
    const uint64_t every = values == VALUES_EXTREME ? 3 : 7;
    if (values != VALUES_ORDINARY && check_random(&test_state) % every == 0)
        return test_edge(type, values);
    return 4 * check_random_real(&test_state);
}

static inline void put_value(void *data, enum accumulate type, int64_t i, double value)
{
    if (type == ACCUMULATE_F32)
        ((float *)data)[i] = (float)value;
    else if (type == ACCUMULATE_F64)
        ((double *)data)[i] = value;
    else
        ((int64_t *)data)[i] = (int64_t)value;
}

static inline double get_value(const void *data, enum accumulate type, int64_t i)
{
    return type == ACCUMULATE_F32   ? (double)((const float *)data)[i]
           : type == ACCUMULATE_F64 ? ((const double *)data)[i]
                                    : (double)((const int64_t *)data)[i];
}

static inline void fill_values(void *data, enum accumulate type, int64_t n, enum test_values values)
{
    for (int64_t i = 0; i < n; ++i)
        if (type != ACCUMULATE_I64)
            put_value(data, type, i, test_value(type, values));
        else if (values == VALUES_EXTREME && check_random(&test_state) % 4 == 0)
            ((int64_t *)data)[i] = (int64_t)check_random(&test_state);
        else
            ((int64_t *)data)[i] = (int64_t)(check_random(&test_state) % 201) - 100;
}

/* Guarded and filled. */
static inline void *random_values(enum accumulate type, int64_t n, enum test_values values)
{
    void *const data = guarded(n, (size_t)accumulate_bytes(type));
    fill_values(data, type, n, values);
    return data;
}

/* Guarded and not filled: for results. */
static inline void *room_for(enum accumulate type, int64_t n) { return guarded(n, (size_t)accumulate_bytes(type)); }

static inline void *copy_of(enum accumulate type, const void *data, int64_t n)
{
    void *const copy = room_for(type, n);
    memcpy(copy, data, (size_t)(n * accumulate_bytes(type)));
    return copy;
}

/* Equal bits, but for which of several NaN it is. */
static inline int same_values(enum accumulate type, const void *a, const void *b, int64_t n)
{
    const int64_t bytes = accumulate_bytes(type);
    for (int64_t i = 0; i < n; ++i)
        if (memcmp((const char *)a + i * bytes, (const char *)b + i * bytes, (size_t)bytes) != 0 &&
            !(type != ACCUMULATE_I64 && isnan(get_value(a, type, i)) && isnan(get_value(b, type, i))))
            return 0;
    return 1;
}

static inline int same_double(double a, double b) { return same_values(ACCUMULATE_F64, &a, &b, 1); }

/* A few units of the last place of a number near 1. */
static inline double tolerance_of(enum accumulate type) { return type == ACCUMULATE_F32 ? 2e-6 : 4e-15; }

/* Element i of a result against what was computed in double; `what` names the kernel. */
#define CHECK_ELEMENT(isa, what, type, data, i, expected, tolerance)                                                          \
    do {                                                                                                                        \
        const double element_value = get_value(data, type, i), element_expected = (expected);                                  \
        CHECK(check_near(element_value, element_expected, (tolerance)), "%s: %s %s: element %lld is %.9g, expected %.9g", isa, \
              what, (type) == ACCUMULATE_F32 ? "f32" : (type) == ACCUMULATE_F64 ? "f64" : "i64", (long long)(i), element_value, \
              element_expected);                                                                                               \
    } while (0)

/* Calls test(set, baseline) for each instruction set of this machine. */
static inline int for_each_kernel_set(void (*test)(const struct kernel_set *set, const struct kernel_set *base))
{
    for (int i = 0; kernel_set_at(i); ++i)
        if (kernel_set_runnable(kernel_set_at(i)->isa))
            test(kernel_set_at(i), kernel_set_at(0));
    return check_result();
}

static const enum accumulate float_types[] = {ACCUMULATE_F64, ACCUMULATE_F32};

#endif
