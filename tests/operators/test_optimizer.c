/* Fused optimizers and loss scaling against plain loops in double. */
#include "aclnnop/all_operators.h"
#include "operand.h"

enum { COUNT = 2, STEPS = 3 };
static const double lr = 0.01, beta1 = 0.9, beta2 = 0.999, decay = 0.1, eps = 1e-8;

struct state {
    struct operand p[COUNT], g[COUNT], m[COUNT], v[COUNT], x[COUNT], step[COUNT];
    double *expected_p[COUNT], *expected_m[COUNT], *expected_v[COUNT], *expected_x[COUNT];
};

static const int64_t shapes[COUNT][2] = {{3, 7}, {130, 200}};

static void make_state(struct state *s, enum dtype dtype)
{
    for (int i = 0; i < COUNT; ++i) {
        struct operand *const all[] = {&s->p[i], &s->g[i], &s->m[i], &s->v[i], &s->x[i]};
        for (int k = 0; k < 5; ++k)
            *all[k] = operand_make(dtype, 2, shapes[i], k == 1 ? LAYOUT_TRANSPOSED : LAYOUT_PLAIN);
        s->step[i] = operand_make(DTYPE_F32, 0, NULL, LAYOUT_PLAIN);
        double **const expected[] = {&s->expected_p[i], &s->expected_m[i], &s->expected_v[i], &s->expected_x[i]};
        for (int k = 0; k < 4; ++k)
            *expected[k] = calloc((size_t)s->p[i].count, sizeof(double));
        for (int64_t k = 0; k < s->p[i].count; ++k) {
            operand_set(&s->p[i], k, 1 + (double)(k % 13) * 0.1);
            s->expected_p[i][k] = operand_get(&s->p[i], k);
        }
    }
}

static void set_gradients(struct state *s, int step)
{
    for (int i = 0; i < COUNT; ++i)
        for (int64_t k = 0; k < s->p[i].count; ++k)
            operand_set(&s->g[i], k, ((double)((k * 5 + step) % 17) - 8) * 0.05 + 0.0137);
}

static void free_state(struct state *s)
{
    for (int i = 0; i < COUNT; ++i) {
        operand_free(&s->p[i]);
        operand_free(&s->g[i]);
        operand_free(&s->m[i]);
        operand_free(&s->v[i]);
        operand_free(&s->x[i]);
        operand_free(&s->step[i]);
        free(s->expected_p[i]);
        free(s->expected_m[i]);
        free(s->expected_v[i]);
        free(s->expected_x[i]);
    }
}

static void expect_adam(struct state *s, int i, int step, int decoupled, int amsgrad, double sign, double scale)
{
    for (int64_t k = 0; k < s->p[i].count; ++k) {
        double *const p = &s->expected_p[i][k], *const m = &s->expected_m[i][k], *const v = &s->expected_v[i][k];
        double g = sign * operand_get(&s->g[i], k) / scale;
        if (decoupled)
            *p *= 1 - lr * decay;
        else
            g += decay * *p;
        *m = beta1 * *m + (1 - beta1) * g;
        *v = beta2 * *v + (1 - beta2) * g * g;
        double bound = *v;
        if (amsgrad)
            bound = s->expected_x[i][k] = fmax(s->expected_x[i][k], *v);
        *p -= lr / (1 - pow(beta1, step)) * *m / (sqrt(bound) / sqrt(1 - pow(beta2, step)) + eps);
    }
}

static void check_state(const struct state *s, double tolerance, const char *what)
{
    for (int i = 0; i < COUNT; ++i)
        for (int64_t k = 0; k < s->p[i].count; ++k) {
            CHECK(check_near(operand_get(&s->p[i], k), s->expected_p[i][k], tolerance), "%s p[%d][%lld]: %.9g, not %.9g", what, i,
                  (long long)k, operand_get(&s->p[i], k), s->expected_p[i][k]);
            CHECK(check_near(operand_get(&s->m[i], k), s->expected_m[i][k], tolerance), "%s m[%d][%lld]: %.9g, not %.9g", what, i,
                  (long long)k, operand_get(&s->m[i], k), s->expected_m[i][k]);
        }
}

static void test_adamw_v2(enum dtype dtype, double tolerance, int amsgrad)
{
    struct state s;
    make_state(&s, dtype);
    for (int step = 1; step <= STEPS; ++step) {
        set_gradients(&s, step);
        for (int i = 0; i < COUNT; ++i) {
            operand_set(&s.step[i], 0, step - 1); /* counted from 0 */
            expect_adam(&s, i, step, 1, amsgrad, 1, 1);
            CHECK_OK(RUN(aclnnApplyAdamWV2, s.p[i].tensor, s.m[i].tensor, s.v[i].tensor, amsgrad ? s.x[i].tensor : NULL,
                         s.g[i].tensor, s.step[i].tensor, (float)lr, (float)beta1, (float)beta2, (float)decay, (float)eps, amsgrad,
                         false));
        }
    }
    check_state(&s, tolerance, "AdamWV2");
    CHECK_FAILS(RUN(aclnnApplyAdamWV2, s.p[0].tensor, s.m[0].tensor, s.v[0].tensor, NULL, s.g[0].tensor, s.step[0].tensor, 0.1f,
                    0.9f, 0.9f, 0, 1, true, false),
                ACLNN_ERROR_NULLPTR, "maxGradNorm");
    free_state(&s);
}

