/* Tensors made from numbers (arange, linspace, eye) and triangles of matrices. */
#include <math.h>
#include <string.h>

#include "aclnn/math/operand_check.h"
#include "aclnn/math/tile.h"
#include "aclnnop/all_operators.h"
#include "base/pool.h"
#include "kernels/index.h"
#include "kernels/kernels.h"

enum { GRAIN = 1 << 14 };

/* --- ranges of numbers ------------------------------------------------------------------------------------------------------ */

/* Value i is start + step * i; linspace counts its second half back from the end, so that both ends are exact. */
struct sequence {
    struct view out;
    bool integers, from_both_ends, raises; /* raises: the value is base to that power */
    int64_t first_integer, integer_step;
    double start, end, step, base;
};

static void sequence_range(void *argument, int64_t begin, int64_t end)
{
    const struct sequence *const s = argument;
    double tile[TILE];
    int64_t *const integers = (int64_t *)(void *)tile;
    const int64_t half = s->out.count / 2;
    for (int64_t at = begin; at < end; at += TILE) {
        const int64_t n = end - at < TILE ? end - at : TILE;
        if (s->integers) {
            for (int64_t i = 0; i < n; ++i)
                integers[i] = s->first_integer + s->integer_step * (at + i);
            tile_write(&s->out, at, n, tile, ACCUMULATE_I64);
            continue;
        }
        for (int64_t i = 0; i < n; ++i) {
            const int64_t k = at + i;
            tile[i] =
                s->from_both_ends && k >= half ? s->end - s->step * (double)(s->out.count - 1 - k) : s->start + s->step * (double)k;
        }
        for (int64_t i = 0; s->raises && i < n; ++i)
            tile[i] = pow(s->base, tile[i]);
        tile_write(&s->out, at, n, tile, ACCUMULATE_F64);
    }
}

static int sequence_run(struct plan *plan)
{
    struct sequence *const s = PLAN_IMMEDIATE(plan, struct sequence);
    s->out = plan->operands[0];
    if (s->out.count > 0)
        pool_for(s->out.count, GRAIN, sequence_range, s);
    return 0;
}

static int sequence_begin(enum operator_id id, const aclScalar *start, const aclScalar *end, aclTensor *out,
                          uint64_t *workspace_size, aclOpExecutor **executor, struct plan **plan)
{
    struct view *to;
    TRY(plan_begin(id, sequence_run, workspace_size, executor, plan));
    PLAN_TRY(*plan, plan_output(*plan, out, id == OPERATOR_LogSpace ? "result" : "out", &to));
    PLAN_TRY(*plan, check_not_complex(*plan, to, "out"));
    PLAN_TRY(*plan, check_output_not_expanded(*plan, to, "out"));
    PLAN_TRY(*plan, check_not_null(*plan, start, "start"));
    PLAN_TRY(*plan, check_not_null(*plan, end, "end"));
    struct sequence *const s = PLAN_IMMEDIATE(*plan, struct sequence);
    *s = (struct sequence){.start = scalar_to_double(start), .end = scalar_to_double(end)};
    return 0;
}

/* How many values there are, as torch counts them: of integers exactly, else in double, where rounding may add or take one. */
static int check_range_count(const struct plan *plan, const aclScalar *start, const aclScalar *end, const aclScalar *step)
{
    const struct view *const out = &plan->operands[0];
    const bool inclusive = plan->operator_id == OPERATOR_Range;
    const bool exact = out->dtype == DTYPE_I64 && dtype_kind(start->dtype) <= KIND_INTEGER &&
                       dtype_kind(end->dtype) <= KIND_INTEGER && dtype_kind(step->dtype) <= KIND_INTEGER;
    const struct sequence *const s = PLAN_IMMEDIATE(plan, struct sequence);
    int64_t span;
    bool fits = true;
    double wanted = 0;
    if (exact && !__builtin_sub_overflow(scalar_to_int64(end), s->first_integer, &span)) {
        const int64_t steps = span / s->integer_step + (inclusive || span % s->integer_step != 0);
        fits = out->count == steps;
        wanted = (double)steps;
    } else {
        const double steps = (s->end - s->start) / s->step;
        wanted = inclusive ? floor(steps + 1) : ceil(steps);
        fits = fabs((double)out->count - wanted) <= 1;
    }
    REQUIRE(fits, ACLNN_ERROR_PARAM, "%s: out is %s; from %g to %g by %g there are %.0f values", plan_name(plan), view_text(out),
            s->start, s->end, s->step, wanted);
    return 0;
}

