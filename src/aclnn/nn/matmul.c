/* Mm, Matmul, BatchMatMul, Addmm, Baddbmm, Addbmm, Addmv, Mv, Dot: one form, views [batch..., rows, columns].
 *
 * Invariant: phase 1 rewrites the plan's views to that form (operands 0: a, 1: b, 2: addend or absent, 3: out), so the run
 * function needs nothing else. cubeMathType only allows less precision; we always compute f32 in f32 and ignore it. */
#include "aclnn/nn/matmul.h"

#include "aclnn/math/operand_check.h"
#include "aclnn/nn/staging.h"
#include "aclnnop/all_operators.h"
#include "kernels/kernels.h"

enum { A, B, ADDEND, OUT };

struct matmul {
    struct staging staging; /* of Addbmm only */
    complex64_pair alpha, beta;
    int64_t alpha_integer, beta_integer;
    enum dtype compute;
    bool aside;
};

/* --- running -------------------------------------------------------------------------------------------------------- */

static struct gemm_operand matrix_of(const struct view *v)
{
    return (struct gemm_operand){v->data, v->strides[v->ndim - 2], v->strides[v->ndim - 1], v->dtype};
}

static struct gemm_operand transposed(struct gemm_operand m)
{
    return (struct gemm_operand){m.data, m.column_stride, m.row_stride, m.dtype};
}

/* The kernels want rows of out without gaps, and a vector on the left: otherwise the transposed product is computed. */
static bool is_turned(const struct view *out)
{
    const int n = out->ndim;
    if (out->sizes[n - 2] == 1)
        return false;
    return out->sizes[n - 1] == 1 || (out->strides[n - 1] != 1 && out->strides[n - 2] == 1);
}

static struct gemm_problem problem_of(const struct view *operands, const struct matmul *m)
{
    const struct view *const out = &operands[OUT], *const a = &operands[A];
    struct gemm_problem p = {.rows = out->sizes[out->ndim - 2],
                             .columns = out->sizes[out->ndim - 1],
                             .depth = a->sizes[a->ndim - 1],
                             .a = matrix_of(a),
                             .b = matrix_of(&operands[B]),
                             .alpha = m->alpha.re,
                             .beta = m->beta.re,
                             .alpha_imaginary = m->alpha.im,
                             .beta_imaginary = m->beta.im,
                             .alpha_integer = m->alpha_integer,
                             .beta_integer = m->beta_integer,
                             .out = out->data,
                             .aside = m->aside,
                             .out_dtype = out->dtype};
    p.out_row_stride = out->strides[out->ndim - 2];
    p.out_column_stride = out->strides[out->ndim - 1];
    if (operands[ADDEND].data)
        p.addend = matrix_of(&operands[ADDEND]);
    if (is_turned(out)) {
        const struct gemm_operand left = p.a;
        p.a = transposed(p.b);
        p.b = transposed(left);
        p.addend = transposed(p.addend);
        const int64_t rows = p.rows, stride = p.out_row_stride;
        p.rows = p.columns;
        p.columns = rows;
        p.out_row_stride = p.out_column_stride;
        p.out_column_stride = stride;
    }
    return p;
}

/* Address of the batch-th matrix: all dimensions but the last two. */
static char *matrix_at(const struct view *v, int64_t batch)
{
    int64_t offset = 0;
    for (int d = v->ndim - 3; d >= 0; --d) {
        offset += batch % v->sizes[d] * v->strides[d];
        batch /= v->sizes[d];
    }
    return v->data + offset * (int64_t)dtype_bytes((enum dtype)v->dtype);
}

struct batch_context {
    const struct view *operands;
    bool turned; /* problem.a is operand B */
};

static void advance(const void *context, int64_t batch, struct gemm_problem *p)
{
    const struct batch_context *const c = context;
    const struct view *const operands = c->operands;
    p->a.data = matrix_at(&operands[c->turned ? B : A], batch);
    p->b.data = matrix_at(&operands[c->turned ? A : B], batch);
    if (p->addend.data)
        p->addend.data = matrix_at(&operands[ADDEND], batch);
    p->out = matrix_at(&operands[OUT], batch);
}

