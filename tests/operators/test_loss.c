/* Losses and their gradients: values against double formulas, gradients against differences; class targets and their range. */
#include "operators/tensors.h"

static uint64_t seed = 3;

#define BETA ((double).4f)

enum kind { MSE, L1, SMOOTH, BCE, LOGITS, DIVERGENCE, DIVERGENCE_LOG, MARGIN, KINDS };

static double one_loss(enum kind kind, double x, double t, double w, double p)
{
    switch (kind) {
    case MSE: return (x - t) * (x - t);
    case L1: return fabs(x - t);
    case SMOOTH: return fabs(x - t) < BETA ? .5 * (x - t) * (x - t) / BETA : fabs(x - t) - .5 * BETA;
    case BCE: return -w * (t * fmax(log(x), -100) + (1 - t) * fmax(log1p(-x), -100));
    case LOGITS: return -w * (p * t * -log1p(exp(-x)) + (1 - t) * (-x - log1p(exp(-x))));
    case MARGIN: return log1p(exp(-t * x));
    case DIVERGENCE: return t > 0 ? t * (log(t) - x) : 0;
    default: return exp(t) * (t - x);
    }
}

static void run_forward(enum kind kind, const struct tensor *x, const struct tensor *t, const struct tensor *w,
                        const struct tensor *p, int reduction, struct tensor *out)
{
    switch (kind) {
    case MSE: RUN(MseLoss, x->handle, t->handle, reduction, out->handle); break;
    case MARGIN: RUN(SoftMarginLoss, x->handle, t->handle, reduction, out->handle); break;
    case L1: RUN(L1Loss, x->handle, t->handle, reduction, out->handle); break;
    case SMOOTH: RUN(SmoothL1Loss, x->handle, t->handle, reduction, .4f, out->handle); break;
    case BCE: RUN(BinaryCrossEntropy, x->handle, t->handle, w->handle, reduction, out->handle); break;
    case LOGITS: RUN(BinaryCrossEntropyWithLogits, x->handle, t->handle, w->handle, p->handle, reduction, out->handle); break;
    default: RUN(KlDiv, x->handle, t->handle, reduction, kind == DIVERGENCE_LOG, out->handle); break;
    }
}

static void run_backward(enum kind kind, const struct tensor *g, const struct tensor *x, const struct tensor *t,
                         const struct tensor *w, const struct tensor *p, int reduction, struct tensor *dx)
{
    switch (kind) {
    case MSE: RUN(MseLossBackward, g->handle, x->handle, t->handle, reduction, dx->handle); break;
    case MARGIN: RUN(SoftMarginLossBackward, g->handle, x->handle, t->handle, reduction, dx->handle); break;
    case L1: RUN(L1LossBackward, g->handle, x->handle, t->handle, reduction, dx->handle); break;
    case SMOOTH: RUN(SmoothL1LossBackward, g->handle, x->handle, t->handle, reduction, .4f, dx->handle); break;
    case BCE: RUN(BinaryCrossEntropyBackward, g->handle, x->handle, t->handle, w->handle, reduction, dx->handle); break;
    case LOGITS:
        RUN(BinaryCrossEntropyWithLogitsBackward, g->handle, x->handle, t->handle, w->handle, p->handle, reduction, dx->handle);
        break;
    default: RUN(KlDivBackward, g->handle, x->handle, t->handle, reduction, kind == DIVERGENCE_LOG, dx->handle); break;
    }
}