/* torch's rule: an integer tensor counts in integers, whatever the scalars are. */
static int range_plan(enum operator_id id, const aclScalar *start, const aclScalar *end, const aclScalar *step, aclTensor *out,
                      uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(sequence_begin(id, start, end, out, workspace_size, executor, &plan));
    PLAN_TRY(plan, check_not_null(plan, step, "step"));
    struct sequence *const s = PLAN_IMMEDIATE(plan, struct sequence);
    s->step = scalar_to_double(step);
    s->integers = dtype_kind((enum dtype)plan->operands[0].dtype) <= KIND_INTEGER;
    s->first_integer = scalar_to_int64(start);
    s->integer_step = scalar_to_int64(step);
    PLAN_REQUIRE(plan, s->step != 0, ACLNN_ERROR_PARAM, "%s: step is 0", operator_name(id));
    PLAN_REQUIRE(plan, (s->step > 0) == (s->end >= s->start) || s->end == s->start, ACLNN_ERROR_PARAM,
                 "%s: start %g, end %g and step %g have no values between them", operator_name(id), s->start, s->end, s->step);
    PLAN_TRY(plan, check_range_count(plan, start, end, step));
    return finish_by_size(plan, 0, workspace_size, executor);
}

aclnnStatus aclnnArangeGetWorkspaceSize(const aclScalar *start, const aclScalar *end, const aclScalar *step, aclTensor *out,
                                        uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return range_plan(OPERATOR_Arange, start, end, step, out, workspaceSize, executor);
}
ACLNN_PHASE_2(Arange)

aclnnStatus aclnnRangeGetWorkspaceSize(const aclScalar *start, const aclScalar *end, const aclScalar *step, aclTensor *out,
                                       uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return range_plan(OPERATOR_Range, start, end, step, out, workspaceSize, executor);
}
ACLNN_PHASE_2(Range)

/* base NULL: linspace. */
static int steps_plan(enum operator_id id, const aclScalar *start, const aclScalar *end, int64_t steps, const double *base,
                      aclTensor *out, uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(sequence_begin(id, start, end, out, workspace_size, executor, &plan));
    struct sequence *const s = PLAN_IMMEDIATE(plan, struct sequence);
    PLAN_REQUIRE(plan, steps == plan->operands[0].count, ACLNN_ERROR_PARAM, "%s: steps is %lld and out has %lld elements",
                 operator_name(id), (long long)steps, (long long)plan->operands[0].count);
    s->step = steps > 1 ? (s->end - s->start) / (double)(steps - 1) : 0;
    s->from_both_ends = steps > 1;
    s->raises = base != NULL;
    s->base = base ? *base : 0;
    return finish_by_size(plan, 0, workspace_size, executor);
}

aclnnStatus aclnnLinspaceGetWorkspaceSize(const aclScalar *start, const aclScalar *end, int64_t steps, aclTensor *out,
                                          uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return steps_plan(OPERATOR_Linspace, start, end, steps, NULL, out, workspaceSize, executor);
}
ACLNN_PHASE_2(Linspace)

aclnnStatus aclnnLogSpaceGetWorkspaceSize(const aclScalar *start, const aclScalar *end, int64_t steps, double base,
                                          const aclTensor *result, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return steps_plan(OPERATOR_LogSpace, start, end, steps, &base, (aclTensor *)(uintptr_t)result, workspaceSize, executor);
}
ACLNN_PHASE_2(LogSpace)

/* --- eye ------------------------------------------------------------------------------------------------------------------- */

static void eye_rows(void *argument, int64_t begin, int64_t end)
{
    const struct view *const out = argument;
    const int64_t bytes = (int64_t)dtype_bytes((enum dtype)out->dtype);
    const complex64_pair zero = {0, 0};
    complex64_pair one = {0, 0};
    if (dtype_kind((enum dtype)out->dtype) == KIND_COMPLEX)
        kernels->convert->store[out->dtype == DTYPE_C64 ? DTYPE_F32 : DTYPE_F64][ACCUMULATE_F64](&one, 1, &(double){1}, 1);
    else
        kernels->convert->store[out->dtype][ACCUMULATE_F64](&one, 1, &(double){1}, 1);
    const move_fn move = kernels->index->move[move_size((enum dtype)out->dtype)];
    for (int64_t row = begin; row < end; ++row) {
        char *const place = out->data + row * out->strides[0] * bytes;
        move(place, out->strides[1], &zero, 0, out->sizes[1]);
        if (row < out->sizes[1])
            move(place + row * out->strides[1] * bytes, 1, &one, 1, 1);
    }
}

static int eye_run(struct plan *plan)
{
    struct view *const out = &plan->operands[0];
    if (out->count > 0)
        pool_for(out->sizes[0], 1 + GRAIN / out->sizes[1], eye_rows, out);
    return 0;
}

