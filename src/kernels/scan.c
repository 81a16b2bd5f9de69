/* Scan kernels. See scan.h. */
#include "kernels/scan.h"

#include "kernels/isa.h"

#define SCAN(op, tag, A, operator_)                                        \
    static void op##_##tag(void *tile_, int64_t n, void *carry_)           \
    {                                                                      \
        A *tile = tile_, *carry = carry_, running = *carry;                \
        for (int64_t i = 0; i < n; ++i)                                    \
            tile[i] = running = running operator_ tile[i];                 \
        *carry = running;                                                  \
    }
SCAN(sum, f64, double, +)
SCAN(sum, i64, int64_t, +)
SCAN(prod, f64, double, *)
SCAN(prod, i64, int64_t, *)

#define EXTREME(op, tag, A, beats)                                                                                     \
    static void op##_##tag(void *tile_, int64_t *positions, int64_t n, int64_t first, void *best_, int64_t *where)     \
    {                                                                                                                  \
        A *tile = tile_, best = *(A *)best_;                                                                           \
        int64_t at = *where;                                                                                           \
        for (int64_t i = 0; i < n; ++i) {                                                                              \
            const A x = tile[i];                                                                                       \
            if (at < 0 || x != x || (best == best && x beats best)) {                                                  \
                best = x;                                                                                              \
                at = first + i;                                                                                        \
            }                                                                                                          \
            tile[i] = best;                                                                                            \
            positions[i] = at;                                                                                         \
        }                                                                                                              \
        *(A *)best_ = best;                                                                                            \
        *where = at;                                                                                                   \
    }
EXTREME(max, f64, double, >=)
EXTREME(max, f32, float, >=)
EXTREME(max, i64, int64_t, >=)
EXTREME(min, f64, double, <=)
EXTREME(min, f32, float, <=)
EXTREME(min, i64, int64_t, <=)

const struct scan_kernels KERNEL_TABLE(scan_kernels) = {
    .row = {[SCAN_sum] = {[ACCUMULATE_F64] = sum_f64, [ACCUMULATE_I64] = sum_i64},
            [SCAN_prod] = {[ACCUMULATE_F64] = prod_f64, [ACCUMULATE_I64] = prod_i64}},
    .extreme = {{[ACCUMULATE_F64] = max_f64, [ACCUMULATE_F32] = max_f32, [ACCUMULATE_I64] = max_i64},
                {[ACCUMULATE_F64] = min_f64, [ACCUMULATE_F32] = min_f32, [ACCUMULATE_I64] = min_i64}},
};
