/* Inverse, Cholesky, QR, singular values, determinants and triangular systems, matrix by matrix of a batch.
 *
 * A matrix is copied to the thread's scratch in double precision, worked on there (kernels/linalg.h) and written back, so layouts don't
 * matter. CANN's signatures have no place for LAPACK's "info": where a decomposition doesn't exist, the diagonal of the
 * result is NaN from the element on that LAPACK names. */
#include <math.h>
#include <string.h>

#include "aclnn/math/operand_check.h"
#include "aclnn/math/strided_loop.h"
#include "aclnn/math/tile.h"
#include "aclnnop/all_operators.h"
#include "base/pool.h"
#include "kernels/linalg.h"

enum { ITEM = 1 << 16, ROUND = 64 };

/* One matrix of the operands, for the pool: what it does with batch item `index`, in `scratch` of `bytes`. */
struct linalg_work {
    const struct plan *plan;
    const struct linalg_functions *kernel;
    enum dtype wide; /* F64 or C128 */
    int64_t rows, columns;
    int64_t bytes; /* scratch of one matrix */
    void (*each)(const struct linalg_work *work, int64_t index, char *scratch);
    _Atomic bool starved; /* no memory for the scratch */
};

/* The immediates of a plan. */
struct linalg_job {
    bool upper, transpose, unit;
};

static const char *name_of(const struct plan *plan) { return operator_name((enum operator_id)plan->operator_id); }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static enum dtype wide_of(const struct view *v)
{
    return dtype_kind((enum dtype)v->dtype) == KIND_COMPLEX ? DTYPE_C128 : DTYPE_F64;
}

/* --- matrices in and out of the scratch ---------------------------------------------------------------------------------- */

/* Item `index` of a batch, its last `dims` dimensions. */
static struct view item_of(const struct view *v, int64_t index, int dims)
{
    struct view item = *v;
    const int outer = v->ndim - dims;
    item.data += walk_offset(index, outer, v->sizes, v->strides) * (int64_t)dtype_bytes((enum dtype)v->dtype);
    item.ndim = (uint8_t)dims;
    memcpy(item.sizes, v->sizes + outer, (size_t)dims * sizeof item.sizes[0]);
    memcpy(item.strides, v->strides + outer, (size_t)dims * sizeof item.strides[0]);
    view_refresh(&item);
    return item;
}

static void swap_dims(struct view *matrix)
{
    const int64_t size = matrix->sizes[0], stride = matrix->strides[0];
    matrix->sizes[0] = matrix->sizes[1];
    matrix->strides[0] = matrix->strides[1];
    matrix->sizes[1] = size;
    matrix->strides[1] = stride;
    view_refresh(matrix);
}

static void load(const struct view *item, enum dtype wide, void *out)
{
    for (int64_t at = 0; at < item->count; at += LOOP_TILE)
        read_elements(item, at, least(LOOP_TILE, item->count - at), wide, (char *)out + at * (int64_t)dtype_bytes(wide));
}

static void save(const struct view *item, enum dtype wide, const void *in)
{
    char narrow[LOOP_TILE * sizeof(complex64_pair)];
    for (int64_t at = 0; at < item->count; at += LOOP_TILE) {
        const int64_t n = least(LOOP_TILE, item->count - at);
        convert_elements(narrow, (enum dtype)item->dtype, (const char *)in + at * (int64_t)dtype_bytes(wide), wide, n);
        tile_scatter(item, at, n, narrow);
    }
}

/* Operand `number` of the plan, item `index`. */
static struct view operand(const struct linalg_work *w, int number, int64_t index, int dims)
{
    return item_of(&w->plan->operands[number], index, dims);
}

static void set_nan(const struct linalg_work *w, void *matrix, int64_t n, int64_t first)
{
    const complex64_pair nan = {NAN, 0};
    for (int64_t k = first; k < n; ++k)
        memcpy((char *)matrix + (k * n + k) * (int64_t)dtype_bytes(w->wide), &nan, dtype_bytes(w->wide));
}

/* --- running over a batch ------------------------------------------------------------------------------------------------- */

static void run_items(void *argument, int64_t begin, int64_t end)
{
    struct linalg_work *const w = argument;
    char *const scratch = pool_scratch(0, (size_t)(w->bytes + ROUND));
    if (!scratch) {
        w->starved = true;
        return;
    }
    for (int64_t i = begin; i < end; ++i)
        w->each(w, i, scratch);
}

