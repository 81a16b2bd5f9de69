/* Matrix products through the C API against sums in double: types, layouts, batches, edges. */
#include "operators/tensors.h"

static uint64_t seed = 1;

static void check_product(struct tensor *out, const struct tensor *a, const struct tensor *b, const struct tensor *addend,
                          double alpha, double beta, int64_t batches, int shared_b)
{
    const int64_t m = a->sizes[a->ndim - 2], k = a->sizes[a->ndim - 1], n = b->sizes[b->ndim - 1];
    for (int64_t z = 0; z < batches; ++z)
        for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j) {
                double sum = 0;
                for (int64_t q = 0; q < k; ++q)
                    sum += tensor_get(a, (z * m + i) * k + q) * tensor_get(b, ((shared_b ? 0 : z) * k + q) * n + j);
                sum *= alpha;
                if (addend)
                    sum += beta * tensor_get(addend, addend->count == out->count ? (z * m + i) * n + j : j);
                CHECK_NEAR(tensor_get(out, (z * m + i) * n + j), sum, tensor_tolerance(out->dtype) * (1 + (double)k / 64));
            }
}

static void test_mm(enum dtype dtype, int64_t m, int64_t n, int64_t k, enum layout la, enum layout lb, enum layout lo)
{
    struct tensor a = tensor_random(dtype, la, &seed, SIZES(m, k)), b = tensor_random(dtype, lb, &seed, SIZES(k, n));
    struct tensor out = tensor_new(dtype, lo, SIZES(m, n));
    RUN(Mm, a.handle, b.handle, out.handle, 0);
    check_product(&out, &a, &b, NULL, 1, 0, 1, 0);
    tensor_free(&a);
    tensor_free(&b);
    tensor_free(&out);
}

static void test_shapes(void)
{
    static const int64_t shapes[][3] = {{1, 1, 1},     {1, 70, 300},   {70, 1, 300}, {33, 65, 7}, {14, 32, 256},
                                        {15, 33, 257}, {141, 300, 20}, {5, 3, 0},    {0, 4, 5}};
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F64, DTYPE_F16, DTYPE_BF16, DTYPE_I64, DTYPE_I32, DTYPE_I8};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; ++s)
        for (size_t t = 0; t < sizeof types / sizeof types[0]; ++t)
            for (int la = 0; la < LAYOUTS; ++la)
                for (int lb = 0; lb < LAYOUTS; ++lb)
                    if (types[t] != DTYPE_I8 || shapes[s][2] < 20)
                        test_mm(types[t], shapes[s][0], shapes[s][1], shapes[s][2], (enum layout)la, (enum layout)lb,
                                (enum layout)((la + lb) % LAYOUTS));
}

static void test_batches(enum dtype dtype)
{
    struct tensor a = tensor_random(dtype, REVERSED, &seed, SIZES(3, 9, 17)),
                  b = tensor_random(dtype, PLAIN, &seed, SIZES(3, 17, 40));
    struct tensor out = tensor_new(dtype, GAPS, SIZES(3, 9, 40)), add = tensor_random(dtype, PLAIN, &seed, SIZES(40));
    RUN(BatchMatMul, a.handle, b.handle, out.handle, 0);
    check_product(&out, &a, &b, NULL, 1, 0, 3, 0);
    double two = 2, half = .5;
    aclScalar *const beta = aclCreateScalar(&half, ACL_DOUBLE), *const alpha = aclCreateScalar(&two, ACL_DOUBLE);
    RUN(Baddbmm, add.handle, a.handle, b.handle, beta, alpha, out.handle, 0);
    check_product(&out, &a, &b, &add, 2, .5, 3, 0);
    struct tensor c = tensor_random(dtype, PLAIN, &seed, SIZES(17, 40)),
                  plain = tensor_random(dtype, PLAIN, &seed, SIZES(3, 9, 17));
    struct tensor flat = tensor_new(dtype, PLAIN, SIZES(3, 9, 40));
    RUN(Matmul, plain.handle, c.handle, flat.handle, 0);
    check_product(&flat, &plain, &c, NULL, 1, 0, 3, 1);
    RUN(Matmul, a.handle, c.handle, out.handle, 0);
    check_product(&out, &a, &c, NULL, 1, 0, 3, 1);
    aclDestroyScalar(alpha);
    aclDestroyScalar(beta);
    struct tensor *const all[] = {&a, &b, &out, &add, &c, &plain, &flat};
    for (int i = 0; i < 7; ++i)
        tensor_free(all[i]);
}

