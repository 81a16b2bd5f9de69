/* Sort kernels: a radix sort by bytes for long lines, insertion for short ones, quickselect for the first k. See sort.h. */
#include "kernels/sort.h"

#include <string.h>

#include "base/half.h"
#include "kernels/isa.h"

enum { SHORT = 40, DIGITS = 256 };

static void keys_f32(uint64_t *items, const float *tile, int64_t first, int64_t n, int descending)
{
    const uint32_t flip = descending ? UINT32_MAX : 0;
    for (int64_t i = 0; i < n; ++i) {
        const float x = tile[i] + 0.0f; /* -0 becomes 0 */
        const uint32_t bits = float_bits(x);
        const uint32_t ordered = bits ^ ((uint32_t)((int32_t)bits >> 31) | 0x80000000u);
        const uint32_t key = (x != x ? UINT32_MAX : ordered) ^ flip;
        items[i] = (uint64_t)key << 32 | (uint64_t)(first + i);
    }
}

static void keys_i32(uint64_t *items, const int64_t *tile, int64_t first, int64_t n, int descending)
{
    const uint32_t flip = descending ? UINT32_MAX : 0;
    for (int64_t i = 0; i < n; ++i)
        items[i] = (uint64_t)(((uint32_t)tile[i] ^ 0x80000000u) ^ flip) << 32 | (uint64_t)(first + i);
}

static void keys_f64(struct sort_item *items, const double *tile, int64_t first, int64_t n, int descending)
{
    const uint64_t flip = descending ? UINT64_MAX : 0;
    for (int64_t i = 0; i < n; ++i) {
        const double x = tile[i] + 0.0;
        uint64_t bits;
        memcpy(&bits, &x, sizeof bits);
        const uint64_t ordered = bits ^ ((uint64_t)((int64_t)bits >> 63) | 0x8000000000000000u);
        items[i] = (struct sort_item){(x != x ? UINT64_MAX : ordered) ^ flip, (uint64_t)(first + i)};
    }
}

static void keys_i64(struct sort_item *items, const int64_t *tile, int64_t first, int64_t n, int descending)
{
    const uint64_t flip = descending ? UINT64_MAX : 0;
    for (int64_t i = 0; i < n; ++i)
        items[i] = (struct sort_item){((uint64_t)tile[i] ^ 0x8000000000000000u) ^ flip, (uint64_t)(first + i)};
}

#define NARROW_LESS(a, b) ((a) < (b))
#define WIDE_LESS(a, b) ((a).key < (b).key || ((a).key == (b).key && (a).position < (b).position))
/* Only keys are sorted by digits: the positions are in order already, and radix passes keep them so. */
#define NARROW_DIGIT(item, pass) ((item) >> (32 + 8 * (pass)) & 255)
#define WIDE_DIGIT(item, pass) ((item).key >> (8 * (pass)) & 255)

