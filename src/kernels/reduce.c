/* Reduction kernels. See reduce.h for the order of operations, which is part of the interface. */
#include "kernels/reduce.h"

#include <math.h>
#include <string.h>

#include "kernels/isa.h"
#include "kernels/math_f32.h"

typedef int64_t vector_i64 __attribute__((vector_size(VECTOR_SIZE), aligned(8), may_alias));

/* value: scalars; the same operation on vectors of V with masks of I. */
#define SCALAR_sum(a, x) ((a) + (x))
#define SCALAR_prod(a, x) ((a) * (x))
#define SCALAR_max(a, x) (((x) > (a)) | ((x) != (x)) ? (x) : (a))
#define SCALAR_min(a, x) (((x) < (a)) | ((x) != (x)) ? (x) : (a))
#define SELECT(V, I, mask, x, a) ((V)(((mask) & (I)(x)) | (~(mask) & (I)(a))))
#define VECTOR_sum(V, I, a, x) ((a) + (x))
#define VECTOR_prod(V, I, a, x) ((a) * (x))
#define VECTOR_max(V, I, a, x) SELECT(V, I, (I)((x) > (a)) | (I)((x) != (x)), x, a)
#define VECTOR_min(V, I, a, x) SELECT(V, I, (I)((x) < (a)) | (I)((x) != (x)), x, a)

/* A: value type; L: accumulators; P: vectors that hold them. */
#define FOLD_KERNELS(op, tag, A, V, I, identity)                                                            \
    static void row_##op##_##tag(void *out, const void *tile, int64_t n)                                    \
    {                                                                                                       \
        enum { L = REDUCE_LANE_BYTES / sizeof(A), P = REDUCE_LANE_BYTES / VECTOR_BYTES };                   \
        const A *x = tile;                                                                                  \
        const int64_t count = n;                                                                            \
        A lane[L];                                                                                          \
        V sums[P];                                                                                          \
        for (int l = 0; l < L; ++l)                                                                         \
            lane[l] = (identity);                                                                           \
        _Pragma("GCC unroll 16") for (int p = 0; p < P; ++p)                                                \
            sums[p] = ((const V *)(const void *)lane)[p];                                                   \
        for (; n >= L; n -= L, x += L)                                                                      \
            _Pragma("GCC unroll 16") for (int p = 0; p < P; ++p) {                                          \
                const V value = ((const V *)(const void *)x)[p];                                            \
                sums[p] = VECTOR_##op(V, I, sums[p], value);                                                \
            }                                                                                               \
        /* The rest: whole vectors, then one filled up with the identity, which changes no lane. */         \
        _Pragma("GCC unroll 16") for (int p = 0; p < P; ++p)                                                \
            if ((p + 1) * (L / P) <= n) {                                                                   \
                const V value = ((const V *)(const void *)x)[p];                                            \
                sums[p] = VECTOR_##op(V, I, sums[p], value);                                                \
            }                                                                                               \
        if (n % (L / P) != 0) {                                                                             \
            const int used = (int)(n % (L / P));                                                            \
            V value;                                                                                        \
            if (count >= L / P) { /* what is before the end, turned to the front: no way through memory */  \
                I place;                                                                                    \
                for (int l = 0; l < L / P; ++l)                                                             \
                    place[l] = l;                                                                           \
                const V last = *(const V *)(const void *)(x + n - L / P);                                   \
                const V turned = VECTOR_PICK(last, place + (L / P - used));                                 \
                value = SELECT(V, I, place < used, turned, ((const V *)(const void *)lane)[0]);             \
            } else {                                                                                        \
                memcpy(lane, x + n / (L / P) * (L / P), (size_t)used * sizeof(A));                          \
                value = ((const V *)(const void *)lane)[0];                                                 \
            }                                                                                               \
            _Pragma("GCC unroll 16") for (int p = 0; p < P; ++p)                                            \
                if (p == n / (L / P))                                                                       \
                    sums[p] = VECTOR_##op(V, I, sums[p], value);                                            \
        }                                                                                                   \
        /* Lane l takes lane l + half, with half from L / 2 down to 1: whole vectors first. */              \
        _Pragma("GCC unroll 16") for (int half = P / 2; half > 0; half /= 2)                                \
            _Pragma("GCC unroll 16") for (int p = 0; p < half; ++p)                                         \
                sums[p] = VECTOR_##op(V, I, sums[p], sums[p + half]);                                       \
        ((V *)(void *)lane)[0] = sums[0];                                                                   \
        _Pragma("GCC unroll 16") for (int half = L / P / 2; half > 0; half /= 2)                            \
            for (int l = 0; l < half; ++l)                                                                  \
                lane[l] = SCALAR_##op(lane[l], lane[l + half]);                                             \
        memcpy(out, lane, sizeof(A));                                                                       \
    }                                                                                                       \
    static void columns_##op##_##tag(void *sums_, const void *rows_, int64_t stride, int64_t count, int64_t columns) \
    {                                                                                                       \
        A *restrict sums = sums_;                                                                           \
        const A *rows = rows_;                                                                              \
        memcpy(sums, rows, (size_t)columns * sizeof(A));                                                    \
        int64_t r = 1;                                                                                      \
        for (; r + 4 <= count; r += 4) {                                                                    \
            const A *restrict w = rows + r * stride, *restrict x = w + stride;                              \
            const A *restrict y = x + stride, *restrict z = y + stride;                                     \
            for (int64_t c = 0; c < columns; ++c) {                                                         \
                const A one = SCALAR_##op(sums[c], w[c]), two = SCALAR_##op(one, x[c]);                     \
                const A three = SCALAR_##op(two, y[c]);                                                     \
                sums[c] = SCALAR_##op(three, z[c]);                                                         \
            }                                                                                               \
        }                                                                                                   \
        for (; r < count; ++r) {                                                                            \
            const A *restrict w = rows + r * stride;                                                        \
            for (int64_t c = 0; c < columns; ++c)                                                           \
                sums[c] = SCALAR_##op(sums[c], w[c]);                                                       \
        }                                                                                                   \
    }                                                                                                       \
    static void pair_##op##_##tag(void *a_, const void *b_, int64_t n)                                      \
    {                                                                                                       \
        A *restrict a = a_;                                                                                 \
        const A *restrict b = b_;                                                                           \
        for (int64_t i = 0; i < n; ++i)                                                                     \
            a[i] = SCALAR_##op(a[i], b[i]);                                                                 \
    }