aclnnStatus aclnnEyeGetWorkspaceSize(int64_t n, int64_t m, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *to;
    const int64_t sizes[2] = {n, m};
    TRY(plan_begin(OPERATOR_Eye, eye_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_output(plan, out, "out", &to));
    PLAN_TRY(plan, check_sizes(plan, to, "out", sizes, 2));
    PLAN_TRY(plan, check_output_not_expanded(plan, to, "out"));
    return finish_by_size(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(Eye)

/* --- triangles --------------------------------------------------------------------------------------------------------------- */

/* Operands: self, out (the same memory when in place). */
struct triangle {
    const struct view *in, *out;
    int64_t diagonal;
    bool upper;
};

static void triangle_rows(void *argument, int64_t begin, int64_t end)
{
    const struct triangle *const t = argument;
    const struct view *const in = t->in, *const out = t->out;
    const int last = in->ndim - 1;
    const int64_t bytes = (int64_t)dtype_bytes((enum dtype)in->dtype), width = in->sizes[last], height = in->sizes[last - 1];
    const move_fn move = kernels->index->move[move_size((enum dtype)in->dtype)];
    const complex64_pair zero = {0, 0};
    for (int64_t row = begin; row < end; ++row) {
        const char *const from = in->data + walk_offset(row, last, in->sizes, in->strides) * bytes;
        char *const to = out->data + walk_offset(row, last, out->sizes, out->strides) * bytes;
        /* Columns below `edge` are on one side, the others on the other; the upper triangle starts on its diagonal. */
        int64_t edge = row % height + t->diagonal + (t->upper ? 0 : 1);
        edge = edge < 0 ? 0 : edge > width ? width : edge;
        const int64_t keep = t->upper ? edge : 0, kept = t->upper ? width - edge : edge;
        const int64_t clear = t->upper ? 0 : edge;
        move(to + clear * out->strides[last] * bytes, out->strides[last], &zero, 0, width - kept);
        if (from != to || in->strides[last] != out->strides[last])
            move(to + keep * out->strides[last] * bytes, out->strides[last], from + keep * in->strides[last] * bytes,
                 in->strides[last], kept);
    }
}

struct triangle_job {
    int64_t diagonal;
    bool upper;
};

static int triangle_run(struct plan *plan)
{
    const struct triangle_job *const job = PLAN_IMMEDIATE(plan, struct triangle_job);
    const struct view *const in = &plan->operands[0], *const out = &plan->operands[plan->operand_count - 1];
    struct triangle t = {in, out, job->diagonal, job->upper};
    if (in->count > 0)
        pool_for(in->count / in->sizes[in->ndim - 1], 1 + GRAIN / in->sizes[in->ndim - 1], triangle_rows, &t);
    return 0;
}

/* out NULL: in place. */
static int triangle_plan(enum operator_id id, const aclTensor *self, int64_t diagonal, const aclTensor *out, bool in_place,
                         uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *from, *to;
    TRY(plan_begin(id, triangle_run, workspace_size, executor, &plan));
    if (in_place) {
        PLAN_TRY(plan, plan_inout(plan, self, "selfRef", &from));
        to = from;
    } else {
        PLAN_TRY(plan, plan_input(plan, self, "self", &from));
        PLAN_TRY(plan, plan_output(plan, out, "out", &to));
        PLAN_TRY(plan, check_same_dtype(plan, from, "self", to, "out"));
        PLAN_TRY(plan, check_sizes(plan, to, "out", from->sizes, from->ndim));
        plan->copes_with_same = 1; /* self */
    }
    PLAN_TRY(plan, check_output_not_expanded(plan, to, in_place ? "selfRef" : "out"));
    PLAN_REQUIRE(plan, from->ndim >= 2, ACLNN_ERROR_PARAM, "%s: self is %s; it has at least two dimensions", plan_name(plan),
                 view_text(from));
    const bool upper = id == OPERATOR_Triu || id == OPERATOR_InplaceTriu;
    *PLAN_IMMEDIATE(plan, struct triangle_job) = (struct triangle_job){diagonal, upper};
    return finish_by_size(plan, 0, workspace_size, executor);
}

#define TRIANGLE(Name, in_place_const)                                                                                     \
    aclnnStatus aclnn##Name##GetWorkspaceSize(const aclTensor *self, int64_t diagonal, aclTensor *out,                     \
                                              uint64_t *workspaceSize, aclOpExecutor **executor)                           \
    {                                                                                                                      \
        return triangle_plan(OPERATOR_##Name, self, diagonal, out, false, workspaceSize, executor);                        \
    }                                                                                                                      \
    ACLNN_PHASE_2(Name)                                                                                                    \
    aclnnStatus aclnnInplace##Name##GetWorkspaceSize(in_place_const aclTensor *selfRef, int64_t diagonal,                  \
                                                     uint64_t *workspaceSize, aclOpExecutor **executor)                    \
    {                                                                                                                      \
        return triangle_plan(OPERATOR_Inplace##Name, selfRef, diagonal, NULL, true, workspaceSize, executor);              \
    }                                                                                                                      \
    ACLNN_PHASE_2(Inplace##Name)
TRIANGLE(Tril, const)
TRIANGLE(Triu, )
