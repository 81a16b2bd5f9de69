/* Matrix product kernels of every ISA: values against sums in double, and the same bits however the result is cut into tiles. */
#include "base/half.h"
#include "check.h"
#include "kernels/gemm.h"
#include "kernels/kernels.h"

static uint64_t seed = 1;

static void run_cut(const struct gemm_kernels *k, const struct gemm_problem *p, int64_t rows, int64_t columns, void *scratch)
{
    for (int64_t i = 0; i < p->rows; i += rows)
        for (int64_t j = 0; j < p->columns; j += columns) {
            const struct gemm_tile tile = {i, p->rows - i < rows ? p->rows - i : rows, j,
                                           p->columns - j < columns ? p->columns - j : columns};
            k->tile[p->out_dtype](p, &tile, scratch);
        }
}

/* dtype: of a and b; sums are f32. */
static void test_shape(const struct gemm_kernels *k, enum dtype dtype, int64_t m, int64_t n, int64_t depth)
{
    const size_t bytes = dtype_bytes(dtype);
    void *const a = malloc((size_t)(m * depth) * bytes + 1), *const b = malloc((size_t)(depth * n) * bytes + 1);
    double *const wide_a = malloc((size_t)(m * depth + 1) * 8), *const wide_b = malloc((size_t)(depth * n + 1) * 8);
    for (int side = 0; side < 2; ++side)
        for (int64_t i = 0; i < (side ? depth * n : m * depth); ++i) {
            const float value = (float)check_random_real(&seed);
            double *const wide = side ? wide_b : wide_a;
            if (dtype == DTYPE_F32) {
                ((float *)(side ? b : a))[i] = value;
                wide[i] = value;
            } else {
                const uint16_t half = dtype == DTYPE_F16 ? half_f16_from_f32(value) : half_bf16_from_f32(value);
                ((uint16_t *)(side ? b : a))[i] = half;
                wide[i] = dtype == DTYPE_F16 ? half_f16_to_f32(half) : half_bf16_to_f32(half);
            }
        }
    float *const whole = malloc((size_t)(m * n) * 4), *const cut = malloc((size_t)(m * n) * 4), addend[1] = {0.25f};
    void *const scratch = aligned_alloc(64, (k->scratch_bytes + 63) / 64 * 64);
    struct gemm_problem p = {.rows = m,
                             .columns = n,
                             .depth = depth,
                             .a = {a, depth, 1, (uint8_t)dtype},
                             .b = {b, n, 1, (uint8_t)dtype},
                             .addend = {addend, 0, 0, DTYPE_F32},
                             .alpha = 1.5,
                             .beta = 2,
                             .out = whole,
                             .out_row_stride = n,
                             .out_column_stride = 1,
                             .out_dtype = DTYPE_F32};
    run_cut(k, &p, k->tile_rows, k->tile_columns, scratch);
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (int64_t q = 0; q < depth; ++q)
                sum += wide_a[i * depth + q] * wide_b[q * n + j];
            CHECK_NEAR(whole[i * n + j], 1.5 * sum + 0.5, 4e-6 * (1 + (double)depth / 64));
        }
    p.out = cut;
    run_cut(k, &p, 5, k->column_unit, scratch);
    CHECK(memcmp(whole, cut, (size_t)(m * n) * 4) == 0, "%lld x %lld x %lld differs by its tiles", (long long)m, (long long)n,
          (long long)depth);
    p.aside = true;
    run_cut(k, &p, k->tile_rows, k->tile_columns, scratch);
    CHECK(memcmp(whole, cut, (size_t)(m * n) * 4) == 0, "%lld x %lld x %lld differs when summed aside", (long long)m, (long long)n,
          (long long)depth);
    void *const all[] = {a, b, wide_a, wide_b, whole, cut, scratch};
    for (int i = 0; i < 7; ++i)
        free(all[i]);
}

static int64_t small(int64_t i, int64_t k) { return (i * 7 + k * 3) % 5 - 2; }

static void put(void *memory, enum dtype dtype, int64_t at, int64_t value)
{
    switch (dtype) {
    case DTYPE_F64: ((double *)memory)[at] = (double)value; break;
    case DTYPE_F32: ((float *)memory)[at] = (float)value; break;
    case DTYPE_I64: ((int64_t *)memory)[at] = value; break;
    case DTYPE_I32: ((int32_t *)memory)[at] = (int32_t)value; break;
    case DTYPE_I16: ((int16_t *)memory)[at] = (int16_t)value; break;
    default: ((int8_t *)memory)[at] = (int8_t)value; break; /* i8, u8 */
    }
}

/* Memory of a product with an addend, and the problem over it: row-major without gaps, or with a and b turned. */
struct small_product {
    char *a, *b, *addend, *out, *expected;
    void *scratch;
    struct gemm_problem problem;
};

