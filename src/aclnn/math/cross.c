/* Cross products of vectors of three along a dimension. */
#include <string.h>

#include "aclnn/math/operand_check.h"
#include "aclnn/math/strided_loop.h"
#include "aclnn/math/tile.h"
#include "aclnnop/all_operators.h"
#include "base/pool.h"

enum { AXES = 3, ITEM = 1 << 12 };

/* The components of the operands, each a view of all vectors. */
struct cross_work {
    struct view a[AXES], b[AXES], out[AXES];
    enum dtype type; /* of the arithmetic: I64, F64 or C128 */
};

union cross_tile {
    int64_t i64[LOOP_TILE];
    double f64[LOOP_TILE];
    complex64_pair c128[LOOP_TILE];
};

static complex64_pair cross_pair(complex64_pair p, complex64_pair q, complex64_pair r, complex64_pair s)
{
    return (complex64_pair){p.re * q.re - p.im * q.im - (r.re * s.re - r.im * s.im),
                            p.re * q.im + p.im * q.re - (r.re * s.im + r.im * s.re)};
}

/* out = p q - r s; integers wrap. */
static void cross_tile(union cross_tile *out, const union cross_tile *const *in, enum dtype type, int64_t n)
{
    for (int64_t i = 0; i < n; ++i)
        if (type == DTYPE_I64)
            out->i64[i] =
                (int64_t)((uint64_t)in[0]->i64[i] * (uint64_t)in[1]->i64[i] - (uint64_t)in[2]->i64[i] * (uint64_t)in[3]->i64[i]);
        else if (type == DTYPE_F64)
            out->f64[i] = in[0]->f64[i] * in[1]->f64[i] - in[2]->f64[i] * in[3]->f64[i];
        else
            out->c128[i] = cross_pair(in[0]->c128[i], in[1]->c128[i], in[2]->c128[i], in[3]->c128[i]);
}

static void cross_range(void *argument, int64_t begin, int64_t end)
{
    const struct cross_work *const w = argument;
    union cross_tile a[AXES], b[AXES], result;
    char narrow[LOOP_TILE * sizeof(complex64_pair)];
    for (int64_t at = begin; at < end; at += LOOP_TILE) {
        const int64_t n = end - at < LOOP_TILE ? end - at : LOOP_TILE;
        for (int axis = 0; axis < AXES; ++axis) {
            read_elements(&w->a[axis], at, n, w->type, &a[axis]);
            read_elements(&w->b[axis], at, n, w->type, &b[axis]);
        }
        for (int axis = 0; axis < AXES; ++axis) {
            const int next = (axis + 1) % AXES, last = (axis + 2) % AXES;
            cross_tile(&result, (const union cross_tile *const[]){&a[next], &b[last], &a[last], &b[next]}, w->type, n);
            convert_elements(narrow, (enum dtype)w->out[axis].dtype, &result, w->type, n);
            tile_scatter(&w->out[axis], at, n, narrow);
        }
    }
}

static void split(struct view *components, const struct view *v, int dim)
{
    for (int axis = 0; axis < AXES; ++axis) {
        struct view *const c = &components[axis];
        *c = *v;
        c->data += axis * v->strides[dim] * (int64_t)dtype_bytes((enum dtype)v->dtype);
        c->sizes[dim] = 1;
        view_refresh(c);
    }
}

/* Operands: self, other, out. */
static int cross_run(struct plan *plan)
{
    const int dim = (int)plan->immediate.i[0];
    const struct view *const out = &plan->operands[2];
    struct cross_work w = {.type = dtype_kind((enum dtype)out->dtype) == KIND_COMPLEX ? DTYPE_C128
                                   : dtype_is_floating((enum dtype)out->dtype)        ? DTYPE_F64
                                                                                      : DTYPE_I64};
    if (out->count == 0)
        return 0;
    split(w.a, &plan->operands[0], dim);
    split(w.b, &plan->operands[1], dim);
    split(w.out, out, dim);
    pool_for(w.out[0].count, ITEM, cross_range, &w);
    return 0;
}

aclnnStatus aclnnLinalgCrossGetWorkspaceSize(const aclTensor *self, const aclTensor *other, int64_t dim, aclTensor *out,
                                             uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *a, *b, *to;
    int wrapped;
    TRY(plan_begin(OPERATOR_LinalgCross, cross_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, self, "self", &a));
    PLAN_TRY(plan, plan_input(plan, other, "other", &b));
    PLAN_TRY(plan, plan_output(plan, out, "out", &to));
    PLAN_TRY(plan, check_same_dtype(plan, a, "self", b, "other"));
    PLAN_TRY(plan, check_same_dtype(plan, a, "self", to, "out"));
    PLAN_TRY(plan, check_output_not_expanded(plan, to, "out"));
    PLAN_TRY(plan, check_dim(plan, dim, to, "dim", &wrapped));
    PLAN_REQUIRE(plan, to->dtype != DTYPE_B8, ACLNN_ERROR_PARAM, "aclnnLinalgCross: self is %s; numbers are wanted", view_text(a));
    PLAN_REQUIRE(plan,
                 view_expand(a, to->sizes, to->ndim) && view_expand(b, to->sizes, to->ndim) && to->ndim > 0 &&
                     to->sizes[wrapped] == AXES,
                 ACLNN_ERROR_PARAM, "aclnnLinalgCross: self is %s, other is %s, out is %s; vectors of 3 along dim %lld are wanted",
                 view_text(a), view_text(b), view_text(to), (long long)dim);
    plan->immediate.i[0] = wrapped;
    return finish_by_size(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(LinalgCross)
