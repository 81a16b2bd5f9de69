/* Rotary position embedding and its gradient against the rotation written down for each mode. */
#include "tensors.h"

static uint64_t seed = 21;

enum { HALF, INTERLEAVED, QUARTER, INTERLEAVED_HALF, MODES };

/* The rearranged row, and the row that the sines multiply. */
static void rearrange(int mode, int64_t width, const double *x, double *plain, double *turned)
{
    const int64_t half = width / 2, quarter = width / 4;
    for (int64_t j = 0; j < width; ++j)
        plain[j] = mode == INTERLEAVED_HALF ? x[j < half ? 2 * j : 2 * (j - half) + 1] : x[j];
    for (int64_t j = 0; j < width; ++j)
        switch (mode) {
        case INTERLEAVED: turned[j] = j % 2 ? x[j - 1] : -x[j + 1]; break;
        case QUARTER: turned[j] = j / quarter % 2 ? x[j - quarter] : -x[j + quarter]; break;
        default: turned[j] = j < half ? -plain[j + half] : plain[j - half]; break;
        }
}

/* sizes[0..3] of x, the angles have 1 where `repeats` has the bit. */
static int64_t angle_of(const int64_t *sizes, int repeats, int64_t row)
{
    const int64_t at[] = {row / (sizes[1] * sizes[2]), row / sizes[2] % sizes[1], row % sizes[2]};
    int64_t place = 0;
    for (int d = 0; d < 3; ++d)
        place = repeats & (1 << d) ? place : place * sizes[d] + at[d];
    return place;
}

static void check_rows(const struct tensor *in, const struct tensor *cosine, const struct tensor *sine, const struct tensor *out,
                       int mode, int repeats)
{
    const int64_t width = in->sizes[3], rows = in->count / width;
    double *const x = calloc((size_t)(3 * width), 8), *const plain = x + width, *const turned = plain + width;
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t j = 0; j < width; ++j)
            x[j] = tensor_get(in, r * width + j);
        rearrange(mode, width, x, plain, turned);
        for (int64_t j = 0; j < width; ++j) {
            const int64_t at = angle_of(in->sizes, repeats, r) * width + j;
            CHECK_NEAR(tensor_get(out, r * width + j), plain[j] * tensor_get(cosine, at) + turned[j] * tensor_get(sine, at),
                       2 * tensor_tolerance(in->dtype));
        }
    }
    free(x);
}

/* The rotation is linear in x, cosine and sine, so their gradients follow from rotating unit vectors. */
static void check_gradient(const struct tensor *x, const struct tensor *cosine, const struct tensor *sine, const struct tensor *dy,
                           const struct tensor *results, int mode, int repeats)
{
    const int64_t width = x->sizes[3], rows = x->count / width;
    double *const room = calloc((size_t)(3 * width), 8), *const plain = room + width, *const turned = plain + width;
    double *const dcosine = calloc((size_t)cosine->count, 8), *const dsine = calloc((size_t)cosine->count, 8);
    for (int64_t r = 0; r < rows; ++r) {
        const int64_t angle = angle_of(x->sizes, repeats, r) * width;
        for (int64_t k = 0; k < width; ++k) {
            double dx = 0;
            memset(room, 0, (size_t)width * 8);
            room[k] = 1;
            rearrange(mode, width, room, plain, turned);
            for (int64_t j = 0; j < width; ++j)
                dx += tensor_get(dy, r * width + j) *
                      (plain[j] * tensor_get(cosine, angle + j) + turned[j] * tensor_get(sine, angle + j));
            CHECK_NEAR(tensor_get(&results[0], r * width + k), dx, 2 * tensor_tolerance(x->dtype));
        }
        for (int64_t j = 0; j < width; ++j)
            room[j] = tensor_get(x, r * width + j);
        rearrange(mode, width, room, plain, turned);
        for (int64_t j = 0; j < width; ++j) {
            dcosine[angle + j] += tensor_get(dy, r * width + j) * plain[j];
            dsine[angle + j] += tensor_get(dy, r * width + j) * turned[j];
        }
    }
    for (int64_t i = 0; i < cosine->count; ++i) {
        CHECK_NEAR(tensor_get(&results[1], i), dcosine[i], 8 * tensor_tolerance(x->dtype));
        CHECK_NEAR(tensor_get(&results[2], i), dsine[i], 8 * tensor_tolerance(x->dtype));
    }
    free(room);
    free(dcosine);
    free(dsine);
}