static int run_matmul(struct plan *plan)
{
    const struct matmul *const m = PLAN_IMMEDIATE(plan, struct matmul);
    const struct view *const out = &plan->operands[OUT];
    const struct gemm_problem problem = problem_of(plan->operands, m);
    int64_t batches = 1;
    for (int d = 0; d < out->ndim - 2; ++d)
        batches *= out->sizes[d];
    const struct batch_context context = {plan->operands, is_turned(out)};
    return matmul_run(&problem, m->compute, batches, batches > 1 ? advance : NULL, &context);
}

/* The sum over the batch is a product with the batch as part of the depth: a as [rows, batch x depth], b as
 * [batch x depth, columns], each copied unless it lies so already. */
static int run_addbmm(struct plan *plan)
{
    const struct matmul *const m = PLAN_IMMEDIATE(plan, struct matmul);
    struct view operands[4] = {plan->operands[A], plan->operands[B], plan->operands[ADDEND], plan->operands[OUT]};
    for (int i = A; i <= B; ++i) {
        struct view *const v = &operands[i];
        v->data = (char *)(uintptr_t)stage_read(plan, &m->staging, i);
        v->dtype = (uint8_t)m->compute;
        const int64_t rows = i == A ? v->sizes[0] : v->sizes[0] * v->sizes[1];
        v->sizes[1] = i == A ? v->sizes[1] * v->sizes[2] : v->sizes[2];
        v->sizes[0] = rows;
        v->ndim = 2;
        view_make_contiguous(v);
    }
    const struct gemm_problem problem = problem_of(operands, m);
    return matmul_run(&problem, m->compute, 1, NULL, NULL);
}

/* --- planning ------------------------------------------------------------------------------------------------------- */

struct request {
    enum operator_id id;
    plan_run_fn run;
    const aclTensor *a, *b, *addend;
    const char *a_name, *b_name, *addend_name;
    const aclScalar *alpha, *beta;
    aclTensor *out;
    int rank;   /* that a and b must have; 0: any, as Matmul */
    bool outer; /* of two vectors */
};

/* Puts a dimension of size 1 at `position`. */
static void insert_dim(struct view *v, int position)
{
    for (int d = v->ndim; d > position; --d) {
        v->sizes[d] = v->sizes[d - 1];
        v->strides[d] = v->strides[d - 1];
    }
    v->sizes[position] = 1;
    v->strides[position] = 0;
    ++v->ndim;
    view_refresh(v);
}

static int choose_compute(struct plan *plan, const struct request *q, struct matmul *m)
{
    const struct view *const o = plan->operands;
    const char *const name = operator_name(q->id);
    const bool has_addend = o[ADDEND].data || o[ADDEND].dtype != DTYPE_NONE;
    const enum dtype out = (enum dtype)o[OUT].dtype;
    bool floating = true, f64 = false, same = true;
    for (int i = A; i <= OUT; ++i) {
        if (i == ADDEND && !has_addend)
            continue;
        floating &= dtype_is_floating((enum dtype)o[i].dtype);
        f64 |= o[i].dtype == DTYPE_F64;
        same &= o[i].dtype == out;
    }
    REQUIRE(floating || same, ACLNN_ERROR_PARAM,
            "%s: %s %s, %s %s and out %s must be of one type, or all of floating types (f64, f32, f16, bf16)", name, q->a_name,
            dtype_name((enum dtype)o[A].dtype), q->b_name, dtype_name((enum dtype)o[B].dtype), dtype_name(out));
    m->compute = floating ? (f64 ? DTYPE_F64 : DTYPE_F32) : out;
    REQUIRE(kernels->gemm->tile[m->compute], ACLNN_ERROR_PARAM, "%s: %s is %s; allowed are floating, integer and complex types",
            name, q->a_name, dtype_name((enum dtype)o[A].dtype));
    return 0;
}