/* The matrices are the last two dimensions of operand 0; elements: of scratch, in numbers. */
static int run_batch(struct plan *plan, int64_t elements, void (*each)(const struct linalg_work *, int64_t, char *))
{
    const struct view *const in = &plan->operands[0];
    struct linalg_work w = {.plan = plan, .wide = wide_of(in), .each = each};
    int64_t batch = 1;
    w.rows = in->sizes[in->ndim - 2];
    w.columns = in->sizes[in->ndim - 1];
    w.kernel = &kernels->linalg->number[w.wide == DTYPE_C128 ? LINALG_COMPLEX : LINALG_REAL];
    w.bytes = elements * (int64_t)dtype_bytes(w.wide);
    for (int d = 0; d < in->ndim - 2; ++d)
        batch *= in->sizes[d];
    if (batch == 0)
        return 0;
    pool_for(batch, 1 + ITEM / (1 + w.rows * w.columns * least(w.rows, w.columns)), run_items, &w);
    if (w.starved)
        return error_set(ERROR_BAD_ALLOC, name_of(plan), "no memory for %lld bytes", (long long)w.bytes);
    return 0;
}

/* --- checks ---------------------------------------------------------------------------------------------------------------- */

static int check_numbers(const struct plan *plan, const struct view *v, const char *parameter)
{
    if (v->dtype == DTYPE_F32 || v->dtype == DTYPE_F64 || v->dtype == DTYPE_C64 || v->dtype == DTYPE_C128)
        return 0;
    return error_set(ACLNN_ERROR_PARAM, name_of(plan), "%s has data type %s; f32, f64, c64 and c128 are allowed", parameter,
                     dtype_name((enum dtype)v->dtype));
}

static int add_matrix(struct plan *plan, const aclTensor *tensor, const char *name, bool square, struct view **view)
{
    TRY(plan_input(plan, tensor, name, view));
    TRY(check_numbers(plan, *view, name));
    const struct view *const v = *view;
    if (v->ndim < 2 || (square && v->sizes[v->ndim - 1] != v->sizes[v->ndim - 2]))
        return error_set(ACLNN_ERROR_PARAM, name_of(plan), "%s is %s; %s are wanted", name, view_text(v),
                         square ? "square matrices" : "matrices");
    return 0;
}

/* An output of in's type (`real`: of its parts' type) with in's batch and these last sizes. */
static int add_result(struct plan *plan, const aclTensor *tensor, const char *name, const struct view *in, int dims,
                      const int64_t *last, bool real)
{
    struct view *out;
    int64_t sizes[TENSOR_MAX_DIMS];
    struct view like = *in;
    memcpy(sizes, in->sizes, sizeof sizes);
    for (int i = 0; i < dims; ++i)
        sizes[in->ndim - 2 + i] = last[i];
    if (real && wide_of(in) == DTYPE_C128)
        like.dtype = in->dtype == DTYPE_C64 ? DTYPE_F32 : DTYPE_F64;
    TRY(plan_output(plan, tensor, name, &out));
    TRY(check_sizes(plan, out, name, sizes, in->ndim - 2 + dims));
    TRY(check_same_dtype(plan, &like, "self", out, name));
    return check_output_not_expanded(plan, out, name);
}

/* --- inverse --------------------------------------------------------------------------------------------------------------- */

static void invert(const struct linalg_work *w, int64_t index, char *scratch)
{
    const int64_t n = w->rows, size = n * n * (int64_t)dtype_bytes(w->wide);
    char *const a = scratch, *const b = a + size;
    int64_t *const pivots = (int64_t *)(void *)(b + size);
    const struct view in = operand(w, 0, index, 2), out = operand(w, 1, index, 2);
    const complex64_pair one = {1, 0};
    load(&in, w->wide, a);
    const int64_t missing = w->kernel->lu(a, n, pivots);
    memset(b, 0, (size_t)size);
    if (missing) {
        set_nan(w, b, n, missing - 1);
    } else {
        int64_t *const order = pivots + n; /* of the identity's rows after the swaps */
        for (int64_t k = 0; k < n; ++k)
            order[k] = k;
        for (int64_t k = 0; k < n; ++k) {
            const int64_t kept = order[k];
            order[k] = order[pivots[k]];
            order[pivots[k]] = kept;
        }
        for (int64_t k = 0; k < n; ++k)
            memcpy(b + (k * n + order[k]) * (int64_t)dtype_bytes(w->wide), &one, dtype_bytes(w->wide));
        w->kernel->solve(a, n, b, n, 1, 1);
        w->kernel->solve(a, n, b, n, 0, 0);
    }
    save(&out, w->wide, b);
}