static struct small_product make_product(const struct gemm_kernels *k, enum dtype dtype, int64_t m, int64_t n, int64_t depth,
                                         int turned)
{
    const size_t bytes = dtype_bytes(dtype), results = (size_t)(m * n);
    struct small_product s = {.a = calloc((size_t)(m * depth + 1), bytes),
                              .b = calloc((size_t)(depth * n + 1), bytes),
                              .addend = calloc(results, bytes),
                              .out = malloc(results * bytes),
                              .expected = malloc(results * bytes),
                              .scratch = aligned_alloc(64, (k->scratch_bytes + 63) / 64 * 64)};
    s.problem = (struct gemm_problem){.rows = m,
                                      .columns = n,
                                      .depth = depth,
                                      .a = {s.a, turned ? 1 : depth, turned ? m : 1, (uint8_t)dtype},
                                      .b = {s.b, turned ? 1 : n, turned ? depth : 1, (uint8_t)dtype},
                                      .addend = {s.addend, n, 1, (uint8_t)dtype},
                                      .out = s.out,
                                      .out_row_stride = n,
                                      .out_column_stride = 1,
                                      .out_dtype = (uint8_t)dtype};
    return s;
}

static void free_product(const struct small_product *s)
{
    void *const all[] = {s->a, s->b, s->addend, s->out, s->expected, s->scratch};
    for (int i = 0; i < 6; ++i)
        free(all[i]);
}

/* Small integers, so that every type is exact (u8 and i8 modulo 256). In both orders of a's and b's dimensions; a vector by the
 * vector kernel, too, where there is one. */
static void test_exact(const struct gemm_kernels *k, enum dtype dtype, int64_t m, int64_t n, int64_t depth, int turned)
{
    const struct small_product s = make_product(k, dtype, m, n, depth, turned);
    for (int64_t q = 0; q < depth; ++q) {
        for (int64_t i = 0; i < m; ++i)
            put(s.a, dtype, turned ? q * m + i : i * depth + q, small(i, q));
        for (int64_t j = 0; j < n; ++j)
            put(s.b, dtype, turned ? j * depth + q : q * n + j, small(j, q + 1));
    }
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
            int64_t sum = 0;
            for (int64_t q = 0; q < depth; ++q)
                sum += small(i, q) * small(j, q + 1);
            put(s.addend, dtype, i * n + j, small(i, j));
            put(s.expected, dtype, i * n + j, 3 * sum - 2 * small(i, j));
        }
    struct gemm_problem p = s.problem;
    p.alpha = 3;
    p.beta = -2;
    p.alpha_integer = 3;
    p.beta_integer = -2;
    run_cut(k, &p, k->tile_rows, k->tile_columns, s.scratch);
    CHECK(memcmp(s.out, s.expected, (size_t)(m * n) * dtype_bytes(dtype)) == 0, "%s %lld x %lld x %lld", dtype_name(dtype),
          (long long)m, (long long)n, (long long)depth);
    if (m == 1 && k->vector[dtype]) {
        memset(s.out, 0x5a, (size_t)n * dtype_bytes(dtype));
        for (int64_t j = 0; j < n; j += k->tile_columns) {
            const struct gemm_tile tile = {0, 1, j, n - j < k->tile_columns ? n - j : k->tile_columns};
            k->vector[dtype](&p, &tile, s.scratch);
        }
        CHECK(memcmp(s.out, s.expected, (size_t)n * dtype_bytes(dtype)) == 0, "vector of %s x %lld x %lld", dtype_name(dtype),
              (long long)n, (long long)depth);
    }
    free_product(&s);
}

static complex64_pair small_pair(int64_t i, int64_t k)
{
    return (complex64_pair){(double)small(i, k), (double)small(k + 1, 2 * i)};
}

static void put_pair(void *memory, enum dtype dtype, int64_t at, complex64_pair value)
{
    if (dtype == DTYPE_C128)
        ((complex64_pair *)memory)[at] = value;
    else
        ((complex32_pair *)memory)[at] = (complex32_pair){(float)value.re, (float)value.im};
}

static complex64_pair times(complex64_pair x, complex64_pair y)
{
    return (complex64_pair){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}

/* Small whole parts, so that sums are exact: out = (2 + i) a b + (1 - 3 i) addend. */
static void test_complex(const struct gemm_kernels *k, enum dtype dtype, int64_t m, int64_t n, int64_t depth)
{
    const struct small_product s = make_product(k, dtype, m, n, depth, 0);
    for (int64_t q = 0; q < depth; ++q) {
        for (int64_t i = 0; i < m; ++i)
            put_pair(s.a, dtype, i * depth + q, small_pair(i, q));
        for (int64_t j = 0; j < n; ++j)
            put_pair(s.b, dtype, q * n + j, small_pair(j, q + 1));
    }
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
            complex64_pair sum = {0, 0};
            for (int64_t q = 0; q < depth; ++q) {
                const complex64_pair product = times(small_pair(i, q), small_pair(j, q + 1));
                sum = (complex64_pair){sum.re + product.re, sum.im + product.im};
            }
            const complex64_pair scaled = times((complex64_pair){2, 1}, sum),
                                 more = times((complex64_pair){1, -3}, small_pair(i, j));
            put_pair(s.addend, dtype, i * n + j, small_pair(i, j));
            put_pair(s.expected, dtype, i * n + j, (complex64_pair){scaled.re + more.re, scaled.im + more.im});
        }
    struct gemm_problem p = s.problem;
    p.alpha = 2;
    p.alpha_imaginary = 1;
    p.beta = 1;
    p.beta_imaginary = -3;
    run_cut(k, &p, k->tile_rows, k->tile_columns, s.scratch);
    for (int64_t i = 0; i < m * n * 2; ++i) {
        const double value = dtype == DTYPE_C128 ? ((double *)s.out)[i] : (double)((float *)s.out)[i];
        CHECK_NEAR(value, dtype == DTYPE_C128 ? ((double *)s.expected)[i] : (double)((float *)s.expected)[i], 0);
    }
    free_product(&s);
}

