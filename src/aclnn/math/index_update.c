/* Writes along one indexed dimension: index_fill, index_add, index_copy. The work is in index_blocks.c. */
#include <string.h>

#include "aclnn/math/index_blocks.h"
#include "aclnn/math/operand_check.h"
#include "aclnn/math/scalar_element.h"
#include "aclnn/math/tile.h"
#include "aclnnop/all_operators.h"
#include "base/pool.h"

enum { GRAIN = 1 << 14 };

/* Operands: self (absent when in place), index, source (absent for fill), out. */
enum { SELF, INDEX, SOURCE, OUT };

struct update_job {
    int dim;
    bool fills, adds, scales;
    complex64_pair value;  /* fill: one element */
    complex64_pair scale;  /* add: source is multiplied by it, */
    int64_t integer_scale; /* or by this */
};

struct scale_work {
    const struct view *flat; /* of numbers; complex ones are two each */
    const struct update_job *job;
    enum accumulate type;
};

/* Pairs of parts times a complex factor. n is even: chunks are, and so are complex sources. */
static void scale_pairs(void *tile, enum accumulate type, complex64_pair factor, int64_t n)
{
    double *const wide = tile;
    float *const narrow = tile;
    const complex32_pair f = {(float)factor.re, (float)factor.im};
    for (int64_t i = 0; i < n; i += 2)
        if (type == ACCUMULATE_F64) {
            const complex64_pair x = {wide[i], wide[i + 1]};
            wide[i] = x.re * factor.re - x.im * factor.im;
            wide[i + 1] = x.re * factor.im + x.im * factor.re;
        } else {
            const complex32_pair x = {narrow[i], narrow[i + 1]};
            narrow[i] = x.re * f.re - x.im * f.im;
            narrow[i + 1] = x.re * f.im + x.im * f.re;
        }
}

static void scale_range(void *argument, int64_t begin, int64_t end)
{
    const struct scale_work *const w = argument;
    const struct update_job *const job = w->job;
    double tile[TILE];
    for (int64_t at = begin; at < end; at += TILE) {
        const int64_t n = end - at < TILE ? end - at : TILE;
        tile_read(tile, w->type, w->flat, at, n);
        if (job->scale.im != 0)
            scale_pairs(tile, w->type, job->scale, n);
        else
            for (int64_t i = 0; i < n; ++i)
                if (w->type == ACCUMULATE_F64)
                    tile[i] *= job->scale.re;
                else if (w->type == ACCUMULATE_F32)
                    ((float *)(void *)tile)[i] *= (float)job->scale.re;
                else
                    ((int64_t *)(void *)tile)[i] *= job->integer_scale;
        tile_write(w->flat, at, n, tile, w->type);
    }
}

/* source * alpha, in the workspace. */
static struct view scaled_source(struct plan *plan)
{
    const struct update_job *const job = PLAN_IMMEDIATE(plan, struct update_job);
    const struct view *const in = &plan->operands[SOURCE];
    struct view out = *in;
    if (!job->scales || in->count == 0)
        return *in;
    out.data = plan->workspace;
    view_make_contiguous(&out);
    view_copy(&out, in);
    struct view flat = out;
    flat.ndim = 1;
    flat.sizes[0] = out.count;
    view_make_contiguous(&flat);
    view_as_real(&flat);
    struct scale_work w = {&flat, job, accumulate_of((enum dtype)flat.dtype)};
    pool_for(flat.count, GRAIN, scale_range, &w);
    return out;
}

static int update_run(struct plan *plan)
{
    struct update_job *const job = PLAN_IMMEDIATE(plan, struct update_job);
    const struct view *const self = &plan->operands[SELF], *const out = &plan->operands[OUT];
    const struct view index = view_at_least_1d(plan->operands[INDEX]), to = view_at_least_1d(*out);
    if (out->count == 0)
        return 0;
    if (self->data && self->data != out->data)
        view_copy(out, self);
    if (job->fills) {
        const struct view element = {.data = (char *)&job->value, .dtype = out->dtype, .count = 1, .contiguous = true};
        return index_blocks_on_dim_wrapping(plan, &to, &index, &element, job->dim, BLOCKS_WRITE);
    }
    const struct view source = view_at_least_1d(scaled_source(plan));
    return index_blocks_on_dim(plan, &to, &index, &source, job->dim, job->adds ? BLOCKS_ADD : BLOCKS_WRITE);
}

