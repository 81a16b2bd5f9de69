/* Kernels that depend on order, on every ISA: running sums, products and extremes, sorting and selection; against plain loops. */
#include "kernel_check.h"
#include "kernels/scan.h"
#include "kernels/sort.h"

static const enum accumulate all_types[] = {ACCUMULATE_F64, ACCUMULATE_F32, ACCUMULATE_I64};

/* --- scans ------------------------------------------------------------------------------------------------------------ */

static void test_running(const struct kernel_set *set, enum scan op, enum accumulate type, int64_t n, enum test_values values)
{
    void *const tile = random_values(type, n, values), *const expected = room_for(type, n);
    double carry = 1.5, running = 1.5;
    int64_t whole_carry = 3, whole = 3;
    for (int64_t i = 0; i < n; ++i)
        if (type == ACCUMULATE_I64) {
            const uint64_t x = (uint64_t)((int64_t *)tile)[i];
            ((int64_t *)expected)[i] = whole = (int64_t)(op == SCAN_sum ? (uint64_t)whole + x : (uint64_t)whole * x);
        } else
            ((double *)expected)[i] = running = op == SCAN_sum ? running + ((double *)tile)[i] : running * ((double *)tile)[i];
    set->scan->row[op][type](tile, n, type == ACCUMULATE_I64 ? (void *)&whole_carry : (void *)&carry);
    CHECK(same_values(type, tile, expected, n), "%s: scan %d of %lld", set->isa, op, (long long)n);
    CHECK(whole_carry == whole && same_double(carry, running), "%s: the carry of scan %d of %lld", set->isa, op, (long long)n);
    guarded_end(set->isa, "a scan");
}

static int beats(enum accumulate type, int minimum, const void *data, int64_t i, int64_t best)
{
    if (type == ACCUMULATE_I64) {
        const int64_t x = ((const int64_t *)data)[i], y = ((const int64_t *)data)[best];
        return minimum ? x <= y : x >= y;
    }
    const double x = get_value(data, type, i), y = get_value(data, type, best);
    return isnan(x) || (!isnan(y) && (minimum ? x <= y : x >= y));
}

/* In two tiles, cut at `cut`. */
static void test_extremes(const struct kernel_set *set, int minimum, enum accumulate type, int64_t n, int64_t cut,
                          enum test_values values)
{
    const int64_t bytes = accumulate_bytes(type);
    char *const in = random_values(type, n, values), *const tile = copy_of(type, in, n), *const best = room_for(type, 1);
    int64_t *const positions = guarded(n, 8), where = -1, at = 0;
    set->scan->extreme[minimum][type](tile, positions, cut, 0, best, &where);
    set->scan->extreme[minimum][type](tile + cut * bytes, positions + cut, n - cut, cut, best, &where);
    for (int64_t i = 0; i < n; ++i) {
        at = beats(type, minimum, in, i, at) ? i : at;
        CHECK(positions[i] == at && same_values(type, tile + i * bytes, in + at * bytes, 1),
              "%s: running extreme %lld of %lld is at %lld, expected %lld", set->isa, (long long)i, (long long)n,
              (long long)positions[i], (long long)at);
    }
    CHECK(n == 0 ? where == -1 : where == at && same_values(type, best, in + at * bytes, 1), "%s: the last extreme", set->isa);
    guarded_end(set->isa, "running extremes");
}

/* --- sorting ---------------------------------------------------------------------------------------------------------- */

/* Does element a come before b: NaN is the largest, and equal ones keep their order. */
static int precedes(enum accumulate type, int descending, const void *data, int64_t a, int64_t b)
{
    int order;
    if (type == ACCUMULATE_I64) {
        const int64_t x = ((const int64_t *)data)[a], y = ((const int64_t *)data)[b];
        order = (x > y) - (x < y);
    } else {
        const double x = get_value(data, type, a), y = get_value(data, type, b);
        order = isnan(x) || isnan(y) ? isnan(x) - isnan(y) : (x > y) - (x < y);
    }
    order = descending ? -order : order;
    return order < 0 || (order == 0 && a < b);
}

/* positions: those of the k smallest, sorted. */
static void check_sorted(const char *isa, const char *what, enum accumulate type, int descending, const void *data, int64_t n,
                         const int64_t *positions, int64_t k)
{
    char *const taken = guarded(n, 1);
    memset(taken, 0, (size_t)n);
    for (int64_t i = 0; i < k; ++i) {
        CHECK(positions[i] >= 0 && positions[i] < n && !taken[positions[i]], "%s: %s: a position twice or none", isa, what);
        taken[positions[i]] = 1;
        CHECK(i == 0 || precedes(type, descending, data, positions[i - 1], positions[i]), "%s: %s: element %lld of %lld", isa, what,
              (long long)i, (long long)n);
    }
    for (int64_t i = 0; k > 0 && i < n; ++i)
        CHECK(taken[i] || precedes(type, descending, data, positions[k - 1], i), "%s: %s: one of the smallest is missing", isa,
              what);
}