static void test_rotary(enum dtype dtype, enum layout layout, int mode, const int64_t *sizes, int repeats)
{
    int64_t angles[4];
    for (int d = 0; d < 4; ++d)
        angles[d] = repeats & (1 << d) ? 1 : sizes[d];
    struct tensor x = tensor_random(dtype, layout, &seed, 4, sizes), out = tensor_new(dtype, layout, 4, sizes);
    struct tensor dy = tensor_random(dtype, layout, &seed, 4, sizes);
    struct tensor cosine = tensor_random(dtype, layout, &seed, 4, angles), sine = tensor_random(dtype, layout, &seed, 4, angles);
    struct tensor results[] = {tensor_new(dtype, layout, 4, sizes), tensor_new(dtype, layout, 4, angles),
                               tensor_new(dtype, layout, 4, angles)};
    RUN(RotaryPositionEmbedding, x.handle, cosine.handle, sine.handle, mode, out.handle);
    check_rows(&x, &cosine, &sine, &out, mode, repeats);
    RUN(RotaryPositionEmbeddingGrad, dy.handle, cosine.handle, sine.handle, x.handle, mode, results[0].handle, results[1].handle,
        results[2].handle);
    check_gradient(&x, &cosine, &sine, &dy, results, mode, repeats);
    RUN(RotaryPositionEmbeddingGrad, dy.handle, cosine.handle, sine.handle, NULL, mode, results[0].handle, NULL, NULL);
    if (mode < INTERLEAVED_HALF) { /* in place, two tensors at once */
        char names[][16] = {"half", "interleave", "quarter"};
        struct tensor q = tensor_random(dtype, layout, &seed, 4, sizes);
        for (int64_t i = 0; i < q.count; ++i)
            tensor_set(&q, i, tensor_get(&x, i));
        if (mode == HALF)
            RUN(ApplyRotaryPosEmb, q.handle, dy.handle, cosine.handle, sine.handle, 1);
        else
            RUN(ApplyRotaryPosEmbV2, q.handle, dy.handle, cosine.handle, sine.handle, 1, names[mode]);
        check_rows(&x, &cosine, &sine, &q, mode, repeats);
        tensor_free(&q);
    }
    struct tensor *const all[] = {&x, &out, &dy, &cosine, &sine, &results[0], &results[1], &results[2]};
    for (int i = 0; i < 8; ++i)
        tensor_free(all[i]);
}

static void test_all(void)
{
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F64, DTYPE_F16, DTYPE_BF16};
    static const int64_t sizes[][4] = {{2, 5, 3, 16}, {1, 4, 2, 36}, {3, 2, 4, 8}};
    static const int repeats[] = {5, 0, 3, 4}; /* bits of dimensions 0, 1, 2 */
    for (int t = 0; t < 4; ++t)
        for (int layout = 0; layout < LAYOUTS; ++layout)
            for (int mode = 0; mode < MODES; ++mode)
                for (int i = 0; i < 3; ++i)
                    test_rotary(types[t], (enum layout)layout, mode, sizes[i], repeats[(i + mode) % 4]);
}

static void test_refusals(void)
{
    struct tensor x = tensor_new(DTYPE_F32, PLAIN, SIZES(1, 2, 2, 6)), wrong = tensor_new(DTYPE_F32, PLAIN, SIZES(1, 3, 1, 6));
    char mode[] = "third";
    REFUSE(RotaryPositionEmbedding, ACLNN_ERROR_PARAM, "mode is 7", x.handle, x.handle, x.handle, 7, x.handle);
    REFUSE(RotaryPositionEmbedding, ACLNN_ERROR_PARAM, "can't be paired", x.handle, x.handle, x.handle, QUARTER, x.handle);
    REFUSE(RotaryPositionEmbedding, ACLNN_ERROR_PARAM, "cos is f32[1,3,1,6]", x.handle, wrong.handle, wrong.handle, 0, x.handle);
    REFUSE(ApplyRotaryPosEmbV2, ACLNN_ERROR_PARAM, "third", x.handle, x.handle, x.handle, x.handle, 1, mode);
    tensor_free(&x);
    tensor_free(&wrong);
}

int main(void)
{
    tensors_begin();
    FOR_EACH_ISA(test_all())
    test_refusals();
    return check_result();
}