#define SORTS(tag, T, LESS, DIGIT, passes)                                                                  \
    static void insertion_##tag(T *items, int64_t n)                                                        \
    {                                                                                                       \
        for (int64_t i = 1; i < n; ++i) {                                                                   \
            const T item = items[i];                                                                        \
            int64_t k = i;                                                                                  \
            for (; k > 0 && LESS(item, items[k - 1]); --k)                                                  \
                items[k] = items[k - 1];                                                                    \
            items[k] = item;                                                                                \
        }                                                                                                   \
    }                                                                                                       \
    static void sort_##tag(T *items, T *spare, int64_t n)                                                   \
    {                                                                                                       \
        if (n <= SHORT) {                                                                                   \
            insertion_##tag(items, n);                                                                      \
            return;                                                                                         \
        }                                                                                                   \
        T *from = items, *to = spare;                                                                       \
        int64_t counts[passes][DIGITS] = {{0}};                                                             \
        for (int64_t i = 0; i < n; ++i)                                                                     \
            for (int pass = 0; pass < passes; ++pass)                                                       \
                ++counts[pass][DIGIT(items[i], pass)];                                                      \
        for (int pass = 0; pass < passes; ++pass) {                                                         \
            int64_t *const places = counts[pass];                                                           \
            if (places[DIGIT(items[0], pass)] == n)                                                         \
                continue; /* all have the same digit here */                                                \
            for (int64_t d = 0, place = 0; d < DIGITS; ++d) {                                               \
                const int64_t count = places[d];                                                            \
                places[d] = place;                                                                          \
                place += count;                                                                             \
            }                                                                                               \
            for (int64_t i = 0; i < n; ++i)                                                                 \
                to[places[DIGIT(from[i], pass)]++] = from[i];                                               \
            T *const swap = from;                                                                           \
            from = to;                                                                                      \
            to = swap;                                                                                      \
        }                                                                                                   \
        if (from != items)                                                                                  \
            memcpy(items, from, (size_t)n * sizeof(T));                                                     \
    }                                                                                                       \
    static T median_##tag(T a, T b, T c)                                                                    \
    {                                                                                                       \
        if (LESS(b, a)) {                                                                                   \
            const T swap = a;                                                                               \
            a = b;                                                                                          \
            b = swap;                                                                                       \
        }                                                                                                   \
        return LESS(c, a) ? a : LESS(c, b) ? c : b;                                                         \
    }                                                                                                       \
    static void select_##tag(T *items, T *spare, int64_t n, int64_t k)                                      \
    {                                                                                                       \
        int64_t low = 0, high = n; /* the k-th smallest is in [low, high) */                                \
        for (int round = 0; high - low > SHORT; ++round) {                                                  \
            if (round == 60) { /* hostile order; positions are mixed by now, so sort by comparison of all */ \
                heap_##tag(items + low, high - low);                                                        \
                return;                                                                                     \
            }                                                                                               \
            const T pivot = median_##tag(items[low], items[low + (high - low) / 2], items[high - 1]);       \
            int64_t i = low - 1, j = high;                                                                  \
            for (;;) {                                                                                      \
                do                                                                                          \
                    ++i;                                                                                    \
                while (LESS(items[i], pivot));                                                              \
                do                                                                                          \
                    --j;                                                                                    \
                while (LESS(pivot, items[j]));                                                              \
                if (i >= j)                                                                                 \
                    break;                                                                                  \
                const T swap = items[i];                                                                    \
                items[i] = items[j];                                                                        \
                items[j] = swap;                                                                            \
            }                                                                                               \
            if (k <= j + 1)                                                                                 \
                high = j + 1;                                                                               \
            else                                                                                            \
                low = j + 1;                                                                                \
        }                                                                                                   \
        insertion_##tag(items + low, high - low);                                                           \
    }

#define HEAP(tag, T, LESS)                                                          \
    static void sink_##tag(T *items, int64_t root, int64_t n)                       \
    {                                                                               \
        for (int64_t child; (child = 2 * root + 1) < n; root = child) {             \
            if (child + 1 < n && LESS(items[child], items[child + 1]))              \
                ++child;                                                            \
            if (!LESS(items[root], items[child]))                                   \
                return;                                                             \
            const T swap = items[root];                                             \
            items[root] = items[child];                                             \
            items[child] = swap;                                                    \
        }                                                                           \
    }                                                                               \
    static void heap_##tag(T *items, int64_t n)                                     \
    {                                                                               \
        for (int64_t i = n / 2 - 1; i >= 0; --i)                                    \
            sink_##tag(items, i, n);                                                \
        for (int64_t i = n - 1; i > 0; --i) {                                       \
            const T swap = items[0];                                                \
            items[0] = items[i];                                                    \
            items[i] = swap;                                                        \
            sink_##tag(items, 0, i);                                                \
        }                                                                           \
    }

HEAP(narrow, uint64_t, NARROW_LESS)
HEAP(wide, struct sort_item, WIDE_LESS)
SORTS(narrow, uint64_t, NARROW_LESS, NARROW_DIGIT, 4)
SORTS(wide, struct sort_item, WIDE_LESS, WIDE_DIGIT, 8)

static void few_narrow(uint64_t *best, int64_t k, const uint64_t *items, int64_t n)
{
    enum { BLOCK = 64 };
    int64_t kept = 0;
    uint64_t worst = UINT64_MAX;
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t past = n - i < BLOCK ? n : i + BLOCK;
        uint64_t hit = past - i < BLOCK;
        if (past - i == BLOCK)
            for (int l = 0; l < BLOCK; ++l)
                hit |= (uint64_t)(items[i + l] < worst);
        for (int64_t c = i; hit && c < past; ++c) {
            if (items[c] >= worst)
                continue;
            int64_t place = kept < k ? kept++ : k - 1;
            for (; place > 0 && best[place - 1] > items[c]; --place)
                best[place] = best[place - 1];
            best[place] = items[c];
            worst = kept < k ? UINT64_MAX : best[k - 1];
        }
    }
}

const struct sort_kernels KERNEL_TABLE(sort_kernels) = {
    .keys_f32 = keys_f32,
    .keys_i32 = keys_i32,
    .keys_f64 = keys_f64,
    .keys_i64 = keys_i64,
    .sort_narrow = sort_narrow,
    .sort_wide = sort_wide,
    .few_narrow = few_narrow,
    .select_narrow = select_narrow,
    .select_wide = select_wide,
};
