/* EmbeddingBag and EmbeddingRenorm: rows of a table, summed, averaged or compared bag by bag; rows of a table cut to a greatest norm.
 *
 * A bag is one item of work and adds its rows in their order, so results don't depend on the number of threads. The table stays where it
 * is, whatever its type and strides: rows are converted one by one. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "aclnn/math/operand_check.h"
#include "aclnn/math/tile.h"
#include "aclnn/nn/staging.h"
#include "aclnnop/all_operators.h"
#include "kernels/kernels.h"

enum bag_mode { BAG_SUM, BAG_MEAN, BAG_MAX };
enum { WEIGHT, INDICES, OFFSETS, SAMPLE_WEIGHTS, OUTPUT, OFFSET2BAG, BAG_SIZE, MAX_INDICES };

struct bags {
    struct staging staging;
    enum bag_mode mode;
    int64_t rows, width, count, bags, padding;
    bool include_last;
    enum accumulate type;
};

struct bag_job {
    const struct bags *b;
    const struct view *table;
    const int64_t *indices, *offsets;
    const char *sample_weights;
    char *output;
    int64_t *offset2bag, *sizes, *greatest;
    _Atomic int failed;
};

/* A row of a table in contiguous memory of the compute type. */
static void load_row(const struct view *table, enum accumulate type, int64_t row, void *memory)
{
    const int64_t at = row * table->strides[0] * (int64_t)dtype_bytes((enum dtype)table->dtype);
    kernels->convert->load[table->dtype][type](memory, table->data + at, table->strides[1], table->sizes[1]);
}

#define BAG_FUNCTIONS(A)                                                                                     \
    static void add_##A(void *to, const void *row, int64_t n, double weight)                                 \
    {                                                                                                        \
        for (int64_t i = 0; i < n; ++i)                                                                      \
            ((A *)to)[i] += ((const A *)row)[i] * (A)weight;                                                 \
    }                                                                                                        \
    static void divide_##A(void *to, int64_t n, double by)                                                   \
    {                                                                                                        \
        for (int64_t i = 0; i < n; ++i)                                                                      \
            ((A *)to)[i] /= (A)by;                                                                           \
    }                                                                                                        \
    static void greatest_##A(void *to_, int64_t *where, const void *row_, int64_t n, int64_t index)          \
    {                                                                                                        \
        A *const to = to_;                                                                                   \
        const A *const row = row_;                                                                           \
        for (int64_t i = 0; i < n; ++i)                                                                      \
            if (where[i] < 0 || row[i] > to[i] || row[i] != row[i]) {                                        \
                to[i] = row[i];                                                                              \
                where[i] = index;                                                                            \
            }                                                                                                \
    }
BAG_FUNCTIONS(double)
BAG_FUNCTIONS(float)

static double sample_weight(const struct bag_job *j, int64_t i)
{
    if (!j->sample_weights)
        return 1;
    return tile_value(j->sample_weights, j->b->type, i);
}

static void run_bag(const struct bag_job *j, int64_t bag, void *row, int64_t *where)
{
    const struct bags *const b = j->b;
    const bool wide = b->type == ACCUMULATE_F64;
    const int64_t bytes = accumulate_bytes(b->type), last = bag + 1 < b->bags || b->include_last ? j->offsets[bag + 1] : b->count;
    char *const out = j->output + bag * b->width * bytes;
    int64_t size = 0;
    memset(out, 0, (size_t)(b->width * bytes));
    for (int64_t d = 0; d < b->width; ++d)
        where[d] = -1;
    for (int64_t i = j->offsets[bag]; i < last; ++i) {
        if (j->offset2bag)
            j->offset2bag[i] = bag;
        if (j->indices[i] == b->padding)
            continue;
        ++size;
        load_row(j->table, b->type, j->indices[i], row);
        if (b->mode == BAG_MAX)
            (wide ? greatest_double : greatest_float)(out, where, row, b->width, j->indices[i]);
        else
            (wide ? add_double : add_float)(out, row, b->width, sample_weight(j, i));
    }
    if (b->mode == BAG_MEAN && size > 1)
        (wide ? divide_double : divide_float)(out, b->width, (double)size);
    if (j->sizes)
        j->sizes[bag] = size;
    for (int64_t d = 0; j->greatest && d < b->width; ++d)
        j->greatest[bag * b->width + d] = where[d];
}

