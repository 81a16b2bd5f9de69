/* Inverse, Cholesky, QR, singular values, determinants and triangular systems, matrix by matrix of a batch.
 *
 * A matrix is copied to the thread's scratch in double precision, column by column, worked on there (lapack.h) and written back, so
 * layouts don't matter. CANN's signatures have no place for LAPACK's "info": where a decomposition doesn't exist, the diagonal of the
 * result is NaN from the element on that LAPACK names. */
#include <math.h>
#include <string.h>

#include "aclnn/math/lapack.h"
#include "aclnn/math/operand_check.h"
#include "aclnn/math/strided_loop.h"
#include "aclnn/math/tile.h"
#include "aclnnop/all_operators.h"
#include "base/arithmetic.h"
#include "base/pool.h"

enum { ITEM = 1 << 16, ROUND = 64 };

/* One matrix of the operands, for the pool: what it does with batch item `index`, in `scratch` of `bytes`. */
struct linalg_work {
    const struct plan *plan;
    enum dtype wide; /* F64 or C128 */
    int64_t rows, columns;
    int64_t bytes; /* scratch of one matrix */
    int64_t room;  /* numbers in it that LAPACK wants for itself */
    void (*each)(const struct linalg_work *work, int64_t index, char *scratch);
    _Atomic bool starved; /* no memory for the scratch */
};

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
    view_swap_dims(matrix, 0, 1);
    view_refresh(matrix);
}

/* As the matrix lies in memory, row by row; of a view with swapped dimensions: column by column. */
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

static bool has_nan(const double *x, int64_t count)
{
    bool any = false;
    for (int64_t i = 0; i < count; ++i)
        any |= isnan(x[i]) != 0;
    return any;
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

/* The matrices are the last two dimensions of operand 0; elements: of scratch, in numbers, beside `room` for LAPACK. */
static int run_batch(struct plan *plan, int64_t elements, int64_t room, void (*each)(const struct linalg_work *, int64_t, char *))
{
    const struct view *const in = &plan->operands[0];
    struct linalg_work w = {.plan = plan, .wide = wide_of(in), .each = each, .room = room};
    int64_t batch = 1;
    w.rows = in->sizes[in->ndim - 2];
    w.columns = in->sizes[in->ndim - 1];
    w.bytes = (elements + room) * (int64_t)dtype_bytes(w.wide);
    for (int d = 0; d < in->ndim - 2; ++d)
        batch *= in->sizes[d];
    if (batch == 0)
        return 0;
    pool_for(batch, 1 + ITEM / (1 + w.rows * w.columns * least(w.rows, w.columns)), run_items, &w);
    if (w.starved)
        return error_set(ERROR_BAD_ALLOC, plan_name(plan), "no memory for %lld bytes", (long long)w.bytes);
    return 0;
}

/* --- checks ---------------------------------------------------------------------------------------------------------------- */

static int check_numbers(const struct plan *plan, const struct view *v, const char *parameter)
{
    if (v->dtype == DTYPE_F32 || v->dtype == DTYPE_F64 || v->dtype == DTYPE_C64 || v->dtype == DTYPE_C128)
        return 0;
    return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "%s has data type %s; f32, f64, c64 and c128 are allowed", parameter,
                     dtype_name((enum dtype)v->dtype));
}

static int check_matrix(const struct plan *plan, const struct view *v, const char *parameter)
{
    if (lapack_fits(v->sizes[v->ndim - 2], v->sizes[v->ndim - 1]))
        return 0;
    return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "%s is %s; matrices of less than 2^31 elements are allowed", parameter,
                     view_text(v));
}

static int add_matrix(struct plan *plan, const aclTensor *tensor, const char *name, bool square, struct view **view)
{
    TRY(plan_input(plan, tensor, name, view));
    TRY(check_numbers(plan, *view, name));
    const struct view *const v = *view;
    if (v->ndim < 2 || (square && v->sizes[v->ndim - 1] != v->sizes[v->ndim - 2]))
        return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "%s is %s; %s are wanted", name, view_text(v),
                         square ? "square matrices" : "matrices");
    return check_matrix(plan, v, name);
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
    if (dims == 2)
        TRY(check_matrix(plan, out, name));
    return check_output_not_expanded(plan, out, name);
}

/* What every operator here ends its first phase with. */
static int finish(struct plan *plan, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    PLAN_TRY(plan, lapack_open(plan_name(plan)));
    return plan_finish(plan, 0, workspaceSize, executor);
}

/* --- inverse --------------------------------------------------------------------------------------------------------------- */