static void test_addends(enum dtype dtype)
{
    double beta_value = -1, alpha_value = 3;
    aclScalar *const beta = aclCreateScalar(&beta_value, ACL_DOUBLE), *const alpha = aclCreateScalar(&alpha_value, ACL_DOUBLE);
    struct tensor a = tensor_random(dtype, PLAIN, &seed, SIZES(20, 300)), b = tensor_random(dtype, REVERSED, &seed, SIZES(300, 50));
    struct tensor row = tensor_random(dtype, PLAIN, &seed, SIZES(50)), out = tensor_new(dtype, PLAIN, SIZES(20, 50));
    RUN(Addmm, row.handle, a.handle, b.handle, beta, alpha, out.handle, 0);
    check_product(&out, &a, &b, &row, 3, -1, 1, 0);
    struct tensor before = tensor_new(dtype, PLAIN, SIZES(20, 50));
    for (int64_t i = 0; i < out.count; ++i)
        tensor_set(&before, i, tensor_get(&out, i) / 8), tensor_set(&out, i, tensor_get(&before, i));
    RUN(InplaceAddmm, out.handle, a.handle, b.handle, beta, alpha, 0);
    check_product(&out, &a, &b, &before, 3, -1, 1, 0);
    for (int64_t i = 0; i < out.count; ++i)
        tensor_set(&out, i, tensor_get(&before, i));
    RUN(Addmm, out.handle, a.handle, b.handle, beta, alpha, out.handle, 0);
    check_product(&out, &a, &b, &before, 3, -1, 1, 0);
    /* NaN in an addend with beta 0 isn't seen. */
    double none = 0;
    aclScalar *const zero = aclCreateScalar(&none, ACL_DOUBLE);
    tensor_set(&row, 3, NAN);
    RUN(Addmm, row.handle, a.handle, b.handle, zero, alpha, out.handle, 0);
    check_product(&out, &a, &b, NULL, 3, 0, 1, 0);
    struct tensor v = tensor_random(dtype, GAPS, &seed, SIZES(300, 1)), self = tensor_random(dtype, PLAIN, &seed, SIZES(20, 1));
    struct tensor vector = v, self_vector = self, r = tensor_new(dtype, GAPS, SIZES(20, 1)), r_vector = r;
    vector.handle =
        aclCreateTensor(v.sizes, 1, (aclDataType)dtype_infos[dtype].acl, v.strides, v.offset, ACL_FORMAT_ND, &v.room, 1, v.memory);
    self_vector.handle = aclCreateTensor(self.sizes, 1, (aclDataType)dtype_infos[dtype].acl, self.strides, 0, ACL_FORMAT_ND,
                                         &self.room, 1, self.memory);
    r_vector.handle =
        aclCreateTensor(r.sizes, 1, (aclDataType)dtype_infos[dtype].acl, r.strides, r.offset, ACL_FORMAT_ND, &r.room, 1, r.memory);
    RUN(Addmv, self_vector.handle, a.handle, vector.handle, alpha, beta, r_vector.handle, 0);
    check_product(&r, &a, &v, &self, 3, -1, 1, 0);
    RUN(Mv, a.handle, vector.handle, r_vector.handle, 0);
    check_product(&r, &a, &v, NULL, 1, 0, 1, 0);
    struct tensor one = tensor_new(dtype, PLAIN, 0, NULL);
    RUN(Dot, vector.handle, vector.handle, one.handle);
    double sum = 0;
    for (int64_t i = 0; i < 300; ++i)
        sum += tensor_get(&v, i) * tensor_get(&v, i);
    CHECK_NEAR(tensor_get(&one, 0), sum, tensor_tolerance(dtype));
    aclDestroyTensor(vector.handle);
    aclDestroyTensor(self_vector.handle);
    aclDestroyTensor(r_vector.handle);
    aclScalar *const scalars[] = {alpha, beta, zero};
    for (int i = 0; i < 3; ++i)
        aclDestroyScalar(scalars[i]);
    struct tensor *const all[] = {&a, &b, &row, &out, &before, &v, &self, &r, &one};
    for (int i = 0; i < 9; ++i)
        tensor_free(all[i]);
}