static int check_inner(const struct request *q, const struct view *a, const struct view *b)
{
    const char *const name = operator_name(q->id);
    REQUIRE(q->rank == 0 || (a->ndim == q->rank && b->ndim == q->rank), ACLNN_ERROR_PARAM,
            "%s: %s %s and %s %s must have %d dimensions", name, q->a_name, view_text(a), q->b_name, view_text(b), q->rank);
    REQUIRE(a->ndim >= 1 && b->ndim >= 1, ACLNN_ERROR_PARAM, "%s: %s %s and %s %s must have at least 1 dimension", name, q->a_name,
            view_text(a), q->b_name, view_text(b));
    const int64_t depth = b->ndim == 1 ? b->sizes[0] : b->sizes[b->ndim - 2];
    REQUIRE(a->sizes[a->ndim - 1] == depth, ACLNN_ERROR_PARAM, "%s: the inner sizes of %s %s and %s %s differ", name, q->a_name,
            view_text(a), q->b_name, view_text(b));
    REQUIRE(a->ndim < TENSOR_MAX_DIMS && b->ndim < TENSOR_MAX_DIMS, ACLNN_ERROR_PARAM, "%s: more than %d dimensions", name,
            TENSOR_MAX_DIMS - 1);
    return 0;
}

/* Brings a, b, out (and the addend) to [batch..., rows, columns] with equal batch sizes. */
static int shape_operands(struct plan *plan, const struct request *q)
{
    struct view *const o = plan->operands, *const a = &o[A], *const b = &o[B], *const out = &o[OUT];
    const char *const name = operator_name(q->id);
    TRY(check_inner(q, a, b));
    const char *const a_text = view_text(a), *const b_text = view_text(b), *const out_text = view_text(out);
    const bool a_vector = a->ndim == 1, b_vector = b->ndim == 1;
    REQUIRE(out->ndim + a_vector + b_vector >= 2 && out->ndim + a_vector + b_vector <= TENSOR_MAX_DIMS, ACLNN_ERROR_PARAM,
            "%s: out %s has too few or too many dimensions for %s %s and %s %s", name, out_text, q->a_name, a_text, q->b_name,
            b_text);
    if (o[ADDEND].data || o[ADDEND].dtype != DTYPE_NONE)
        REQUIRE(view_expand(&o[ADDEND], out->sizes, out->ndim), ACLNN_ERROR_PARAM, "%s: %s %s can't be expanded to out %s", name,
                q->addend_name, view_text(&o[ADDEND]), out_text);
    if (b_vector) {
        insert_dim(b, 1);
        insert_dim(out, out->ndim);
        if (o[ADDEND].dtype != DTYPE_NONE)
            insert_dim(&o[ADDEND], o[ADDEND].ndim);
    }
    if (a_vector) {
        insert_dim(a, 0);
        insert_dim(out, out->ndim - 1);
        if (o[ADDEND].dtype != DTYPE_NONE)
            insert_dim(&o[ADDEND], o[ADDEND].ndim - 1);
    }
    int64_t sizes[TENSOR_MAX_DIMS];
    uint8_t ndim;
    struct view a_batch = *a, b_batch = *b;
    a_batch.ndim = (uint8_t)(a->ndim - 2);
    b_batch.ndim = (uint8_t)(b->ndim - 2);
    REQUIRE(view_broadcast_sizes(&a_batch, &b_batch, sizes, &ndim), ACLNN_ERROR_PARAM,
            "%s: the batch sizes of %s %s and %s %s don't broadcast", name, q->a_name, a_text, q->b_name, b_text);
    struct view expected = {.ndim = (uint8_t)(ndim + 2), .dtype = out->dtype};
    for (int d = 0; d < ndim; ++d)
        expected.sizes[d] = sizes[d];
    expected.sizes[ndim] = a->sizes[a->ndim - 2];
    expected.sizes[ndim + 1] = b->sizes[b->ndim - 1];
    REQUIRE(view_same_sizes(&expected, out), ACLNN_ERROR_PARAM, "%s: out is %s, but the product of %s %s and %s %s is %s", name,
            out_text, q->a_name, a_text, q->b_name, b_text, view_text(&expected));
    int64_t wide[TENSOR_MAX_DIMS];
    for (int i = A; i <= B; ++i) {
        for (int d = 0; d < ndim; ++d)
            wide[d] = sizes[d];
        wide[ndim] = o[i].sizes[o[i].ndim - 2];
        wide[ndim + 1] = o[i].sizes[o[i].ndim - 1];
        REQUIRE(view_expand(&o[i], wide, expected.ndim), ACLNN_ERROR_PARAM, "%s: %s can't be expanded", name,
                i == A ? q->a_name : q->b_name);
    }
    return 0;
}