static void invert(const struct linalg_work *w, int64_t index, char *scratch)
{
    const int64_t n = w->rows, bytes = (int64_t)dtype_bytes(w->wide);
    char *const a = scratch, *const b = a + n * n * bytes;
    int32_t *const pivots = (int32_t *)(void *)(b + n * n * bytes);
    struct view in = operand(w, 0, index, 2), out = operand(w, 1, index, 2);
    const complex64_pair one = {1, 0};
    swap_dims(&in);
    swap_dims(&out);
    load(&in, w->wide, a);
    memset(b, 0, (size_t)(n * n * bytes));
    const int64_t missing = lapack_lu(w->wide, n, a, pivots);
    if (missing) {
        set_nan(w, b, n, missing - 1);
    } else if (has_nan((const double *)(const void *)a, n * n * bytes / (int64_t)sizeof(double))) {
        for (int64_t i = 0; i < n * n; ++i) /* the substitution skips zeros, and with them NaN */
            memcpy(b + i * bytes, &(complex64_pair){NAN, 0}, (size_t)bytes);
    } else {
        for (int64_t k = 0; k < n; ++k)
            memcpy(b + (k * n + k) * bytes, &one, (size_t)bytes);
        lapack_lu_solve(w->wide, n, a, pivots, b, n);
    }
    save(&out, w->wide, b);
}

static int inverse_run(struct plan *plan)
{
    const int64_t n = plan->operands[0].sizes[plan->operands[0].ndim - 1];
    return plan->operands[0].count == 0 ? 0 : run_batch(plan, 2 * n * n + n, 0, invert);
}