static void run_bags(void *argument, int64_t begin, int64_t end)
{
    struct bag_job *const j = argument;
    void *const row = pool_scratch(0, (size_t)j->b->width * sizeof(double));
    int64_t *const where = pool_scratch(1, (size_t)j->b->width * sizeof(int64_t));
    if (!row || !where) {
        j->failed = 1;
        return;
    }
    for (int64_t bag = begin; bag < end; ++bag)
        run_bag(j, bag, row, where);
}

static int check_values(const struct bag_job *j)
{
    const struct bags *const b = j->b;
    const int64_t ends = b->bags + (b->include_last ? 1 : 0);
    for (int64_t i = 0; i < b->count; ++i)
        if (j->indices[i] < 0 || j->indices[i] >= b->rows)
            return error_set(ERROR_RT_DEVICE_TASK, "aclnnEmbeddingBag", "indices[%lld] is %lld; the table has %lld rows",
                             (long long)i, (long long)j->indices[i], (long long)b->rows);
    for (int64_t k = 0; k < ends; ++k)
        if (j->offsets[k] < (k == 0 ? 0 : j->offsets[k - 1]) || j->offsets[k] > b->count || (k == 0 && j->offsets[0] != 0))
            return error_set(ERROR_RT_DEVICE_TASK, "aclnnEmbeddingBag",
                             "offsets[%lld] is %lld; they start with 0 and grow to at most the %lld indices", (long long)k,
                             (long long)j->offsets[k], (long long)b->count);
    return 0;
}

static int run_embedding_bag(struct plan *plan)
{
    const struct bags *const b = PLAN_IMMEDIATE(plan, struct bags);
    const struct staging *const s = &b->staging;
    struct bag_job j = {.b = b, .table = &plan->operands[WEIGHT]};
    j.indices = stage_read(plan, s, INDICES);
    j.offsets = stage_read(plan, s, OFFSETS);
    j.sample_weights = stage_read(plan, s, SAMPLE_WEIGHTS);
    TRY(check_values(&j));
    j.output = stage_target(plan, s, OUTPUT);
    if (plan->operands[OFFSET2BAG].count == b->count)
        j.offset2bag = stage_target(plan, s, OFFSET2BAG);
    for (int64_t i = b->include_last ? j.offsets[b->bags] : b->count; j.offset2bag && i < b->count; ++i)
        j.offset2bag[i] = b->bags > 0 ? b->bags - 1 : 0; /* behind the last bag: of no bag's sum */
    j.sizes = plan->operands[BAG_SIZE].count == b->bags ? stage_target(plan, s, BAG_SIZE) : NULL;
    if (b->mode == BAG_MAX)
        j.greatest = stage_target(plan, s, MAX_INDICES);
    else if (plan->operands[MAX_INDICES].count > 0)
        memset(stage_target(plan, s, MAX_INDICES), 0, (size_t)plan->operands[MAX_INDICES].count * sizeof(int64_t));
    if (b->bags > 0)
        parallel_for(b->bags, (b->count / b->bags + 1) * b->width, run_bags, &j);
    REQUIRE(!j.failed, ERROR_RT_MEMORY_ALLOCATION, "aclnnEmbeddingBag: no memory for a row of %lld elements", (long long)b->width);
    for (int i = OUTPUT; i <= MAX_INDICES; ++i)
        stage_write_back(plan, s, i);
    return 0;
}