FOLD_KERNELS(sum, f64, double, vector_f64, vector_i64, 0.0)
FOLD_KERNELS(sum, f32, float, vector_f32, vector_i32, 0.0f)
FOLD_KERNELS(sum, i64, int64_t, vector_i64, vector_i64, 0)
FOLD_KERNELS(prod, f64, double, vector_f64, vector_i64, 1.0)
FOLD_KERNELS(prod, f32, float, vector_f32, vector_i32, 1.0f)
FOLD_KERNELS(prod, i64, int64_t, vector_i64, vector_i64, 1)
FOLD_KERNELS(max, f64, double, vector_f64, vector_i64, -INFINITY)
FOLD_KERNELS(max, f32, float, vector_f32, vector_i32, -INFINITY)
FOLD_KERNELS(max, i64, int64_t, vector_i64, vector_i64, INT64_MIN)
FOLD_KERNELS(min, f64, double, vector_f64, vector_i64, INFINITY)
FOLD_KERNELS(min, f32, float, vector_f32, vector_i32, INFINITY)
FOLD_KERNELS(min, i64, int64_t, vector_i64, vector_i64, INT64_MAX)

/* One map: `x` is the element, `c` its center, `p` the parameter. */
#define MAP(name, tag, A, expression)                                                                    \
    static void map_##name##_##tag(void *tile_, int64_t n, double parameter, const void *center_, int step) \
    {                                                                                                    \
        A *restrict tile = tile_;                                                                        \
        const A *restrict center = center_;                                                              \
        const A p = (A)parameter;                                                                        \
        (void)p;                                                                                         \
        if (!center || step == 0) {                                                                      \
            const A c = center ? center[0] : 0;                                                          \
            (void)c;                                                                                     \
            for (int64_t i = 0; i < n; ++i) {                                                            \
                const A x = tile[i];                                                                     \
                tile[i] = (A)(expression);                                                               \
            }                                                                                            \
            return;                                                                                      \
        }                                                                                                \
        for (int64_t i = 0; i < n; ++i) {                                                                \
            const A x = tile[i], c = center[i];                                                          \
            (void)c;                                                                                     \
            tile[i] = (A)(expression);                                                                   \
        }                                                                                                \
    }