static void test_elementwise(enum kind kind, enum dtype dtype, enum layout layout, int reduction)
{
    struct tensor x = tensor_random(dtype, layout, &seed, SIZES(70, 90)), t = tensor_random(dtype, PLAIN, &seed, SIZES(70, 90));
    struct tensor w = tensor_random(dtype, PLAIN, &seed, SIZES(90)), p = tensor_random(dtype, PLAIN, &seed, SIZES(90));
    struct tensor out = reduction ? tensor_new(dtype, PLAIN, 0, NULL) : tensor_new(dtype, layout, SIZES(70, 90));
    struct tensor g = reduction ? tensor_random(dtype, PLAIN, &seed, 0, NULL) : tensor_random(dtype, layout, &seed, SIZES(70, 90));
    struct tensor dx = tensor_new(dtype, layout, SIZES(70, 90));
    for (int64_t i = 0; i < x.count; ++i) {
        if (kind == BCE)
            tensor_set(&x, i, .5 + .45 * tensor_get(&x, i));
        if (kind == BCE || kind == LOGITS || kind == DIVERGENCE)
            tensor_set(&t, i, .5 + .5 * tensor_get(&t, i));
    }
    run_forward(kind, &x, &t, &w, &p, reduction, &out);
    run_backward(kind, &g, &x, &t, &w, &p, reduction, &dx);
    double total = 0;
    const double divisor = reduction == 1 ? (double)x.count : reduction == 3 ? 70 : 1;
    for (int64_t i = 0; i < x.count; ++i) {
        const double xv = tensor_get(&x, i), tv = tensor_get(&t, i), wv = tensor_get(&w, i % 90), pv = tensor_get(&p, i % 90),
                     h = 1e-6;
        const double value = one_loss(kind, xv, tv, wv, pv);
        total += value;
        if (!reduction)
            CHECK_NEAR(tensor_get(&out, i), value, 2 * tensor_tolerance(dtype));
        if (fabs(fabs(xv - tv) - .4) < 1e-5 || fabs(xv - tv) < 1e-5)
            continue; /* a kink */
        const double slope = (one_loss(kind, xv + h, tv, wv, pv) - one_loss(kind, xv - h, tv, wv, pv)) / (2 * h);
        CHECK_NEAR(tensor_get(&dx, i), slope * tensor_get(&g, reduction ? 0 : i) / divisor, 2 * tensor_tolerance(dtype) + 1e-7);
    }
    if (reduction)
        CHECK_NEAR(tensor_get(&out, 0), total / divisor, 2 * tensor_tolerance(dtype));
    struct tensor *const all[] = {&x, &t, &w, &p, &out, &g, &dx};
    for (int i = 0; i < 7; ++i)
        tensor_free(all[i]);
}

static void test_likelihood(enum dtype dtype, enum dtype target_type, int ndim, const int64_t *sizes, int reduction, bool weighted)
{
    const int64_t classes = sizes[ndim == 1 ? 0 : 1];
    int64_t target_sizes[4] = {sizes[0]}, inner = 1;
    for (int d = 2; d < ndim; ++d)
        inner *= target_sizes[d - 1] = sizes[d];
    const int target_dims = ndim == 1 ? 0 : ndim - 1;
    struct tensor x = tensor_random(dtype, REVERSED, &seed, ndim, sizes),
                  target = tensor_new(target_type, PLAIN, target_dims, target_sizes);
    struct tensor w = tensor_random(dtype, PLAIN, &seed, SIZES(classes)), total = tensor_new(dtype, PLAIN, 0, NULL);
    struct tensor out = reduction ? tensor_new(dtype, PLAIN, 0, NULL) : tensor_new(dtype, PLAIN, target_dims, target_sizes);
    struct tensor g =
        reduction ? tensor_random(dtype, PLAIN, &seed, 0, NULL) : tensor_random(dtype, PLAIN, &seed, target_dims, target_sizes);
    struct tensor dx = tensor_new(dtype, PLAIN, ndim, sizes);
    for (int64_t i = 0; i < classes; ++i)
        tensor_set(&w, i, 1.5 + tensor_get(&w, i));
    for (int64_t i = 0; i < target.count; ++i)
        tensor_set(&target, i, i % 5 == 4 ? 1 : (double)(check_random(&seed) % (uint64_t)classes));
    const int64_t ignore = 1;
    aclTensor *const weight = weighted ? w.handle : NULL;
    if (ndim > 2) {
        RUN(NLLLoss2d, x.handle, target.handle, weight, reduction, ignore, out.handle, total.handle);
        RUN(NLLLoss2dBackward, g.handle, x.handle, target.handle, weight, reduction, ignore, total.handle, dx.handle);
    } else {
        RUN(NLLLoss, x.handle, target.handle, weight, reduction, ignore, out.handle, total.handle);
        RUN(NLLLossBackward, g.handle, x.handle, target.handle, weight, reduction, ignore, total.handle, dx.handle);
    }
    double sum = 0, weights = 0;
    for (int64_t i = 0; i < target.count; ++i) {
        const int64_t c = (int64_t)tensor_get(&target, i), at = ((ndim == 1 ? 0 : i / inner) * classes + c) * inner + i % inner;
        const double wv = c == ignore ? 0 : weighted ? tensor_get(&w, c) : 1, loss = -wv * tensor_get(&x, at);
        sum += loss;
        weights += wv;
        if (!reduction)
            CHECK_NEAR(tensor_get(&out, i), loss, tensor_tolerance(dtype));
    }
    if (reduction) {
        CHECK_NEAR(tensor_get(&out, 0), reduction == 1 ? sum / weights : sum, 2 * tensor_tolerance(dtype));
        CHECK_NEAR(tensor_get(&total, 0), weights, 2 * tensor_tolerance(dtype));
    }
    for (int64_t i = 0; i < dx.count; ++i) {
        const int64_t c = ndim == 1 ? i : i / inner % classes, position = ndim == 1 ? 0 : i / inner / classes * inner + i % inner;
        double expected = 0;
        if ((int64_t)tensor_get(&target, position) == c && c != ignore)
            expected = -(weighted ? tensor_get(&w, c) : 1) * tensor_get(&g, reduction ? 0 : position) /
                       (reduction == 1 ? tensor_get(&total, 0) : 1);
        CHECK_NEAR(tensor_get(&dx, i), expected, 2 * tensor_tolerance(dtype));
    }
    struct tensor *const all[] = {&x, &target, &w, &total, &out, &g, &dx};
    for (int i = 0; i < 7; ++i)
        tensor_free(all[i]);
}