static int check_bags(struct plan *plan, struct bags *b, int64_t mode)
{
    const struct view *const o = plan->operands;
    REQUIRE(mode >= BAG_SUM && mode <= BAG_MAX, ACLNN_ERROR_PARAM,
            "aclnnEmbeddingBag: mode is %lld; 0 (sum), 1 (mean), 2 (max) are allowed", (long long)mode);
    TRY(check_floating(plan, &o[WEIGHT], "weight"));
    TRY(check_same_dtype(plan, &o[OUTPUT], "output", &o[WEIGHT], "weight"));
    REQUIRE(o[WEIGHT].ndim == 2 && o[INDICES].ndim == 1 && o[OFFSETS].ndim == 1, ACLNN_ERROR_PARAM,
            "aclnnEmbeddingBag: weight is %s, indices %s and offsets %s; 2, 1 and 1 dimensions are needed", view_text(&o[WEIGHT]),
            view_text(&o[INDICES]), view_text(&o[OFFSETS]));
    b->mode = (enum bag_mode)mode;
    b->rows = o[WEIGHT].sizes[0];
    b->width = o[WEIGHT].sizes[1];
    b->count = o[INDICES].count;
    b->bags = o[OFFSETS].count - (b->include_last ? 1 : 0);
    b->type = accumulate_of((enum dtype)o[WEIGHT].dtype);
    REQUIRE(b->bags >= 0, ACLNN_ERROR_PARAM, "aclnnEmbeddingBag: offsets is empty, includeLastOffset needs its last element");
    const int64_t sizes[] = {b->bags, b->width};
    TRY(check_sizes(plan, &o[OUTPUT], "output", sizes, 2));
    if (b->mode == BAG_MAX)
        TRY(check_sizes(plan, &o[MAX_INDICES], "maxIndices", sizes, 2));
    REQUIRE(o[OFFSET2BAG].count == 0 || o[OFFSET2BAG].count == b->count, ACLNN_ERROR_PARAM,
            "aclnnEmbeddingBag: offset2bag is %s; it has no element or one for each of the %lld indices", view_text(&o[OFFSET2BAG]),
            (long long)b->count);
    REQUIRE(o[BAG_SIZE].count == 0 || o[BAG_SIZE].count == b->bags, ACLNN_ERROR_PARAM,
            "aclnnEmbeddingBag: bagSize is %s; it has no element or one for each of the %lld bags", view_text(&o[BAG_SIZE]),
            (long long)b->bags);
    if (o[SAMPLE_WEIGHTS].dtype == DTYPE_NONE)
        return 0;
    TRY(check_same_dtype(plan, &o[SAMPLE_WEIGHTS], "perSampleWeights", &o[WEIGHT], "weight"));
    TRY(check_sizes(plan, &o[SAMPLE_WEIGHTS], "perSampleWeights", &b->count, 1));
    REQUIRE(b->mode == BAG_SUM, ACLNN_ERROR_PARAM, "aclnnEmbeddingBag: perSampleWeights go with mode 0 (sum), not with %lld",
            (long long)mode);
    return 0;
}

aclnnStatus aclnnEmbeddingBagGetWorkspaceSize(const aclTensor *weight, const aclTensor *indices, const aclTensor *offsets,
                                              bool scaleGradByFreq, int64_t mode, bool sparse, const aclTensor *perSampleWeights,
                                              bool includeLastOffset, int64_t paddingIdx, aclTensor *output, aclTensor *offset2bag,
                                              aclTensor *bagSize, aclTensor *maxIndices, uint64_t *workspaceSize,
                                              aclOpExecutor **executor)
{
    static const char *const names[] = {"weight", "indices",    "offsets", "perSampleWeights",
                                        "output", "offset2bag", "bagSize", "maxIndices"};
    struct plan *plan;
    (void)scaleGradByFreq; /* the gradient's */
    (void)sparse;
    TRY(plan_begin(OPERATOR_EmbeddingBag, run_embedding_bag, workspaceSize, executor, &plan));
    const aclTensor *const inputs[] = {weight, indices, offsets};
    for (int i = WEIGHT; i <= OFFSETS; ++i)
        PLAN_TRY(plan, plan_input(plan, inputs[i], names[i], NULL));
    PLAN_TRY(plan, plan_optional(plan, perSampleWeights, ROLE_INPUT, names[SAMPLE_WEIGHTS], NULL));
    aclTensor *const outputs[] = {output, offset2bag, bagSize, maxIndices};
    for (int i = OUTPUT; i <= MAX_INDICES; ++i)
        PLAN_TRY(plan, plan_output(plan, outputs[i - OUTPUT], names[i], NULL));
    struct bags *const b = PLAN_IMMEDIATE(plan, struct bags);
    stage_begin(&b->staging);
    b->include_last = includeLastOffset;
    b->padding = paddingIdx < 0 ? -1 : paddingIdx;
    PLAN_TRY(plan, check_bags(plan, b, mode));
    for (int i = INDICES; i <= MAX_INDICES; ++i) {
        const bool integer = i != OUTPUT && i != SAMPLE_WEIGHTS;
        if (integer)
            PLAN_TRY(plan, check_index_dtype(plan, &plan->operands[i], names[i]));
        if (i >= OUTPUT)
            PLAN_TRY(plan, check_output_not_expanded(plan, &plan->operands[i], names[i]));
        if (plan->operands[i].dtype != DTYPE_NONE)
            stage_operand(plan, &b->staging, &plan->operands[i], integer ? ACCUMULATE_I64 : b->type);
    }
    return plan_finish(plan, b->staging.bytes, workspaceSize, executor);
}
ACLNN_PHASE_2(EmbeddingBag)