/* An edge in row 1 of a and column 2 of b reaches that row and that column of the result only; with beta 0 the addend isn't read. */
static void test_edge(const struct gemm_kernels *k, float edge, int64_t m, int64_t n, int64_t depth)
{
    float *const a = calloc((size_t)(m * depth), 4), *const b = calloc((size_t)(depth * n), 4),
                 *const out = calloc((size_t)(m * n), 4);
    float *const addend = malloc((size_t)(m * n) * 4);
    void *const scratch = aligned_alloc(64, (k->scratch_bytes + 63) / 64 * 64);
    for (int64_t i = 0; i < m * depth; ++i)
        a[i] = 1;
    for (int64_t i = 0; i < depth * n; ++i)
        b[i] = 1;
    for (int64_t i = 0; i < m * n; ++i)
        addend[i] = NAN;
    a[depth + depth / 2] = b[(depth - 1) * n + 2] = edge;
    struct gemm_problem p = {.rows = m, .columns = n, .depth = depth, .alpha = 1, .out = out, .out_row_stride = n};
    p.a = (struct gemm_operand){a, depth, 1, DTYPE_F32};
    p.b = (struct gemm_operand){b, n, 1, DTYPE_F32};
    p.addend = (struct gemm_operand){addend, n, 1, DTYPE_F32};
    p.out_column_stride = 1;
    p.out_dtype = DTYPE_F32;
    run_cut(k, &p, k->tile_rows, k->tile_columns, scratch);
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
            const float plain = (float)depth, one = (float)(depth - 1) + edge, both = (float)(depth - 2) + edge + edge;
            CHECK_NEAR(out[i * n + j], i == 1 && j == 2 ? both : i == 1 || j == 2 ? one : plain, 1e-6);
        }
    void *const all[] = {a, b, out, addend, scratch};
    for (int i = 0; i < 5; ++i)
        free(all[i]);
}

static void test_complex_types(const struct gemm_kernels *k)
{
    static const int64_t shapes[][3] = {{1, 1, 1}, {3, 17, 5}, {15, 33, 257}, {70, 40, 64}, {2, 9, 0}};
    static const float edges[] = {INFINITY, -INFINITY, NAN, -0.0f, 1e-41f};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; ++s) {
        test_complex(k, DTYPE_C64, shapes[s][0], shapes[s][1], shapes[s][2]);
        test_complex(k, DTYPE_C128, shapes[s][0], shapes[s][1], shapes[s][2]);
    }
    for (int e = 0; e < 5; ++e) {
        test_edge(k, edges[e], 2, 3, 4);
        test_edge(k, edges[e], 31, 65, 300);
    }
}

static void test_exact_types(const struct gemm_kernels *k)
{
    static const enum dtype types[] = {DTYPE_F64, DTYPE_F32, DTYPE_I64, DTYPE_I32, DTYPE_I16, DTYPE_I8, DTYPE_U8};
    static const int64_t shapes[][3] = {{1, 1, 1}, {1, 33, 5000}, {1, 900, 70}, {15, 33, 257}, {141, 70, 300}, {4, 9, 0}};
    for (size_t t = 0; t < sizeof types / sizeof types[0]; ++t)
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; ++s)
            for (int turned = 0; turned < 2; ++turned)
                test_exact(k, types[t], shapes[s][0], shapes[s][1], shapes[s][2], turned);
}

int main(void)
{
    static const int64_t shapes[][3] = {{1, 1, 1},      {6, 16, 255}, {14, 32, 256}, {15, 33, 257},
                                        {141, 70, 600}, {29, 300, 3}, {3, 31, 0}};
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F16, DTYPE_BF16};
    for (int isa = 0; kernel_set_at(isa); ++isa)
        for (size_t s = 0; kernel_set_runnable(kernel_set_at(isa)->isa) && s < sizeof shapes / sizeof shapes[0]; ++s)
            for (int t = 0; t < 3; ++t)
                test_shape(kernel_set_at(isa)->gemm, types[t], shapes[s][0], shapes[s][1], shapes[s][2]);
    for (int isa = 0; kernel_set_at(isa); ++isa)
        if (kernel_set_runnable(kernel_set_at(isa)->isa)) {
            test_exact_types(kernel_set_at(isa)->gemm);
            test_complex_types(kernel_set_at(isa)->gemm);
        }
    return check_result();
}