static void test_addbmm(enum dtype dtype)
{
    double one = 1;
    aclScalar *const scale = aclCreateScalar(&one, ACL_DOUBLE);
    struct tensor a = tensor_random(dtype, PLAIN, &seed, SIZES(4, 6, 11)), b = tensor_random(dtype, GAPS, &seed, SIZES(4, 11, 35));
    struct tensor self = tensor_random(dtype, PLAIN, &seed, SIZES(6, 35)), out = tensor_new(dtype, PLAIN, SIZES(6, 35));
    RUN(Addbmm, self.handle, a.handle, b.handle, scale, scale, out.handle, 0);
    for (int64_t i = 0; i < 6; ++i)
        for (int64_t j = 0; j < 35; ++j) {
            double sum = tensor_get(&self, i * 35 + j);
            for (int64_t z = 0; z < 4; ++z)
                for (int64_t k = 0; k < 11; ++k)
                    sum += tensor_get(&a, (z * 6 + i) * 11 + k) * tensor_get(&b, (z * 11 + k) * 35 + j);
            CHECK_NEAR(tensor_get(&out, i * 35 + j), sum, tensor_tolerance(dtype) * 2);
        }
    aclDestroyScalar(scale);
    struct tensor *const all[] = {&a, &b, &self, &out};
    for (int i = 0; i < 4; ++i)
        tensor_free(all[i]);
}

static void test_outer(enum dtype dtype)
{
    double beta_value = 2, alpha_value = 3;
    aclScalar *const beta = aclCreateScalar(&beta_value, ACL_DOUBLE), *const alpha = aclCreateScalar(&alpha_value, ACL_DOUBLE);
    struct tensor self = tensor_random(dtype, PLAIN, &seed, SIZES(7, 40)), a = tensor_random(dtype, GAPS, &seed, SIZES(7));
    struct tensor b = tensor_random(dtype, PLAIN, &seed, SIZES(40)), out = tensor_new(dtype, REVERSED, SIZES(7, 40));
    RUN(Addr, self.handle, a.handle, b.handle, beta, alpha, out.handle);
    RUN(InplaceAddr, self.handle, a.handle, b.handle, beta, alpha);
    for (int64_t i = 0; i < out.count; ++i)
        CHECK_NEAR(tensor_get(&self, i), tensor_get(&out, i), tensor_tolerance(dtype));
    tensor_fill(&self, 1);
    RUN(Addr, self.handle, a.handle, b.handle, beta, alpha, out.handle);
    for (int64_t i = 0; i < out.count; ++i)
        CHECK_NEAR(tensor_get(&out, i), 2 + 3 * tensor_get(&a, i / 40) * tensor_get(&b, i % 40), 4 * tensor_tolerance(dtype));
    aclDestroyScalar(alpha);
    aclDestroyScalar(beta);
    struct tensor *const all[] = {&self, &a, &b, &out};
    for (int k = 0; k < 4; ++k)
        tensor_free(all[k]);
}

static complex64_pair complex_get(const struct tensor *t, int64_t index)
{
    const void *const p = t->memory + tensor_at(t, index) * (int64_t)dtype_bytes(t->dtype);
    if (t->dtype == DTYPE_C128)
        return *(const complex64_pair *)p;
    return (complex64_pair){(double)((const float *)p)[0], (double)((const float *)p)[1]};
}

static struct tensor complex_random(enum dtype dtype, enum layout layout, int ndim, const int64_t *sizes)
{
    struct tensor t = tensor_new(dtype, layout, ndim, sizes);
    for (int64_t i = 0; i < t.count; ++i) {
        void *const p = t.memory + tensor_at(&t, i) * (int64_t)dtype_bytes(dtype);
        const complex64_pair value = {check_random_real(&seed), check_random_real(&seed)};
        if (dtype == DTYPE_C128)
            *(complex64_pair *)p = value;
        else
            *(complex32_pair *)p = (complex32_pair){(float)value.re, (float)value.im};
    }
    return t;
}