struct update_arguments {
    const aclTensor *self;
    int64_t dim;
    const aclTensor *index;
    const aclIntArray *index_array; /* instead of index */
    const aclTensor *source;
    const aclScalar *value; /* instead of source */
    aclTensor *out;         /* NULL: in place */
};

/* An index that came as an array lives in the plan. */
static int add_index(struct plan *plan, const struct update_arguments *a, struct view **index)
{
    void *memory;
    if (a->index) {
        TRY(plan_input(plan, a->index, "index", index));
        return check_index_dtype(plan, *index, "index");
    }
    TRY(check_not_null(plan, a->index_array, "index"));
    TRY(plan_optional(plan, NULL, ROLE_INPUT, "index", index));
    TRY(plan_extra(plan, a->index_array->count * 8, &memory));
    memcpy(memory, a->index_array->values, a->index_array->count * 8);
    **index = (struct view){.data = memory, .dtype = DTYPE_I64, .ndim = 1, .sizes = {(int64_t)a->index_array->count}};
    view_make_contiguous(*index);
    return 0;
}

static int check_source(struct plan *plan, const struct view *source, const struct view *index, const struct view *to, int dim)
{
    const struct view a = view_at_least_1d(*source), b = view_at_least_1d(*to);
    bool fits = a.ndim == b.ndim;
    TRY(check_same_dtype(plan, source, "source", to, "self"));
    for (int d = 0; fits && d < a.ndim; ++d)
        fits = a.sizes[d] == (d == dim ? index->count : b.sizes[d]);
    if (fits)
        return 0;
    return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "source is %s; self is %s and %lld indices select along dim %d",
                     view_text(source), view_text(to), (long long)index->count, dim);
}

static int update_checked(struct plan *plan, const struct update_arguments *a)
{
    struct update_job *const job = PLAN_IMMEDIATE(plan, struct update_job);
    struct view *from, *index, *source, *to;
    plan->copes_with_same = 1u << SELF;
    TRY(a->out ? plan_input(plan, a->self, "self", &from) : plan_optional(plan, NULL, ROLE_INPUT, "self", &from));
    TRY(add_index(plan, a, &index));
    TRY(job->fills ? plan_optional(plan, NULL, ROLE_INPUT, "source", &source) : plan_input(plan, a->source, "source", &source));
    TRY(a->out ? plan_output(plan, a->out, "out", &to) : plan_inout(plan, a->self, "selfRef", &to));
    TRY(check_dim(plan, a->dim, to, "dim", &job->dim));
    TRY(check_output_not_expanded(plan, to, a->out ? "out" : "selfRef"));
    if (index->ndim > 1)
        return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "index is %s; it has at most one dimension", view_text(index));
    if (a->out) {
        TRY(check_same_dtype(plan, from, "self", to, "out"));
        TRY(check_sizes(plan, to, "out", from->sizes, from->ndim));
    }
    if (!job->fills)
        return check_source(plan, source, index, to, job->dim);
    TRY(check_not_null(plan, a->value, "value"));
    element_from_scalar(&job->value, (enum dtype)to->dtype, a->value);
    return 0;
}

static int update_plan(enum operator_id id, struct update_arguments arguments, struct update_job job, const aclScalar *alpha,
                       uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    uint64_t workspace = 0;
    TRY(plan_begin(id, update_run, workspace_size, executor, &plan));
    *PLAN_IMMEDIATE(plan, struct update_job) = job;
    PLAN_TRY(plan, update_checked(plan, &arguments));
    if (alpha) {
        struct update_job *const kept = PLAN_IMMEDIATE(plan, struct update_job);
        const struct view *const source = &plan->operands[SOURCE];
        PLAN_TRY(plan, check_factor(plan, alpha, "alpha", (enum dtype)source->dtype));
        kept->scale = scalar_to_complex(alpha);
        kept->integer_scale = scalar_to_int64(alpha);
        kept->scales = kept->scale.re != 1 || kept->scale.im != 0;
        if (kept->scales)
            workspace = (uint64_t)source->count * dtype_bytes((enum dtype)source->dtype);
    }
    return finish_by_size(plan, workspace, workspace_size, executor);
}

static const struct update_job FILL = {.fills = true}, ADD = {.adds = true}, COPY = {.fills = false};

aclnnStatus aclnnIndexFillGetWorkspaceSize(const aclTensor *self, int64_t dim, const aclTensor *index, const aclScalar *value,
                                           aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    REQUIRE(out && index, ACLNN_ERROR_NULLPTR, "index or out is null");
    return update_plan(OPERATOR_IndexFill,
                       (struct update_arguments){.self = self, .dim = dim, .index = index, .value = value, .out = out}, FILL, NULL,
                       workspaceSize, executor);
}