#define FLOAT_MAPS(tag, A, abs_, pow_, exp_)           \
    MAP(abs, tag, A, abs_(x))                          \
    MAP(square, tag, A, x * x)                         \
    MAP(nonzero, tag, A, x != 0)                       \
    MAP(power, tag, A, pow_(abs_(x), p))               \
    MAP(deviation, tag, A, (x - c) * (x - c))          \
    MAP(exp, tag, A, exp_(x - c))                      \
    MAP(nan_to_zero, tag, A, x == x ? x : 0)
FLOAT_MAPS(f64, double, fabs, pow, exp)
FLOAT_MAPS(f32, float, fabsf, powf, math_exp)
MAP(abs, i64, int64_t, x < 0 ? -x : x)
MAP(nonzero, i64, int64_t, x != 0)

#define FIND(tag, A)                                                               \
    static int64_t find_##tag(const void *tile, int64_t n, const void *value)      \
    {                                                                              \
        const A *x = tile;                                                         \
        A wanted;                                                                  \
        memcpy(&wanted, value, sizeof wanted);                                     \
        const int any_nan = wanted != wanted;                                      \
        int64_t i = 0;                                                             \
        for (; i + 64 <= n; i += 64) {                                             \
            int hit = 0;                                                           \
            for (int l = 0; l < 64; ++l)                                           \
                hit |= (x[i + l] == wanted) | (any_nan & (x[i + l] != x[i + l]));  \
            if (hit)                                                               \
                break;                                                             \
        }                                                                          \
        for (; i < n; ++i)                                                         \
            if (x[i] == wanted || (any_nan && x[i] != x[i]))                       \
                break;                                                             \
        return i;                                                                  \
    }
FIND(f64, double)
FIND(f32, float)
FIND(i64, int64_t)

#define ARG_COLUMNS(op, tag, A, compare)                                                                        \
    static void arg_columns_##op##_##tag(void *best_, int64_t *where_, const void *row_, int64_t position, int64_t columns) \
    {                                                                                                           \
        A *restrict best = best_;                                                                               \
        int64_t *restrict where = where_;                                                                       \
        const A *restrict row = row_;                                                                           \
        for (int64_t c = 0; c < columns; ++c) {                                                                 \
            const A x = row[c], b = best[c];                                                                    \
            const int wins = (x compare b) | ((x != x) & (b == b));                                             \
            best[c] = wins ? x : b;                                                                             \
            where[c] = wins ? position : where[c];                                                              \
        }                                                                                                       \
    }
ARG_COLUMNS(max, f64, double, >)
ARG_COLUMNS(max, f32, float, >)
ARG_COLUMNS(max, i64, int64_t, >)
ARG_COLUMNS(min, f64, double, <)
ARG_COLUMNS(min, f32, float, <)
ARG_COLUMNS(min, i64, int64_t, <)

#define BY_TYPE(function) \
    {[ACCUMULATE_F64] = function##_f64, [ACCUMULATE_F32] = function##_f32, [ACCUMULATE_I64] = function##_i64}
#define BY_FLOAT_TYPE(function) {[ACCUMULATE_F64] = function##_f64, [ACCUMULATE_F32] = function##_f32}
#define BY_FOLD(kernel)                                                                      \
    {[FOLD_sum] = BY_TYPE(kernel##_sum), [FOLD_prod] = BY_TYPE(kernel##_prod),               \
     [FOLD_max] = BY_TYPE(kernel##_max), [FOLD_min] = BY_TYPE(kernel##_min)}

const struct reduce_kernels KERNEL_TABLE(reduce_kernels) = {
    .row = BY_FOLD(row),
    .columns = BY_FOLD(columns),
    .pair = BY_FOLD(pair),
    .map = {[MAP_abs] = BY_TYPE(map_abs),
            [MAP_square] = BY_FLOAT_TYPE(map_square),
            [MAP_nonzero] = BY_TYPE(map_nonzero),
            [MAP_power] = BY_FLOAT_TYPE(map_power),
            [MAP_deviation] = BY_FLOAT_TYPE(map_deviation),
            [MAP_exp] = BY_FLOAT_TYPE(map_exp),
            [MAP_nan_to_zero] = BY_FLOAT_TYPE(map_nan_to_zero)},
    .find = BY_TYPE(find),
    .arg_columns = {[FOLD_max] = BY_TYPE(arg_columns_max), [FOLD_min] = BY_TYPE(arg_columns_min)},
};