/* Batch dimensions that are one stride apart in all operands become one, so that the walk over them is cheap; and a matrix b
 * shared by a batch of contiguous a is one big product. */
static void merge_batches(struct view *o)
{
    struct view *const a = &o[A], *const b = &o[B], *const out = &o[OUT], *const addend = &o[ADDEND];
    const int n = out->ndim;
    if (n < 3 || addend->data || a->sizes[n - 2] == 0)
        return;
    int64_t rows = out->sizes[n - 2];
    for (int d = n - 3; d >= 0; --d) {
        if (out->sizes[d] == 1)
            continue;
        if (b->strides[d] != 0 || a->strides[d] != a->strides[n - 2] * rows || out->strides[d] != out->strides[n - 2] * rows)
            return;
        rows *= out->sizes[d];
    }
    struct view *const all[] = {a, b, out};
    for (int i = 0; i < 3; ++i) {
        struct view *const v = all[i];
        const int64_t row_stride = v->strides[n - 2], column_stride = v->strides[n - 1];
        v->sizes[0] = v == b ? v->sizes[n - 2] : rows;
        v->sizes[1] = v->sizes[n - 1];
        v->strides[0] = row_stride;
        v->strides[1] = column_stride;
        v->ndim = 2;
        view_refresh(v);
    }
}

/* alpha and beta in all forms that a compute type may ask for. A missing one is 1. */
static int choose_factors(struct plan *plan, const aclScalar *alpha, const aclScalar *beta, struct matmul *m)
{
    static const struct aclScalar one = {.dtype = DTYPE_I64, .value.i64 = 1};
    TRY(check_factor(plan, alpha, "alpha", m->compute));
    TRY(check_factor(plan, beta, "beta", m->compute));
    m->alpha = scalar_to_complex(alpha ? alpha : &one);
    m->beta = scalar_to_complex(beta ? beta : &one);
    m->alpha_integer = scalar_to_int64(alpha ? alpha : &one);
    m->beta_integer = scalar_to_int64(beta ? beta : &one);
    return 0;
}

static int prepare(struct plan *plan, const struct request *q, struct matmul *m)
{
    struct view *const o = plan->operands;
    TRY(choose_compute(plan, q, m));
    TRY(shape_operands(plan, q));
    TRY(choose_factors(plan, q->alpha, q->beta, m));
    m->aside = o[ADDEND].data && view_overlaps(&o[ADDEND], &o[OUT]);
    plan->copes_with_overlap = 1u << ADDEND;
    merge_batches(o);
    return 0;
}

static int plan_matmul(const struct request *q, uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(q->id, q->run ? q->run : run_matmul, workspace_size, executor, &plan));
    struct view *a, *b;
    PLAN_TRY(plan, plan_input(plan, q->a, q->a_name, &a));
    PLAN_TRY(plan, plan_input(plan, q->b, q->b_name, &b));
    if (q->addend_name && q->addend != q->out)
        PLAN_TRY(plan, plan_input(plan, q->addend, q->addend_name, NULL));
    else
        PLAN_TRY(plan, plan_optional(plan, q->addend, ROLE_BOTH, "self", NULL));
    PLAN_TRY(plan, plan_output(plan, q->out, "out", NULL));
    if (q->outer) {
        PLAN_REQUIRE(plan, a->ndim == 1 && b->ndim == 1, ACLNN_ERROR_PARAM, "%s: %s %s and %s %s must have 1 dimension",
                     operator_name(q->id), q->a_name, view_text(a), q->b_name, view_text(b));
        insert_dim(a, 1);
        insert_dim(b, 0);
    }
    struct matmul *const m = PLAN_IMMEDIATE(plan, struct matmul);
    stage_begin(&m->staging);
    PLAN_TRY(plan, prepare(plan, q, m));
    return plan_finish(plan, m->staging.bytes, workspace_size, executor);
}

/* --- operators ------------------------------------------------------------------------------------------------------ */