static complex64_pair complex_times(complex64_pair x, complex64_pair y)
{
    return (complex64_pair){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}

/* alpha and beta with imaginary parts, in all layouts. */
static void test_complex(enum dtype dtype, enum layout layout)
{
    const complex64_pair factors[] = {{0, 1}, {2, -3}, {1, 0}, {0, 0}};
    const double tolerance = dtype == DTYPE_C128 ? 1e-12 : 1e-4;
    for (int f = 0; f < 4; ++f)
        for (int m = 1; m <= 9; m += 8) {
            complex64_pair alpha_value = factors[f], beta_value = factors[(f + 1) % 4];
            aclScalar *const alpha = aclCreateScalar(&alpha_value, ACL_COMPLEX128);
            aclScalar *const beta = aclCreateScalar(&beta_value, ACL_COMPLEX128);
            struct tensor a = complex_random(dtype, layout, SIZES(m, 20)), b = complex_random(dtype, PLAIN, SIZES(20, 33));
            struct tensor self = complex_random(dtype, layout, SIZES(m, 33));
            struct tensor out = tensor_new(dtype, (enum layout)((layout + 1) % LAYOUTS), SIZES(m, 33));
            RUN(Addmm, self.handle, a.handle, b.handle, beta, alpha, out.handle, 0);
            for (int64_t i = 0; i < out.count; ++i) {
                complex64_pair sum = {0, 0};
                for (int64_t k = 0; k < 20; ++k) {
                    const complex64_pair more = complex_times(complex_get(&a, i / 33 * 20 + k), complex_get(&b, k * 33 + i % 33));
                    sum.re += more.re;
                    sum.im += more.im;
                }
                sum = complex_times(sum, alpha_value);
                const complex64_pair more = complex_times(complex_get(&self, i), beta_value);
                CHECK_NEAR(complex_get(&out, i).re, sum.re + more.re, tolerance);
                CHECK_NEAR(complex_get(&out, i).im, sum.im + more.im, tolerance);
            }
            aclDestroyScalar(alpha);
            aclDestroyScalar(beta);
            struct tensor *const all[] = {&a, &b, &self, &out};
            for (int i = 0; i < 4; ++i)
                tensor_free(all[i]);
        }
}

/* A vector on the left, with an addend: the addend has to become a row as out does. */
static void test_vector_on_the_left(void)
{
    float one = 1;
    aclScalar *const factor = aclCreateScalar(&one, ACL_FLOAT);
    struct tensor a = tensor_random(DTYPE_F32, PLAIN, &seed, SIZES(3)), b = tensor_random(DTYPE_F32, PLAIN, &seed, SIZES(3, 5));
    struct tensor self = tensor_random(DTYPE_F32, PLAIN, &seed, SIZES(5)), out = tensor_new(DTYPE_F32, PLAIN, SIZES(5));
    RUN(Addmv, self.handle, a.handle, b.handle, factor, factor, out.handle, 0);
    for (int64_t j = 0; j < 5; ++j) {
        double sum = tensor_get(&self, j);
        for (int64_t k = 0; k < 3; ++k)
            sum += tensor_get(&a, k) * tensor_get(&b, k * 5 + j);
        CHECK_NEAR(tensor_get(&out, j), sum, 1e-5);
    }
    aclDestroyScalar(factor);
    struct tensor *const all[] = {&a, &b, &self, &out};
    for (int i = 0; i < 4; ++i)
        tensor_free(all[i]);
}

static void test_refusals(void)
{
    complex64_pair turn = {0, 1};
    aclScalar *const factor = aclCreateScalar(&turn, ACL_COMPLEX128);
    struct tensor square = tensor_random(DTYPE_F32, PLAIN, &seed, SIZES(3, 3)), sum = tensor_new(DTYPE_F32, PLAIN, SIZES(3, 3));
    tensor_fill(&sum, 0);
    REFUSE(Addmm, ACLNN_ERROR_PARAM, "alpha is complex", square.handle, square.handle, square.handle, NULL, factor, sum.handle, 0);
    REFUSE(Addmm, ACLNN_ERROR_PARAM, "beta is complex", square.handle, square.handle, square.handle, factor, NULL, sum.handle, 0);
    aclDestroyScalar(factor);
    tensor_free(&square);
    tensor_free(&sum);
    struct tensor a = tensor_random(DTYPE_F32, PLAIN, &seed, SIZES(2, 3)), b = tensor_random(DTYPE_F32, PLAIN, &seed, SIZES(4, 5));
    struct tensor i = tensor_random(DTYPE_I32, PLAIN, &seed, SIZES(3, 5)), out = tensor_new(DTYPE_F32, PLAIN, SIZES(2, 5));
    tensor_fill(&out, 0);
    REFUSE(Mm, ACLNN_ERROR_PARAM, "inner sizes", a.handle, b.handle, out.handle, 0);
    REFUSE(Mm, ACLNN_ERROR_PARAM, "must be of one type", a.handle, i.handle, out.handle, 0);
    REFUSE(Mm, ACLNN_ERROR_NULLPTR, "mat2", a.handle, NULL, out.handle, 0);
    struct tensor *const all[] = {&a, &b, &i, &out};
    for (int k = 0; k < 4; ++k)
        tensor_free(all[k]);
}

static void test_all(void)
{
    static const enum dtype floats[] = {DTYPE_F32, DTYPE_F64, DTYPE_F16, DTYPE_BF16};
    test_shapes();
    for (int layout = 0; layout < LAYOUTS; ++layout) {
        test_complex(DTYPE_C64, (enum layout)layout);
        test_complex(DTYPE_C128, (enum layout)layout);
    }
    for (int t = 0; t < 4; ++t) {
        test_batches(floats[t]);
        test_addends(floats[t]);
        test_addbmm(floats[t]);
        test_outer(floats[t]);
    }
}

int main(void)
{
    tensors_begin();
    FOR_EACH_ISA(test_all())
    test_vector_on_the_left();
    test_refusals();
    return check_result();
}