static void test_bad_target(void)
{
    struct tensor x = tensor_random(DTYPE_F32, PLAIN, &seed, SIZES(4, 3)), target = tensor_new(DTYPE_I64, PLAIN, SIZES(4));
    struct tensor out = tensor_new(DTYPE_F32, PLAIN, 0, NULL), total = tensor_new(DTYPE_F32, PLAIN, 0, NULL);
    tensor_fill(&target, 2);
    tensor_set(&target, 2, 3);
    uint64_t bytes = 0;
    aclOpExecutor *executor = NULL;
    CHECK_OK(aclnnNLLLossGetWorkspaceSize(x.handle, target.handle, NULL, 1, -100, out.handle, total.handle, &bytes, &executor));
    void *const workspace = malloc(bytes + 1);
    CHECK_OK(aclnnNLLLoss(workspace, bytes, executor, NULL));
    CHECK_FAILS(tensors_synchronize(), ERROR_RT_DEVICE_TASK, "out of bounds");
    free(workspace);
    tensor_set(&target, 2, -100);
    RUN(NLLLoss, x.handle, target.handle, NULL, 1, -100, out.handle, total.handle);
    CHECK_NEAR(tensor_get(&total, 0), 3, 0);
    struct tensor *const all[] = {&x, &target, &out, &total};
    for (int i = 0; i < 4; ++i)
        tensor_free(all[i]);
}

static void test_all(void)
{
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F64, DTYPE_F16, DTYPE_BF16};
    for (int t = 0; t < 4; ++t) {
        for (int kind = 0; kind < KINDS; ++kind)
            for (int reduction = 0; reduction < 3; ++reduction)
                test_elementwise((enum kind)kind, types[t], (enum layout)((kind + reduction + t) % LAYOUTS), reduction);
        for (int reduction = 0; reduction < 3; ++reduction)
            for (int weighted = 0; weighted < 2; ++weighted) {
                test_likelihood(types[t], DTYPE_I64, SIZES(128, 10), reduction, weighted);
                test_likelihood(types[t], DTYPE_U8, SIZES(5), reduction, weighted);
                test_likelihood(types[t], DTYPE_I32, SIZES(2, 4, 5, 3), reduction, weighted);
            }
    }
    test_elementwise(DIVERGENCE, DTYPE_F32, PLAIN, 3);
}

/* The gradient of a reduced loss is one number. */
static void test_sizes_of_gradients(void)
{
    struct tensor x = tensor_random(DTYPE_F32, PLAIN, &seed, SIZES(2, 3)), out = tensor_new(DTYPE_F32, PLAIN, SIZES(2, 3));
    struct tensor whole = tensor_random(DTYPE_F32, PLAIN, &seed, SIZES(2, 3)),
                  row = tensor_random(DTYPE_F32, PLAIN, &seed, SIZES(3));
    tensor_fill(&out, 0);
    for (int reduction = 1; reduction <= 2; ++reduction) {
        REFUSE(MseLossBackward, ACLNN_ERROR_PARAM, "must be one element", whole.handle, x.handle, x.handle, reduction, out.handle);
        REFUSE(MseLossBackward, ACLNN_ERROR_PARAM, "must be one element", row.handle, x.handle, x.handle, reduction, out.handle);
    }
    REFUSE(MseLossBackward, ACLNN_ERROR_PARAM, "(mean) and 2 (sum)", whole.handle, x.handle, x.handle, 3, out.handle);
    REFUSE(KlDivBackward, ACLNN_ERROR_PARAM, "3 (batchmean)", whole.handle, x.handle, x.handle, 4, false, out.handle);
    struct tensor *const all[] = {&x, &out, &whole, &row};
    for (int i = 0; i < 4; ++i)
        tensor_free(all[i]);
}

int main(void)
{
    tensors_begin();
    FOR_EACH_ISA(test_all())
    test_sizes_of_gradients();
    test_bad_target();
    return check_result();
}