aclnnStatus aclnnMmGetWorkspaceSize(const aclTensor *self, const aclTensor *mat2, aclTensor *out, int8_t cubeMathType,
                                    uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct request q = {.id = OPERATOR_Mm, .a = self, .b = mat2, .a_name = "self", .b_name = "mat2", .out = out, .rank = 2};
    return plan_matmul(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(Mm)

aclnnStatus aclnnMatmulGetWorkspaceSize(const aclTensor *self, const aclTensor *mat2, aclTensor *out, int8_t cubeMathType,
                                        uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct request q = {.id = OPERATOR_Matmul, .a = self, .b = mat2, .a_name = "self", .b_name = "mat2", .out = out};
    return plan_matmul(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(Matmul)

aclnnStatus aclnnBatchMatMulGetWorkspaceSize(const aclTensor *self, const aclTensor *mat2, aclTensor *out, int8_t cubeMathType,
                                             uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct request q = {
        .id = OPERATOR_BatchMatMul, .a = self, .b = mat2, .a_name = "self", .b_name = "mat2", .out = out, .rank = 3};
    return plan_matmul(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(BatchMatMul)

aclnnStatus aclnnMvGetWorkspaceSize(const aclTensor *self, const aclTensor *vec, aclTensor *out, int8_t cubeMathType,
                                    uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct request q = {.id = OPERATOR_Mv, .a = self, .b = vec, .a_name = "self", .b_name = "vec", .out = out};
    return plan_matmul(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(Mv)

aclnnStatus aclnnDotGetWorkspaceSize(const aclTensor *self, const aclTensor *tensor, aclTensor *out, uint64_t *workspaceSize,
                                     aclOpExecutor **executor)
{
    const struct request q = {
        .id = OPERATOR_Dot, .a = self, .b = tensor, .a_name = "self", .b_name = "tensor", .out = out, .rank = 1};
    return plan_matmul(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(Dot)

aclnnStatus aclnnAddmvGetWorkspaceSize(const aclTensor *self, const aclTensor *mat, const aclTensor *vec, const aclScalar *alpha,
                                       const aclScalar *beta, aclTensor *out, int8_t cubeMathType, uint64_t *workspaceSize,
                                       aclOpExecutor **executor)
{
    const struct request q = {.id = OPERATOR_Addmv,
                              .a = mat,
                              .b = vec,
                              .addend = self,
                              .a_name = "mat",
                              .b_name = "vec",
                              .addend_name = "self",
                              .alpha = alpha,
                              .beta = beta,
                              .out = out};
    return plan_matmul(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(Addmv)

#define ADD_PRODUCT(NAME, SECOND, THIRD, RANK)                                                                                \
    aclnnStatus aclnn##NAME##GetWorkspaceSize(const aclTensor *self, const aclTensor *SECOND, const aclTensor *THIRD,         \
                                              const aclScalar *beta, const aclScalar *alpha, aclTensor *out,                 \
                                              int8_t cubeMathType, uint64_t *workspaceSize, aclOpExecutor **executor)        \
    {                                                                                                                        \
        const struct request q = {.id = OPERATOR_##NAME, .a = SECOND, .b = THIRD, .addend = self, .a_name = #SECOND,         \
                                  .b_name = #THIRD, .addend_name = "self", .alpha = alpha, .beta = beta, .out = out,         \
                                  .rank = RANK};                                                                             \
        return plan_matmul(&q, workspaceSize, executor);                                                                     \
    }                                                                                                                        \
    ACLNN_PHASE_2(NAME)
ADD_PRODUCT(Addmm, mat1, mat2, 2)
ADD_PRODUCT(Baddbmm, batch1, batch2, 3)

aclnnStatus aclnnInplaceAddmmGetWorkspaceSize(const aclTensor *selfRef, const aclTensor *mat1, const aclTensor *mat2,
                                              const aclScalar *beta, const aclScalar *alpha, int8_t cubeMathType,
                                              uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct request q = {.id = OPERATOR_InplaceAddmm,
                              .a = mat1,
                              .b = mat2,
                              .addend = selfRef,
                              .a_name = "mat1",
                              .b_name = "mat2",
                              .addend_name = "selfRef",
                              .alpha = alpha,
                              .beta = beta,
                              .out = (aclTensor *)(uintptr_t)selfRef,
                              .rank = 2};
    return plan_matmul(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(InplaceAddmm)

aclnnStatus aclnnAddrGetWorkspaceSize(const aclTensor *self, const aclTensor *vec1, const aclTensor *vec2,
                                      const aclScalar *betaOptional, const aclScalar *alphaOptional, aclTensor *out,
                                      uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct request q = {.id = OPERATOR_Addr,
                              .a = vec1,
                              .b = vec2,
                              .addend = self,
                              .a_name = "vec1",
                              .b_name = "vec2",
                              .addend_name = "self",
                              .alpha = alphaOptional,
                              .beta = betaOptional,
                              .out = out,
                              .rank = 2,
                              .outer = true};
    return plan_matmul(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(Addr)

aclnnStatus aclnnInplaceAddrGetWorkspaceSize(aclTensor *selfRef, const aclTensor *vec1, const aclTensor *vec2,
                                             const aclScalar *betaOptional, const aclScalar *alphaOptional, uint64_t *workspaceSize,
                                             aclOpExecutor **executor)
{
    const struct request q = {.id = OPERATOR_InplaceAddr,
                              .a = vec1,
                              .b = vec2,
                              .addend = selfRef,
                              .a_name = "vec1",
                              .b_name = "vec2",
                              .addend_name = "selfRef",
                              .alpha = alphaOptional,
                              .beta = betaOptional,
                              .out = selfRef,
                              .rank = 2,
                              .outer = true};
    return plan_matmul(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(InplaceAddr)

aclnnStatus aclnnAddbmmGetWorkspaceSize(const aclTensor *self, const aclTensor *batch1, const aclTensor *batch2,
                                        const aclScalar *beta, const aclScalar *alpha, aclTensor *out, int8_t cubeMathType,
                                        uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct request q = {.id = OPERATOR_Addbmm, .a_name = "batch1", .b_name = "batch2"};
    struct plan *plan;
    struct view *a, *b, *addend, *o;
    TRY(plan_begin(q.id, run_addbmm, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, batch1, "batch1", &a));
    PLAN_TRY(plan, plan_input(plan, batch2, "batch2", &b));
    PLAN_TRY(plan, plan_input(plan, self, "self", &addend));
    PLAN_TRY(plan, plan_output(plan, out, "out", &o));
    struct matmul *const m = PLAN_IMMEDIATE(plan, struct matmul);
    stage_begin(&m->staging);
    PLAN_TRY(plan, choose_compute(plan, &q, m));
    PLAN_REQUIRE(plan, a->ndim == 3 && b->ndim == 3 && a->sizes[0] == b->sizes[0] && a->sizes[2] == b->sizes[1], ACLNN_ERROR_PARAM,
                 "aclnnAddbmm: batch1 %s and batch2 %s must be [b,n,m] and [b,m,p]", view_text(a), view_text(b));
    PLAN_REQUIRE(plan, o->ndim == 2 && o->sizes[0] == a->sizes[1] && o->sizes[1] == b->sizes[2], ACLNN_ERROR_PARAM,
                 "aclnnAddbmm: out %s must be [%lld,%lld]", view_text(o), (long long)a->sizes[1], (long long)b->sizes[2]);
    PLAN_REQUIRE(plan, view_expand(addend, o->sizes, 2), ACLNN_ERROR_PARAM, "aclnnAddbmm: self %s can't be expanded to out %s",
                 view_text(addend), view_text(o));
    PLAN_REQUIRE(plan, dtype_is_floating(m->compute), ACLNN_ERROR_PARAM, "aclnnAddbmm: batch1 is %s; allowed are floating types",
                 dtype_name((enum dtype)a->dtype));
    PLAN_TRY(plan, choose_factors(plan, alpha, beta, m));
    m->aside = view_overlaps(addend, o);
    plan->copes_with_overlap = 1u << 2;                       /* self */
    const int64_t size = a->sizes[0], stride = a->strides[0]; /* a as [rows, batch, depth] */
    a->sizes[0] = a->sizes[1];
    a->strides[0] = a->strides[1];
    a->sizes[1] = size;
    a->strides[1] = stride;
    view_refresh(a);
    const enum accumulate type = accumulate_of(m->compute);
    stage_operand(plan, &m->staging, a, type);
    stage_operand(plan, &m->staging, b, type);
    return plan_finish(plan, m->staging.bytes, workspaceSize, executor);
}
ACLNN_PHASE_2(Addbmm)