/* --- renorm --------------------------------------------------------------------------------------------------------- */

struct renorm {
    struct staging staging;
    double most, power;
    int64_t row; /* room for one */
    enum accumulate type;
};

static double norm_of(const void *row, enum accumulate type, int64_t n, double power)
{
    double total = power == -INFINITY && n > 0 ? INFINITY : 0;
    for (int64_t i = 0; i < n; ++i) {
        const double x = fabs(tile_value(row, type, i));
        if (isinf(power))
            total = x != x || (power > 0 ? x > total : x < total) ? x : total;
        else
            total += power == 0 ? (double)(x != 0) : power == 1 ? x : power == 2 ? x * x : pow(x, power);
    }
    return isinf(power) || power == 0 || power == 1 ? total : power == 2 ? sqrt(total) : pow(total, 1 / power);
}

static void renorm_row(const struct view *table, const struct renorm *r, int64_t index, void *row)
{
    const int64_t n = table->sizes[1];
    load_row(table, r->type, index, row);
    const double norm = norm_of(row, r->type, n, r->power), scale = r->most / (norm + 1e-7);
    if (!(norm > r->most))
        return;
    for (int64_t i = 0; i < n; ++i)
        if (r->type == ACCUMULATE_F64)
            ((double *)row)[i] *= scale;
        else
            ((float *)row)[i] = (float)(tile_value(row, r->type, i) * scale);
    const int64_t at = index * table->strides[0] * (int64_t)dtype_bytes((enum dtype)table->dtype);
    kernels->convert->store[table->dtype][r->type](table->data + at, table->strides[1], row, n);
}

/* One after the other: an index may come again, and then its row isn't above the norm any more. */
static int run_renorm(struct plan *plan)
{
    const struct renorm *const r = PLAN_IMMEDIATE(plan, struct renorm);
    const struct view *const table = &plan->operands[0];
    const int64_t *const indices = stage_read(plan, &r->staging, 1);
    for (int64_t i = 0; i < plan->operands[1].count; ++i) {
        if (indices[i] < 0 || indices[i] >= table->sizes[0])
            return error_set(ERROR_RT_DEVICE_TASK, "aclnnEmbeddingRenorm", "indices[%lld] is %lld; selfRef has %lld rows",
                             (long long)i, (long long)indices[i], (long long)table->sizes[0]);
        renorm_row(table, r, indices[i], stage_room(plan, r->row));
    }
    return 0;
}

aclnnStatus aclnnEmbeddingRenormGetWorkspaceSize(aclTensor *selfRef, const aclTensor *indices, double maxNorm, double normType,
                                                 uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *table, *index;
    TRY(plan_begin(OPERATOR_EmbeddingRenorm, run_renorm, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_inout(plan, selfRef, "selfRef", &table));
    PLAN_TRY(plan, plan_input(plan, indices, "indices", &index));
    PLAN_TRY(plan, check_floating(plan, table, "selfRef"));
    PLAN_TRY(plan, check_index_dtype(plan, index, "indices"));
    PLAN_TRY(plan, check_output_not_expanded(plan, table, "selfRef"));
    PLAN_REQUIRE(plan, table->ndim == 2, ACLNN_ERROR_PARAM, "aclnnEmbeddingRenorm: selfRef is %s; 2 dimensions are needed",
                 view_text(table));
    PLAN_REQUIRE(plan, maxNorm >= 0, ACLNN_ERROR_PARAM, "aclnnEmbeddingRenorm: maxNorm is %g; at least 0 is needed", maxNorm);
    struct renorm *const r = PLAN_IMMEDIATE(plan, struct renorm);
    stage_begin(&r->staging);
    r->most = maxNorm;
    r->power = normType;
    r->type = accumulate_of((enum dtype)table->dtype);
    stage_operand(plan, &r->staging, index, ACCUMULATE_I64);
    r->row = stage_reserve(&r->staging, (uint64_t)table->sizes[1] * sizeof(double));
    return plan_finish(plan, r->staging.bytes, workspaceSize, executor);
}
ACLNN_PHASE_2(EmbeddingRenorm)