static aclTensorList *list_of(const struct operand *operands)
{
    aclTensor *handles[COUNT];
    for (int i = 0; i < COUNT; ++i)
        handles[i] =
            aclCreateTensor(operands[i].sizes, (uint64_t)operands[i].ndim, (aclDataType)dtype_infos[operands[i].dtype].acl,
                            operands[i].strides, operands[i].offset, ACL_FORMAT_ND, &operands[i].span, 1, operands[i].memory);
    return aclCreateTensorList(handles, COUNT);
}

static void test_fused_adam(int amsgrad, int maximize, int scaled)
{
    struct state s;
    make_state(&s, DTYPE_F32);
    aclTensorList *const p = list_of(s.p), *const g = list_of(s.g), *const m = list_of(s.m), *const v = list_of(s.v);
    aclTensorList *const x = list_of(s.x), *const steps = list_of(s.step);
    struct operand scale = operand_make(DTYPE_F32, 0, NULL, LAYOUT_PLAIN), found = operand_make(DTYPE_F32, 0, NULL, LAYOUT_PLAIN);
    operand_set(&scale, 0, 4);
    for (int step = 1; step <= STEPS; ++step) {
        set_gradients(&s, step);
        for (int i = 0; i < COUNT; ++i) {
            operand_set(&s.step[i], 0, step);
            expect_adam(&s, i, step, 0, amsgrad, maximize ? -1 : 1, scaled ? 4 : 1);
        }
        CHECK_OK(RUN(aclnnFusedAdam, p, g, m, v, amsgrad ? x : NULL, steps, scaled ? scale.tensor : NULL, found.tensor, lr, beta1,
                     beta2, decay, eps, amsgrad, maximize));
    }
    check_state(&s, 1e-5, "FusedAdam");
    operand_set(&found, 0, 1); /* an infinity was found: nothing changes */
    CHECK_OK(RUN(aclnnFusedAdam, p, g, m, v, amsgrad ? x : NULL, steps, NULL, found.tensor, lr, beta1, beta2, decay, eps, amsgrad,
                 maximize));
    check_state(&s, 1e-5, "FusedAdam after an infinity");
    aclTensorList *const all[] = {p, g, m, v, x, steps};
    for (int i = 0; i < 6; ++i)
        aclDestroyTensorList(all[i]);
    operand_free(&scale);
    operand_free(&found);
    free_state(&s);
}

static void test_fused_sgd(double momentum, int nesterov)
{
    struct state s;
    make_state(&s, DTYPE_F32);
    aclTensorList *const p = list_of(s.p), *const g = list_of(s.g), *const m = list_of(s.m);
    const double dampening = nesterov ? 0 : 0.2;
    for (int step = 0; step < STEPS; ++step) {
        set_gradients(&s, step);
        for (int i = 0; i < COUNT; ++i)
            for (int64_t k = 0; k < s.p[i].count; ++k) {
                double *const buffer = &s.expected_m[i][k];
                double gradient = operand_get(&s.g[i], k) + decay * s.expected_p[i][k];
                if (momentum != 0) {
                    *buffer = step == 0 ? gradient : momentum * *buffer + (1 - dampening) * gradient;
                    gradient = nesterov ? gradient + momentum * *buffer : *buffer;
                }
                s.expected_p[i][k] -= lr * gradient;
            }
        CHECK_OK(RUN(aclnnFusedSgd, p, g, momentum != 0 ? m : NULL, NULL, (float)decay, (float)momentum, (float)lr,
                     (float)dampening, nesterov, false, step == 0));
    }
    check_state(&s, 1e-6, "FusedSgd");
    aclDestroyTensorList(p);
    aclDestroyTensorList(g);
    aclDestroyTensorList(m);
    free_state(&s);
}

static void test_scale_update(void)
{
    struct operand scale = operand_make(DTYPE_F32, 0, NULL, LAYOUT_PLAIN), tracker = operand_make(DTYPE_I32, 0, NULL, LAYOUT_PLAIN);
    struct operand found = operand_make(DTYPE_F32, 0, NULL, LAYOUT_PLAIN);
    operand_set(&scale, 0, 1024);
    for (int step = 1; step <= 4; ++step)
        CHECK_OK(RUN(aclnnAmpUpdateScale, scale.tensor, tracker.tensor, found.tensor, 2.0, 0.5, 4, scale.tensor, tracker.tensor));
    CHECK_NEAR(operand_get(&scale, 0), 2048, 0);
    CHECK_NEAR(operand_get(&tracker, 0), 0, 0);
    operand_set(&tracker, 0, 2);
    operand_set(&found, 0, 1);
    CHECK_OK(RUN(aclnnAmpUpdateScale, scale.tensor, tracker.tensor, found.tensor, 2.0, 0.5, 4, scale.tensor, tracker.tensor));
    CHECK_NEAR(operand_get(&scale, 0), 1024, 0);
    CHECK_NEAR(operand_get(&tracker, 0), 0, 0);
    operand_free(&scale);
    operand_free(&tracker);
    operand_free(&found);
}

int main(void)
{
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    for (int amsgrad = 0; amsgrad < 2; ++amsgrad) {
        test_adamw_v2(DTYPE_F32, 1e-5, amsgrad);
        test_adamw_v2(DTYPE_BF16, 3e-2, amsgrad);
        test_fused_adam(amsgrad, 0, amsgrad);
        test_fused_adam(amsgrad, 1, !amsgrad);
    }
    test_fused_sgd(0, 0);
    test_fused_sgd(0.9, 0);
    test_fused_sgd(0.9, 1);
    test_scale_update();
    return check_result();
}