static int compare_items(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The k first of n items, which a kernel brought to the front, in any order but for the last. */
static void check_front(const struct kernel_set *set, enum accumulate type, int descending, const void *data, int64_t n,
                        const uint64_t *items, int64_t k)
{
    uint64_t *const front = guarded(k, 8);
    int64_t *const positions = guarded(k, 8);
    memcpy(front, items, (size_t)k * 8);
    for (int64_t i = 0; i < k; ++i)
        CHECK(items[i] <= items[k - 1], "%s: the k-th smallest isn't the last of the first k", set->isa);
    qsort(front, (size_t)k, sizeof *front, compare_items);
    for (int64_t i = 0; i < k; ++i)
        positions[i] = (int64_t)(front[i] & UINT32_MAX);
    check_sorted(set->isa, "select_narrow", type, descending, data, n, positions, k);
}

static uint64_t *narrow_keys(const struct kernel_set *set, enum accumulate type, int descending, const void *data, int64_t n)
{
    uint64_t *const items = guarded(n, 8);
    if (type == ACCUMULATE_F32)
        set->sort->keys_f32(items, data, 0, n, descending);
    else
        set->sort->keys_i32(items, data, 0, n, descending);
    return items;
}

static void test_narrow(const struct kernel_set *set, enum accumulate type, int descending, int64_t n, enum test_values values)
{
    void *const data = random_values(type, n, values);
    for (int64_t i = 0; type == ACCUMULATE_I64 && i < n; ++i)
        ((int64_t *)data)[i] = (int32_t)((int64_t *)data)[i];
    uint64_t *const items = narrow_keys(set, type, descending, data, n), *const spare = guarded(n, 8);
    uint64_t *const again = narrow_keys(set, type, descending, data, n);
    int64_t *const positions = guarded(n, 8);
    set->sort->sort_narrow(items, spare, n);
    for (int64_t i = 0; i < n; ++i)
        positions[i] = (int64_t)(items[i] & UINT32_MAX);
    check_sorted(set->isa, "sort_narrow", type, descending, data, n, positions, n);
    for (int64_t k = 1; k <= n; k += 1 + n / 4) {
        uint64_t *const best = guarded(k, 8);
        set->sort->few_narrow(best, k, again, n);
        CHECK(memcmp(best, items, (size_t)k * 8) == 0, "%s: the %lld smallest of %lld", set->isa, (long long)k, (long long)n);
    }
    for (int64_t k = 1; k <= n; k += 1 + n / 3) {
        set->sort->select_narrow(again, spare, n, k);
        check_front(set, type, descending, data, n, again, k);
    }
    guarded_end(set->isa, "sorting of narrow keys");
}

static void test_wide(const struct kernel_set *set, enum accumulate type, int descending, int64_t n, enum test_values values)
{
    const void *const data = random_values(type, n, values);
    struct sort_item *const items = guarded(n, sizeof *items), *const spare = guarded(n, sizeof *items);
    struct sort_item *const again = guarded(n, sizeof *items);
    int64_t *const positions = guarded(n, 8);
    if (type == ACCUMULATE_F64)
        set->sort->keys_f64(items, data, 0, n, descending);
    else
        set->sort->keys_i64(items, data, 0, n, descending);
    memcpy(again, items, (size_t)n * sizeof *items);
    set->sort->sort_wide(items, spare, n);
    for (int64_t i = 0; i < n; ++i)
        positions[i] = (int64_t)items[i].position;
    check_sorted(set->isa, "sort_wide", type, descending, data, n, positions, n);
    for (int64_t k = 1; k <= n; k += 1 + n / 3) {
        set->sort->select_wide(again, spare, n, k);
        CHECK(again[k - 1].key == items[k - 1].key && again[k - 1].position == items[k - 1].position,
              "%s: element %lld of %lld by select_wide", set->isa, (long long)k, (long long)n);
    }
    guarded_end(set->isa, "sorting of wide keys");
}

static void test_size(const struct kernel_set *set, int64_t n, enum test_values values)
{
    for (enum scan op = 0; op < SCAN_COUNT; ++op) {
        test_running(set, op, ACCUMULATE_F64, n, values);
        test_running(set, op, ACCUMULATE_I64, n, values);
    }
    for (int turn = 0; turn < 2; ++turn) {
        for (int t = 0; t < 3; ++t)
            for (int64_t cut = 0; cut <= n; cut += 1 + n / 3)
                test_extremes(set, turn, all_types[t], n, cut, values);
        test_narrow(set, ACCUMULATE_F32, turn, n, values);
        test_narrow(set, ACCUMULATE_I64, turn, n, values);
        test_wide(set, ACCUMULATE_F64, turn, n, values);
        test_wide(set, ACCUMULATE_I64, turn, n, values);
    }
}

static void test_set(const struct kernel_set *set, const struct kernel_set *base)
{
    (void)base; /* results are unique: plain loops say what comes out */
    for (enum test_values values = VALUES_ORDINARY; values <= VALUES_EXTREME; ++values)
        for (int s = 0; s < TEST_SIZES; ++s)
            test_size(set, test_sizes[s], values);
}

int main(void) { return for_each_kernel_set(test_set); }