static int inverse_run(struct plan *plan)
{
    const int64_t n = plan->operands[0].sizes[plan->operands[0].ndim - 1];
    return plan->operands[0].count == 0 ? 0 : run_batch(plan, 2 * n * n + 2 * n, invert);
}

aclnnStatus aclnnInverseGetWorkspaceSize(const aclTensor *self, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *in;
    TRY(plan_begin(OPERATOR_Inverse, inverse_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, add_matrix(plan, self, "self", true, &in));
    PLAN_TRY(plan, add_result(plan, out, "out", in, 2, in->sizes + in->ndim - 2, false));
    return plan_finish(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(Inverse)

/* --- Cholesky -------------------------------------------------------------------------------------------------------------- */

static void factor_positive(const struct linalg_work *w, int64_t index, char *scratch)
{
    const struct linalg_job *const job = PLAN_IMMEDIATE((struct plan *)(uintptr_t)w->plan, struct linalg_job);
    struct view in = operand(w, 0, index, 2), out = operand(w, 1, index, 2);
    if (job->upper) { /* U^H is the lower factor, of the same matrix read from its upper triangle */
        swap_dims(&in);
        swap_dims(&out);
    }
    load(&in, w->wide, scratch);
    if (job->upper)
        w->kernel->conjugate(scratch, w->rows * w->rows);
    const int64_t missing = w->kernel->cholesky(scratch, w->rows);
    if (missing)
        set_nan(w, scratch, w->rows, missing - 1);
    if (job->upper)
        w->kernel->conjugate(scratch, w->rows * w->rows);
    save(&out, w->wide, scratch);
}

static int cholesky_run(struct plan *plan)
{
    const int64_t n = plan->operands[0].sizes[plan->operands[0].ndim - 1];
    return run_batch(plan, n * n, factor_positive);
}

aclnnStatus aclnnLinalgCholeskyGetWorkspaceSize(const aclTensor *self, bool upper, aclTensor *out, uint64_t *workspaceSize,
                                                aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *in;
    TRY(plan_begin(OPERATOR_LinalgCholesky, cholesky_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, add_matrix(plan, self, "self", true, &in));
    PLAN_TRY(plan, add_result(plan, out, "out", in, 2, in->sizes + in->ndim - 2, false));
    PLAN_IMMEDIATE(plan, struct linalg_job)->upper = upper;
    return plan_finish(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(LinalgCholesky)

/* --- QR -------------------------------------------------------------------------------------------------------------------- */

enum qr_mode { QR_REDUCED, QR_COMPLETE, QR_R };

/* Operands: self, Q (absent in mode r), R. */
static void factor_orthogonal(const struct linalg_work *w, int64_t index, char *scratch)
{
    const int64_t bytes = (int64_t)dtype_bytes(w->wide), count = least(w->rows, w->columns);
    const bool has_basis = w->plan->operands[1].data != NULL;
    const struct view in = operand(w, 0, index, 2), r = operand(w, 2, index, 2);
    char *const a = scratch, *const tau = a + w->rows * w->columns * bytes, *const q = tau + count * bytes;
    load(&in, w->wide, a);
    w->kernel->qr(a, w->rows, w->columns, tau);
    if (has_basis) {
        const struct view basis = operand(w, 1, index, 2);
        w->kernel->qr_basis(a, w->rows, w->columns, tau, q, basis.sizes[1]);
        save(&basis, w->wide, q);
    }
    for (int64_t i = 1; i < w->rows; ++i) /* the reflections have been used */
        memset(a + i * w->columns * bytes, 0, (size_t)(least(i, w->columns) * bytes));
    save(&r, w->wide, a); /* R has the first rows of a, and as many columns */
}

static int qr_run(struct plan *plan)
{
    const struct view *const in = &plan->operands[0];
    const int64_t rows = in->sizes[in->ndim - 2], columns = in->sizes[in->ndim - 1];
    const int64_t wanted = plan->operands[1].data ? plan->operands[1].sizes[in->ndim - 1] : 0;
    return run_batch(plan, rows * columns + least(rows, columns) + rows * wanted, factor_orthogonal);
}

aclnnStatus aclnnLinalgQrGetWorkspaceSize(const aclTensor *self, int64_t mode, aclTensor *Q, aclTensor *R, uint64_t *workspaceSize,
                                          aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *in;
    TRY(plan_begin(OPERATOR_LinalgQr, qr_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, add_matrix(plan, self, "self", false, &in));
    PLAN_REQUIRE(plan, mode >= QR_REDUCED && mode <= QR_R, ACLNN_ERROR_PARAM,
                 "aclnnLinalgQr: mode is %lld; 0 = reduced, 1 = complete, 2 = r", (long long)mode);
    const int64_t rows = in->sizes[in->ndim - 2], columns = in->sizes[in->ndim - 1];
    const int64_t height = mode == QR_COMPLETE ? rows : least(rows, columns);
    if (mode == QR_R)
        PLAN_TRY(plan, plan_optional(plan, NULL, ROLE_OUTPUT, "Q", NULL));
    else
        PLAN_TRY(plan, add_result(plan, Q, "Q", in, 2, (const int64_t[]){rows, height}, false));
    PLAN_TRY(plan, add_result(plan, R, "R", in, 2, (const int64_t[]){height, columns}, false));
    return plan_finish(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(LinalgQr)

/* --- singular values ------------------------------------------------------------------------------------------------------- */

/* Operands: input, sigma, u, v; the last two may be absent. input = u diag(sigma) v^H */
static void decompose(const struct linalg_work *w, int64_t index, char *scratch)
{
    const int64_t bytes = (int64_t)dtype_bytes(w->wide), m = w->rows > w->columns ? w->rows : w->columns,
                  n = least(w->rows, w->columns);
    const bool tall = w->rows >= w->columns, has_vectors = w->plan->operands[2].data != NULL;
    struct view in = operand(w, 0, index, 2);
    const struct view sigma = operand(w, 1, index, 1);
    double *const s = (double *)(void *)scratch;
    char *const right = scratch + n * bytes, *const left = right + n * n * bytes;
    if (tall) /* the columns of the matrix, or of its adjoint, are the rows of `left` */
        swap_dims(&in);
    load(&in, w->wide, left);
    if (!tall)
        w->kernel->conjugate(left, n * m);
    w->kernel->svd(left, n, m, right, s);
    save(&sigma, DTYPE_F64, s);
    if (!has_vectors)
        return;
    struct view u = operand(w, 2, index, 2), v = operand(w, 3, index, 2);
    struct view *const longer = tall ? &u : &v, *const shorter = tall ? &v : &u;
    w->kernel->complete(left, n, longer->sizes[1], m);
    swap_dims(longer);
    swap_dims(shorter);
    save(longer, w->wide, left);
    save(shorter, w->wide, right);
}

static int svd_run(struct plan *plan)
{
    const struct view *const in = &plan->operands[0];
    const int64_t rows = in->sizes[in->ndim - 2], columns = in->sizes[in->ndim - 1];
    const int64_t m = rows > columns ? rows : columns, n = least(rows, columns);
    const struct view *const longer = &plan->operands[rows >= columns ? 2 : 3];
    const int64_t vectors = longer->data ? longer->sizes[in->ndim - 1] : n;
    return run_batch(plan, vectors * m + n * n + n, decompose);
}

aclnnStatus aclnnSvdGetWorkspaceSize(const aclTensor *input, bool fullMatrices, bool computeUV, aclTensor *sigma, aclTensor *u,
                                     aclTensor *v, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *in;
    TRY(plan_begin(OPERATOR_Svd, svd_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, add_matrix(plan, input, "input", false, &in));
    const int64_t rows = in->sizes[in->ndim - 2], columns = in->sizes[in->ndim - 1], n = least(rows, columns);
    PLAN_TRY(plan, add_result(plan, sigma, "sigma", in, 1, &n, true));
    if (computeUV) {
        PLAN_TRY(plan, add_result(plan, u, "u", in, 2, (const int64_t[]){rows, fullMatrices ? rows : n}, false));
        PLAN_TRY(plan, add_result(plan, v, "v", in, 2, (const int64_t[]){columns, fullMatrices ? columns : n}, false));
    } else {
        PLAN_TRY(plan, plan_optional(plan, NULL, ROLE_OUTPUT, "u", NULL));
        PLAN_TRY(plan, plan_optional(plan, NULL, ROLE_OUTPUT, "v", NULL));
    }
    return plan_finish(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(Svd)

/* --- determinants ---------------------------------------------------------------------------------------------------------- */

/* Operands: self, signOut, logOut. */
static void determine(const struct linalg_work *w, int64_t index, char *scratch)
{
    const int64_t n = w->rows;
    int64_t *const pivots = (int64_t *)(void *)(scratch + n * n * (int64_t)dtype_bytes(w->wide));
    const struct view in = operand(w, 0, index, 2), sign = operand(w, 1, index, 0), logarithm = operand(w, 2, index, 0);
    complex64_pair phase;
    load(&in, w->wide, scratch);
    w->kernel->lu(scratch, n, pivots);
    const double size = w->kernel->determinant(scratch, n, pivots, &phase);
    save(&sign, w->wide, &phase);
    save(&logarithm, DTYPE_F64, &size);
}

static int slogdet_run(struct plan *plan)
{
    const int64_t n = plan->operands[0].sizes[plan->operands[0].ndim - 1];
    return run_batch(plan, n * n + n, determine);
}

aclnnStatus aclnnSlogdetGetWorkspaceSize(const aclTensor *self, aclTensor *signOut, aclTensor *logOut, uint64_t *workspaceSize,
                                         aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *in;
    TRY(plan_begin(OPERATOR_Slogdet, slogdet_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, add_matrix(plan, self, "self", true, &in));
    PLAN_TRY(plan, add_result(plan, signOut, "signOut", in, 0, NULL, false));
    PLAN_TRY(plan, add_result(plan, logOut, "logOut", in, 0, NULL, true));
    return plan_finish(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(Slogdet)

/* --- triangular systems ---------------------------------------------------------------------------------------------------- */

/* Operands: self (b), A, xOut, mOut (a copy of A). */
static void solve_triangular(const struct linalg_work *w, int64_t index, char *scratch)
{
    const struct linalg_job *const job = PLAN_IMMEDIATE((struct plan *)(uintptr_t)w->plan, struct linalg_job);
    const struct view b = operand(w, 0, index, 2), x = operand(w, 2, index, 2), copy = operand(w, 3, index, 2);
    struct view a = operand(w, 1, index, 2);
    char *const right = scratch + w->rows * w->rows * (int64_t)dtype_bytes(w->wide);
    load(&b, w->wide, right);
    load(&a, w->wide, scratch);
    save(&copy, w->wide, scratch);
    if (job->transpose) {
        swap_dims(&a);
        load(&a, w->wide, scratch);
    }
    w->kernel->solve(scratch, w->rows, right, w->columns, job->upper == job->transpose, job->unit);
    save(&x, w->wide, right);
}

static int triangular_run(struct plan *plan)
{
    const struct view *const b = &plan->operands[0];
    const int64_t n = b->sizes[b->ndim - 2], columns = b->sizes[b->ndim - 1];
    return run_batch(plan, n * n + n * columns, solve_triangular);
}

aclnnStatus aclnnTriangularSolveGetWorkspaceSize(const aclTensor *self, const aclTensor *A, bool upper, bool transpose,
                                                 bool unitriangular, aclTensor *xOut, aclTensor *mOut, uint64_t *workspaceSize,
                                                 aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *b, *a;
    TRY(plan_begin(OPERATOR_TriangularSolve, triangular_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, add_matrix(plan, self, "self", false, &b));
    PLAN_TRY(plan, add_matrix(plan, A, "A", true, &a));
    PLAN_TRY(plan, check_same_dtype(plan, b, "self", a, "A"));
    PLAN_REQUIRE(plan,
                 a->ndim == b->ndim && a->sizes[a->ndim - 1] == b->sizes[b->ndim - 2] &&
                     memcmp(a->sizes, b->sizes, (size_t)(a->ndim - 2) * sizeof a->sizes[0]) == 0,
                 ACLNN_ERROR_PARAM, "aclnnTriangularSolve: self is %s, A is %s; one batch, and as many rows as A has, are wanted",
                 view_text(b), view_text(a));
    PLAN_TRY(plan, add_result(plan, xOut, "xOut", b, 2, b->sizes + b->ndim - 2, false));
    PLAN_TRY(plan, add_result(plan, mOut, "mOut", a, 2, a->sizes + a->ndim - 2, false));
    *PLAN_IMMEDIATE(plan, struct linalg_job) = (struct linalg_job){.upper = upper, .transpose = transpose, .unit = unitriangular};
    return plan_finish(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(TriangularSolve)