aclnnStatus aclnnInverseGetWorkspaceSize(const aclTensor *self, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *in;
    TRY(plan_begin(OPERATOR_Inverse, inverse_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, add_matrix(plan, self, "self", true, &in));
    PLAN_TRY(plan, add_result(plan, out, "out", in, 2, in->sizes + in->ndim - 2, false));
    return finish(plan, workspaceSize, executor);
}
ACLNN_PHASE_2(Inverse)

/* --- Cholesky -------------------------------------------------------------------------------------------------------------- */

static void factor_positive(const struct linalg_work *w, int64_t index, char *scratch)
{
    const bool upper = PLAN_IMMEDIATE((struct plan *)(uintptr_t)w->plan, struct lapack_triangle)->upper;
    const int64_t n = w->rows, bytes = (int64_t)dtype_bytes(w->wide);
    struct view in = operand(w, 0, index, 2), out = operand(w, 1, index, 2);
    swap_dims(&in);
    swap_dims(&out);
    load(&in, w->wide, scratch);
    const int64_t missing = lapack_cholesky(w->wide, n, scratch, upper);
    for (int64_t column = 0; column < n; ++column) { /* the other triangle */
        char *const top = scratch + column * n * bytes;
        memset(upper ? top + (column + 1) * bytes : top, 0, (size_t)((upper ? n - 1 - column : column) * bytes));
    }
    if (missing)
        set_nan(w, scratch, n, missing - 1);
    save(&out, w->wide, scratch);
}

static int cholesky_run(struct plan *plan)
{
    const int64_t n = plan->operands[0].sizes[plan->operands[0].ndim - 1];
    return plan->operands[0].count == 0 ? 0 : run_batch(plan, n * n, 0, factor_positive);
}

aclnnStatus aclnnLinalgCholeskyGetWorkspaceSize(const aclTensor *self, bool upper, aclTensor *out, uint64_t *workspaceSize,
                                                aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *in;
    TRY(plan_begin(OPERATOR_LinalgCholesky, cholesky_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, add_matrix(plan, self, "self", true, &in));
    PLAN_TRY(plan, add_result(plan, out, "out", in, 2, in->sizes + in->ndim - 2, false));
    PLAN_IMMEDIATE(plan, struct lapack_triangle)->upper = upper;
    return finish(plan, workspaceSize, executor);
}
ACLNN_PHASE_2(LinalgCholesky)

/* --- QR -------------------------------------------------------------------------------------------------------------------- */

enum qr_mode { QR_REDUCED, QR_COMPLETE, QR_R };

/* Operands: self, Q (absent in mode r), R. */
static void factor_orthogonal(const struct linalg_work *w, int64_t index, char *scratch)
{
    const int64_t bytes = (int64_t)dtype_bytes(w->wide), count = least(w->rows, w->columns), height = w->rows * bytes;
    const bool has_basis = w->plan->operands[1].data != NULL;
    struct view in = operand(w, 0, index, 2), r = operand(w, 2, index, 2);
    const int64_t shown = r.sizes[0] * bytes; /* of each column, in R */
    char *const work = scratch, *const a = work + w->room * bytes, *const tau = a + w->columns * height,
                *const q = tau + count * bytes;
    swap_dims(&in);
    load(&in, w->wide, a);
    lapack_qr(w->wide, w->rows, w->columns, a, tau, work, w->room);
    if (has_basis) {
        struct view basis = operand(w, 1, index, 2);
        memcpy(q, a, (size_t)(least(w->columns, basis.sizes[1]) * height));
        lapack_qr_basis(w->wide, w->rows, basis.sizes[1], count, q, tau, work, w->room);
        swap_dims(&basis);
        save(&basis, w->wide, q);
    }
    for (int64_t j = 0; j < w->columns; ++j) { /* the columns move together, without the reflections */
        const int64_t kept = least((j + 1) * bytes, shown);
        memmove(a + j * shown, a + j * height, (size_t)kept);
        memset(a + j * shown + kept, 0, (size_t)(shown - kept));
    }
    swap_dims(&r);
    save(&r, w->wide, a);
}

static int qr_run(struct plan *plan)
{
    const struct view *const in = &plan->operands[0];
    const int64_t rows = in->sizes[in->ndim - 2], columns = in->sizes[in->ndim - 1];
    const int64_t wanted = plan->operands[1].data ? plan->operands[1].sizes[in->ndim - 1] : 0;
    const int64_t room = lapack_qr_room(wide_of(in), rows, columns, wanted);
    return run_batch(plan, rows * columns + least(rows, columns) + rows * wanted, room, factor_orthogonal);
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
    return finish(plan, workspaceSize, executor);
}
ACLNN_PHASE_2(LinalgQr)

/* --- singular values ------------------------------------------------------------------------------------------------------- */

/* The shape of the plan's decompositions, without memory. */
static struct lapack_svd svd_of(const struct plan *plan)
{
    const struct view *const in = &plan->operands[0];
    return (struct lapack_svd){.wide = wide_of(in),
                               .vectors = *PLAN_IMMEDIATE((struct plan *)(uintptr_t)plan, enum lapack_vectors),
                               .rows = in->sizes[in->ndim - 2],
                               .columns = in->sizes[in->ndim - 1]};
}

static bool all_finite(const double *x, int64_t count)
{
    bool all = true;
    for (int64_t i = 0; i < count; ++i)
        all &= isfinite(x[i]) != 0;
    return all;
}

/* An identity as vectors of an empty matrix; NaN as those of one that has none. */
static void no_vectors(enum dtype wide, void *vectors, int64_t rows, int64_t columns, bool identity)
{
    for (int64_t i = 0; i < rows * columns; ++i) {
        const complex64_pair number = {identity ? (double)(i / columns == i % columns) : (double)NAN, 0};
        memcpy((char *)vectors + i * (int64_t)dtype_bytes(wide), &number, dtype_bytes(wide));
    }
}

static void conjugate(complex64_pair *numbers, int64_t count)
{
    for (int64_t i = 0; i < count; ++i)
        numbers[i].im = -numbers[i].im;
}

/* Operands: input, sigma, u, v; the last two may be absent. input = u diag(sigma) v^H */
static void decompose(const struct linalg_work *w, int64_t index, char *scratch)
{
    const int64_t bytes = (int64_t)dtype_bytes(w->wide), n = least(w->rows, w->columns), reals = w->wide == DTYPE_C128 ? 2 : 1;
    struct lapack_svd svd = svd_of(w->plan);
    struct view in = operand(w, 0, index, 2), u = {0}, v = {0};
    const struct view sigma = operand(w, 1, index, 1);
    svd.work = scratch;
    svd.room = w->room;
    svd.a = scratch + w->room * bytes;
    svd.s = (double *)(void *)((char *)svd.a + w->rows * w->columns * bytes);
    if (svd.vectors != VECTORS_NONE) {
        u = operand(w, 2, index, 2);
        v = operand(w, 3, index, 2);
        svd.u = (char *)svd.s + n * bytes;
        svd.vh = (char *)svd.u + u.count * bytes;
    }
    swap_dims(&in);
    load(&in, w->wide, svd.a);
    if (n == 0 || !all_finite(svd.a, in.count * reals) || !lapack_svd(&svd)) {
        for (int64_t k = 0; k < n; ++k)
            svd.s[k] = NAN;
        no_vectors(w->wide, svd.u, w->rows, svd.u ? u.sizes[1] : 0, n == 0);
        no_vectors(w->wide, svd.vh, w->columns, svd.u ? v.sizes[1] : 0, n == 0);
    }
    save(&sigma, DTYPE_F64, svd.s);
    if (svd.vectors == VECTORS_NONE)
        return;
    if (w->wide == DTYPE_C128)
        conjugate(svd.vh, v.count);
    swap_dims(&u);
    save(&u, w->wide, svd.u);
    save(&v, w->wide, svd.vh); /* the columns of v^H are the rows of v's conjugate */
}

static int svd_run(struct plan *plan)
{
    const struct lapack_svd svd = svd_of(plan);
    const int64_t n = least(svd.rows, svd.columns), left = svd.vectors == VECTORS_ALL ? svd.rows : n,
                  right = svd.vectors == VECTORS_ALL ? svd.columns : n, room = lapack_svd_room(&svd);
    const int64_t vectors = svd.vectors == VECTORS_NONE ? 0 : svd.rows * left + svd.columns * right;
    return run_batch(plan, svd.rows * svd.columns + n + vectors, room, decompose);
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
    *PLAN_IMMEDIATE(plan, enum lapack_vectors) = !computeUV ? VECTORS_NONE : fullMatrices ? VECTORS_ALL : VECTORS_REDUCED;
    PLAN_TRY(plan, lapack_open(plan_name(plan)));
    const struct lapack_svd svd = svd_of(plan);
    PLAN_REQUIRE(plan, lapack_svd_room(&svd) > 0, ACLNN_ERROR_PARAM, "aclnnSvd: input is %s; its smaller side may be %d at most",
                 view_text(in), LAPACK_SVD_SIDE);
    return finish(plan, workspaceSize, executor);
}
ACLNN_PHASE_2(Svd)

/* --- determinants ---------------------------------------------------------------------------------------------------------- */

/* log |det| from an LU, and its sign: a number of size 1, or 0 of a singular matrix. */
static double determinant_of(const struct linalg_work *w, const double *lu, const int32_t *pivots, complex64_pair *sign)
{
    const int64_t n = w->rows, reals = w->wide == DTYPE_C128 ? 2 : 1;
    complex64_pair phase = {1, 0};
    double logarithm = 0;
    for (int64_t k = 0; k < n; ++k) {
        const double *const pivot = lu + (k * n + k) * reals;
        const double re = pivot[0], im = reals == 2 ? pivot[1] : 0, size = hypot(re, im), turn = pivots[k] != k + 1 ? -1 : 1;
        const complex64_pair unit = size == 0                  ? (complex64_pair){0, 0}
                                    : reals == 1 && !isnan(re) ? (complex64_pair){turn * copysign(1, re), 0} /* of Inf too */
                                                               : (complex64_pair){turn * re / size, turn * im / size};
        logarithm += log(size);
        phase = (complex64_pair){phase.re * unit.re - phase.im * unit.im, phase.re * unit.im + phase.im * unit.re};
    }
    *sign = phase;
    return logarithm;
}

/* Operands: self, signOut, logOut. */
static void determine(const struct linalg_work *w, int64_t index, char *scratch)
{
    const int64_t n = w->rows;
    int32_t *const pivots = (int32_t *)(void *)(scratch + n * n * (int64_t)dtype_bytes(w->wide));
    struct view in = operand(w, 0, index, 2);
    const struct view sign = operand(w, 1, index, 0), logarithm = operand(w, 2, index, 0);
    complex64_pair phase;
    swap_dims(&in);
    load(&in, w->wide, scratch);
    lapack_lu(w->wide, n, scratch, pivots);
    const double size = determinant_of(w, (const double *)(const void *)scratch, pivots, &phase);
    save(&sign, w->wide, &phase);
    save(&logarithm, DTYPE_F64, &size);
}

static int slogdet_run(struct plan *plan)
{
    const int64_t n = plan->operands[0].sizes[plan->operands[0].ndim - 1];
    return run_batch(plan, n * n + n, 0, determine);
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
    return finish(plan, workspaceSize, executor);
}
ACLNN_PHASE_2(Slogdet)

/* --- triangular systems ---------------------------------------------------------------------------------------------------- */

/* Operands: self (b), A, xOut, mOut (a copy of A). Rows are taken for columns: that is the transposed system x^T op(A)^T = b^T. */
static void solve_triangular(const struct linalg_work *w, int64_t index, char *scratch)
{
    struct lapack_triangle kind = *PLAN_IMMEDIATE((struct plan *)(uintptr_t)w->plan, struct lapack_triangle);
    const struct view b = operand(w, 0, index, 2), a = operand(w, 1, index, 2), x = operand(w, 2, index, 2),
                      copy = operand(w, 3, index, 2);
    char *const right = scratch + w->rows * w->rows * (int64_t)dtype_bytes(w->wide);
    load(&b, w->wide, right);
    load(&a, w->wide, scratch);
    save(&copy, w->wide, scratch);
    kind.upper = !kind.upper;
    lapack_triangular_solve(w->wide, kind, w->rows, scratch, w->columns, right);
    save(&x, w->wide, right);
}

static int triangular_run(struct plan *plan)
{
    const struct view *const b = &plan->operands[0];
    const int64_t n = b->sizes[b->ndim - 2], columns = b->sizes[b->ndim - 1];
    return run_batch(plan, n * n + n * columns, 0, solve_triangular);
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
    *PLAN_IMMEDIATE(plan, struct lapack_triangle) =
        (struct lapack_triangle){.upper = upper, .transpose = transpose, .unit = unitriangular};
    return finish(plan, workspaceSize, executor);
}
ACLNN_PHASE_2(TriangularSolve)