aclnnStatus aclnnInplaceIndexFillGetWorkspaceSize(aclTensor *selfRef, int64_t dim, const aclTensor *index, const aclScalar *value,
                                                  uint64_t *workspaceSize, aclOpExecutor **executor)
{
    REQUIRE(index, ACLNN_ERROR_NULLPTR, "index is null");
    return update_plan(OPERATOR_InplaceIndexFill,
                       (struct update_arguments){.self = selfRef, .dim = dim, .index = index, .value = value}, FILL, NULL,
                       workspaceSize, executor);
}

aclnnStatus aclnnIndexFillTensorGetWorkspaceSize(const aclTensor *self, int64_t dim, const aclIntArray *index,
                                                 const aclScalar *value, aclTensor *out, uint64_t *workspaceSize,
                                                 aclOpExecutor **executor)
{
    REQUIRE(out, ACLNN_ERROR_NULLPTR, "out is null");
    return update_plan(OPERATOR_IndexFillTensor,
                       (struct update_arguments){.self = self, .dim = dim, .index_array = index, .value = value, .out = out}, FILL,
                       NULL, workspaceSize, executor);
}

aclnnStatus aclnnInplaceIndexFillTensorGetWorkspaceSize(aclTensor *selfRef, int64_t dim, const aclIntArray *index,
                                                        const aclScalar *value, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return update_plan(OPERATOR_InplaceIndexFillTensor,
                       (struct update_arguments){.self = selfRef, .dim = dim, .index_array = index, .value = value}, FILL, NULL,
                       workspaceSize, executor);
}

aclnnStatus aclnnIndexAddGetWorkspaceSize(const aclTensor *self, int64_t dim, const aclTensor *index, const aclTensor *source,
                                          const aclScalar *alpha, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    REQUIRE(out && index, ACLNN_ERROR_NULLPTR, "index or out is null");
    return update_plan(OPERATOR_IndexAdd,
                       (struct update_arguments){.self = self, .dim = dim, .index = index, .source = source, .out = out}, ADD,
                       alpha, workspaceSize, executor);
}

/* mode chooses between precision and speed upstream; here both are the same. */
aclnnStatus aclnnIndexAddV2GetWorkspaceSize(const aclTensor *self, int64_t dim, const aclTensor *index, const aclTensor *source,
                                            const aclScalar *alpha, int64_t mode, aclTensor *out, uint64_t *workspaceSize,
                                            aclOpExecutor **executor)
{
    REQUIRE(out && index, ACLNN_ERROR_NULLPTR, "index or out is null");
    return update_plan(OPERATOR_IndexAddV2,
                       (struct update_arguments){.self = self, .dim = dim, .index = index, .source = source, .out = out}, ADD,
                       alpha, workspaceSize, executor);
}

aclnnStatus aclnnIndexCopyGetWorkspaceSize(aclTensor *selfRef, int64_t dim, const aclTensor *index, const aclTensor *source,
                                           aclTensor *outRef, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    REQUIRE(outRef && index, ACLNN_ERROR_NULLPTR, "index or outRef is null");
    return update_plan(OPERATOR_IndexCopy,
                       (struct update_arguments){.self = selfRef, .dim = dim, .index = index, .source = source, .out = outRef},
                       COPY, NULL, workspaceSize, executor);
}

aclnnStatus aclnnInplaceIndexCopyGetWorkspaceSize(aclTensor *selfRef, int64_t dim, const aclTensor *index, const aclTensor *source,
                                                  uint64_t *workspaceSize, aclOpExecutor **executor)
{
    REQUIRE(index, ACLNN_ERROR_NULLPTR, "index is null");
    return update_plan(OPERATOR_InplaceIndexCopy,
                       (struct update_arguments){.self = selfRef, .dim = dim, .index = index, .source = source}, COPY, NULL,
                       workspaceSize, executor);
}

ACLNN_PHASE_2(IndexFill)
ACLNN_PHASE_2(InplaceIndexFill)
ACLNN_PHASE_2(IndexFillTensor)
ACLNN_PHASE_2(InplaceIndexFillTensor)
ACLNN_PHASE_2(IndexAdd)
ACLNN_PHASE_2(IndexAddV2)
ACLNN_PHASE_2(IndexCopy)
ACLNN_PHASE_2(InplaceIndexCopy)
