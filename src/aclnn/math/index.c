/* Indexing of whole dimensions: index_select, embedding, x[i, j], x[i, j] = v. The work is in index_blocks.c. */
#include <string.h>

#include "aclnn/math/index_blocks.h"
#include "aclnn/math/index_mask.h"
#include "aclnn/math/operand_check.h"
#include "aclnnop/all_operators.h"
#include "base/pool.h"
#include "kernels/index.h"
#include "kernels/kernels.h"

static int take_scratch(const struct plan *plan, int slot, int64_t bytes, void **memory)
{
    *memory = pool_scratch(slot, (size_t)(bytes > 0 ? bytes : 1));
    if (!*memory)
        return error_set(ERROR_BAD_ALLOC, plan_name(plan), "no memory for %lld bytes of indices", (long long)bytes);
    return 0;
}

/* --- one indexed dimension ---------------------------------------------------------------------------------------------- */

struct dim_job {
    int dim;
};

/* Operands: self, index, out. */
static int index_select_run(struct plan *plan)
{
    const struct view self = view_at_least_1d(plan->operands[0]), index = view_at_least_1d(plan->operands[1]);
    const struct view out = view_at_least_1d(plan->operands[2]);
    return index_blocks_on_dim(plan, &self, &index, &out, PLAN_IMMEDIATE(plan, struct dim_job)->dim, BLOCKS_READ);
}

static int index_select_checked(struct plan *plan, const aclTensor *self, int64_t dim, const aclTensor *index, aclTensor *out)
{
    struct view *from, *list, *to;
    int64_t sizes[TENSOR_MAX_DIMS];
    int *const wrapped = &PLAN_IMMEDIATE(plan, struct dim_job)->dim;
    TRY(plan_input(plan, self, "self", &from));
    TRY(plan_input(plan, index, "index", &list));
    TRY(plan_output(plan, out, "out", &to));
    TRY(check_dim(plan, dim, from, "dim", wrapped));
    TRY(check_index_dtype(plan, list, "index"));
    TRY(check_same_dtype(plan, from, "self", to, "out"));
    if (list->ndim > 1)
        return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "index is %s; it has at most one dimension", view_text(list));
    if (from->ndim == 0 && list->count != 1)
        return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "index is %s; a self without dimensions takes one index",
                         view_text(list));
    memcpy(sizes, from->sizes, sizeof sizes);
    if (from->ndim > 0)
        sizes[*wrapped] = list->count;
    TRY(check_sizes(plan, to, "out", sizes, from->ndim));
    return check_output_not_expanded(plan, to, "out");
}

aclnnStatus aclnnIndexSelectGetWorkspaceSize(const aclTensor *self, int64_t dim, const aclTensor *index, aclTensor *out,
                                             uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(OPERATOR_IndexSelect, index_select_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, index_select_checked(plan, self, dim, index, out));
    return finish_by_size(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(IndexSelect)

/* The same with leading batch dimensions, of which index_select has none; mode is a hint about performance. */
aclnnStatus aclnnGatherV3GetWorkspaceSize(const aclTensor *self, int64_t dim, const aclTensor *index, int64_t batchDims,
                                          int64_t mode, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(OPERATOR_GatherV3, index_select_run, workspaceSize, executor, &plan));
    PLAN_REQUIRE(plan, batchDims == 0, ACLNN_ERROR_PARAM, "batchDims is %lld; 0 is supported", (long long)batchDims);
    PLAN_TRY(plan, index_select_checked(plan, self, dim, index, out));
    return finish_by_size(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(GatherV3)

/* --- embedding ------------------------------------------------------------------------------------------------------------ */

/* Operands: weight, indices, out. */
static int embedding_run(struct plan *plan)
{
    return index_blocks_on_dim(plan, &plan->operands[0], &plan->operands[1], &plan->operands[2], 0, BLOCKS_READ);
}

static int embedding_checked(struct plan *plan, const aclTensor *weight, const aclTensor *indices, const aclTensor *out)
{
    struct view *table, *list, *to;
    int64_t sizes[2 * TENSOR_MAX_DIMS];
    TRY(plan_input(plan, weight, "weight", &table));
    TRY(plan_input(plan, indices, "indices", &list));
    TRY(plan_output(plan, out, "out", &to));
    TRY(check_index_dtype(plan, list, "indices"));
    TRY(check_same_dtype(plan, table, "weight", to, "out"));
    if (table->ndim == 0)
        return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "weight is %s; it has at least one dimension", view_text(table));
    memcpy(sizes, list->sizes, list->ndim * sizeof *sizes);
    memcpy(sizes + list->ndim, table->sizes + 1, (table->ndim - 1u) * sizeof *sizes);
    if (list->ndim + table->ndim - 1 > TENSOR_MAX_DIMS)
        return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "the result of weight %s and indices %s has more than %d dimensions",
                         view_text(table), view_text(list), TENSOR_MAX_DIMS);
    TRY(check_sizes(plan, to, "out", sizes, list->ndim + table->ndim - 1));
    return check_output_not_expanded(plan, to, "out");
}

aclnnStatus aclnnEmbeddingGetWorkspaceSize(const aclTensor *weight, const aclTensor *indices, const aclTensor *out,
                                           uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(OPERATOR_Embedding, embedding_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, embedding_checked(plan, weight, indices, out));
    return finish_by_size(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(Embedding)

struct embedding_gradient {
    struct view grad;      /* [positions, width], the leading dimensions folded by walk_offset */
    struct view out;       /* [rows, width] */
    const int64_t *starts; /* [rows + 1] into `order` */
    const int64_t *order;  /* positions, grouped by row, ascending */
    bool scale_by_frequency;
    enum accumulate type;
};

/* Rows of the weight's gradient: each adds up its positions in ascending order, in the accumulate type. */
static void gradient_rows(void *argument, int64_t begin, int64_t end)
{
    const struct embedding_gradient *const g = argument;
    enum { WIDTH = 512 };
    double sum[WIDTH], row[WIDTH];
    const int last = g->grad.ndim - 1;
    const int64_t width = g->out.sizes[1], bytes = (int64_t)dtype_bytes((enum dtype)g->out.dtype);
    const int64_t size = accumulate_bytes(g->type);
    const convert_load_fn load = kernels->convert->load[g->grad.dtype][g->type];
    const convert_store_fn store = kernels->convert->store[g->out.dtype][g->type];
    const update_fn add = kernels->index->update[UPDATE_add][g->type == ACCUMULATE_F64 ? DTYPE_F64 : DTYPE_F32];
    for (int64_t r = begin; r < end; ++r)
        for (int64_t c = 0; c < width; c += WIDTH) {
            const int64_t n = width - c < WIDTH ? width - c : WIDTH, count = g->starts[r + 1] - g->starts[r];
            memset(sum, 0, (size_t)(n * size));
            for (int64_t k = g->starts[r]; k < g->starts[r + 1]; ++k) {
                const int64_t from = walk_offset(g->order[k], last, g->grad.sizes, g->grad.strides) + c * g->grad.strides[last];
                load(row, g->grad.data + from * bytes, g->grad.strides[last], n);
                add(sum, 1, row, 1, n);
            }
            for (int64_t i = 0; g->scale_by_frequency && count > 1 && i < n; ++i)
                if (g->type == ACCUMULATE_F64)
                    sum[i] /= (double)count;
                else
                    ((float *)(void *)sum)[i] /= (float)count;
            store(g->out.data + (r * g->out.strides[0] + c * g->out.strides[1]) * bytes, g->out.strides[1], sum, n);
        }
}

struct embedding_job {
    int64_t padding;
    bool scale_by_frequency;
};

/* Operands: grad, indices, out. Groups the positions by row (a counting sort), so that rows can be added up in parallel. */
static int embedding_backward_run(struct plan *plan)
{
    const struct embedding_job *const job = PLAN_IMMEDIATE(plan, struct embedding_job);
    const struct view *const indices = &plan->operands[1], *const out = &plan->operands[2];
    const int64_t rows = out->sizes[0], positions = indices->count;
    void *memory;
    TRY(take_scratch(plan, 0, (2 * positions + rows + 2) * 8, &memory));
    int64_t *const index = memory, *const order = index + positions, *const starts = order + positions;
    const struct index_term term = {*indices, 0, rows, 1};
    TRY(index_offsets((enum operator_id)plan->operator_id, &term, 1, false, index));
    memset(starts, 0, (size_t)(rows + 2) * 8);
    for (int64_t p = 0; p < positions; ++p)
        starts[index[p] + 2] += index[p] != job->padding;
    for (int64_t r = 0; r <= rows; ++r)
        starts[r + 1] += starts[r];
    for (int64_t p = 0; p < positions; ++p)
        if (index[p] != job->padding)
            order[starts[index[p] + 1]++] = p;
    struct embedding_gradient g = {
        plan->operands[0], *out, starts, order, job->scale_by_frequency, accumulate_of((enum dtype)out->dtype)};
    const int64_t work = out->sizes[1] * (1 + positions / (rows > 0 ? rows : 1));
    pool_for(rows, work > 0 && work < (1 << 14) ? (1 << 14) / work : 1, gradient_rows, &g);
    return 0;
}

static int embedding_backward_checked(struct plan *plan, const aclTensor *grad, const aclTensor *indices, uint64_t rows,
                                      const aclTensor *out)
{
    struct view *from, *list, *to;
    TRY(plan_input(plan, grad, "grad", &from));
    TRY(plan_input(plan, indices, "indices", &list));
    TRY(plan_output(plan, out, "out", &to));
    TRY(check_index_dtype(plan, list, "indices"));
    TRY(check_floating(plan, from, "grad"));
    TRY(check_same_dtype(plan, from, "grad", to, "out"));
    if (from->ndim != list->ndim + 1 || memcmp(from->sizes, list->sizes, list->ndim * sizeof *from->sizes) != 0)
        return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "grad is %s and indices is %s; grad has one more dimension at the end",
                         view_text(from), view_text(list));
    const int64_t sizes[2] = {(int64_t)rows, from->sizes[from->ndim - 1]};
    TRY(check_sizes(plan, to, "out", sizes, 2));
    return check_output_not_expanded(plan, to, "out");
}

aclnnStatus aclnnEmbeddingDenseBackwardGetWorkspaceSize(const aclTensor *grad, const aclTensor *indices, uint64_t numWeights,
                                                        uint64_t paddingIdx, bool scaleGradByFreq, const aclTensor *out,
                                                        uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(OPERATOR_EmbeddingDenseBackward, embedding_backward_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, embedding_backward_checked(plan, grad, indices, numWeights, out));
    *PLAN_IMMEDIATE(plan, struct embedding_job) = (struct embedding_job){(int64_t)paddingIdx, scaleGradByFreq};
    return finish_by_size(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(EmbeddingDenseBackward)

/* --- x[i, j] and its assignment -------------------------------------------------------------------------------------------- */

/* Operands: the indexed tensor, the blocks (out or values), then one view for each entry of the list. */
enum { FIRST_ENTRY = 2 };

struct list_job {
    int entries;
    bool skipped[TENSOR_MAX_DIMS]; /* a full slice; its operand stands for nothing */
    bool accumulate, writes, nothing;
};

/* What the entries mean for a tensor, with masks already replaced by positions. */
struct list_geometry {
    struct index_term terms[TENSOR_MAX_DIMS];
    int term_count;
    int common_ndim; /* of the broadcast index tensors */
    int64_t common_sizes[TENSOR_MAX_DIMS];
    int first; /* where their dimensions stand in the result */
    int result_ndim;
    int64_t result_sizes[2 * TENSOR_MAX_DIMS];
};

static bool is_mask(const struct view *v) { return v->dtype == DTYPE_B8 || v->dtype == DTYPE_U8; }

/* Fills the terms' dim, size and stride; index views come from the entries. Returns dimensions consumed, or -1 with an error. */
static int collect_terms(const struct plan *plan, const struct list_job *job, const struct view *indexed,
                         const struct view *masks_as_positions, struct list_geometry *g)
{
    int dim = 0, mask_views = 0;
    g->term_count = 0;
    for (int e = 0; e < job->entries; ++e) {
        const struct view *const entry = &plan->operands[FIRST_ENTRY + e];
        const int consumed = job->skipped[e] ? 1 : is_mask(entry) ? entry->ndim : 1;
        if (dim + consumed > indexed->ndim) {
            error_set(ACLNN_ERROR_PARAM, plan_name(plan), "the list of indices is for more dimensions than self's %d",
                      indexed->ndim);
            return -1;
        }
        for (int k = 0; k < consumed && !job->skipped[e]; ++k) {
            struct index_term *const t = &g->terms[g->term_count++];
            *t = (struct index_term){.dim = dim + k, .size = indexed->sizes[dim + k], .stride = indexed->strides[dim + k]};
            t->index = is_mask(entry) ? masks_as_positions[mask_views++] : *entry;
        }
        dim += consumed;
    }
    return dim;
}

/* Broadcasts the index tensors and lays out the result. */
static int lay_out(const struct plan *plan, const struct view *indexed, struct list_geometry *g)
{
    struct view common = {.ndim = 0, .count = 1};
    bool adjacent = true;
    for (int t = 0; t < g->term_count; ++t) {
        adjacent &= t == 0 || g->terms[t].dim == g->terms[t - 1].dim + 1;
        if (!view_broadcast_sizes(&common, &g->terms[t].index, g->common_sizes, &common.ndim))
            return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "index %s doesn't broadcast with the others",
                             view_text(&g->terms[t].index));
        memcpy(common.sizes, g->common_sizes, sizeof common.sizes);
    }
    g->common_ndim = common.ndim;
    for (int t = 0; t < g->term_count; ++t)
        view_expand(&g->terms[t].index, g->common_sizes, common.ndim);
    g->first = adjacent && g->term_count > 0 ? g->terms[0].dim : 0;
    int n = 0, t = 0;
    for (int d = 0; d <= indexed->ndim; ++d) {
        if (n == g->first && t == 0) {
            memcpy(g->result_sizes + n, g->common_sizes, (size_t)g->common_ndim * sizeof *g->result_sizes);
            n += g->common_ndim;
            t = 1;
        }
        bool is_indexed = d == indexed->ndim;
        for (int k = 0; k < g->term_count; ++k)
            is_indexed |= g->terms[k].dim == d;
        if (!is_indexed)
            g->result_sizes[n++] = indexed->sizes[d];
    }
    g->result_ndim = n;
    if (n > TENSOR_MAX_DIMS)
        return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "the result would have %d dimensions; at most %d are allowed", n,
                         TENSOR_MAX_DIMS);
    return 0;
}

static int list_run_blocks(struct plan *plan, const struct list_geometry *g, const struct view *blocks)
{
    const struct list_job *const job = PLAN_IMMEDIATE(plan, struct list_job);
    const struct view *const indexed = &plan->operands[0];
    struct index_blocks w = {.indexed = indexed->data,
                             .blocks = blocks->data,
                             .dtype = (enum dtype)indexed->dtype,
                             .positions = 1,
                             .position_ndim = g->common_ndim};
    void *offsets;
    for (int i = 0; i < g->common_ndim; ++i) {
        w.positions *= w.position_sizes[i] = g->common_sizes[i];
        w.position_strides[i] = blocks->strides[g->first + i];
    }
    for (int d = 0, at = 0; d < indexed->ndim; ++d) {
        bool is_indexed = false;
        for (int k = 0; k < g->term_count; ++k)
            is_indexed |= g->terms[k].dim == d;
        if (is_indexed)
            continue;
        at += at == g->first ? g->common_ndim : 0;
        w.block_sizes[w.block_ndim] = indexed->sizes[d];
        w.indexed_strides[w.block_ndim] = indexed->strides[d];
        w.block_strides[w.block_ndim++] = blocks->strides[at++];
    }
    if (blocks->count == 0)
        return 0;
    TRY(take_scratch(plan, 0, w.positions * 8, &offsets));
    memset(offsets, 0, g->term_count ? 0 : (size_t)w.positions * 8);
    TRY(index_offsets((enum operator_id)plan->operator_id, g->terms, g->term_count, true, offsets));
    w.offsets = offsets;
    index_blocks_run(&w, !job->writes ? BLOCKS_READ : job->accumulate ? BLOCKS_ADD : BLOCKS_WRITE);
    return 0;
}

static int no_memory_for_mask(const struct plan *plan, const struct view *mask)
{
    return error_set(ERROR_BAD_ALLOC, plan_name(plan), "no memory for the counts of the mask %s", view_text(mask));
}

/* Makes the positions of all masks in scratch 1 and views of them. */
static int masks_to_positions(struct plan *plan, struct view *views)
{
    const struct list_job *const job = PLAN_IMMEDIATE(plan, struct list_job);
    int64_t bytes = 0, counts[TENSOR_MAX_DIMS];
    void *memory;
    for (int e = 0; e < job->entries; ++e) {
        const struct view *const entry = &plan->operands[FIRST_ENTRY + e];
        counts[e] = 0;
        if (!job->skipped[e] && is_mask(entry) && !mask_count(entry, &counts[e]))
            return no_memory_for_mask(plan, entry);
        bytes += counts[e] * entry->ndim * 8;
    }
    TRY(take_scratch(plan, 1, bytes, &memory));
    char *at = memory;
    int n = 0;
    for (int e = 0; e < job->entries; ++e) {
        const struct view *const entry = &plan->operands[FIRST_ENTRY + e];
        if (job->skipped[e] || !is_mask(entry))
            continue;
        if (!mask_positions(entry, (int64_t *)(void *)at, 1, counts[e]))
            return no_memory_for_mask(plan, entry);
        for (int d = 0; d < entry->ndim; ++d, at += counts[e] * 8) {
            views[n] = (struct view){.data = at, .dtype = DTYPE_I64, .ndim = 1, .sizes = {counts[e]}};
            view_make_contiguous(&views[n++]);
        }
    }
    return 0;
}

static int list_run(struct plan *plan)
{
    const struct list_job *const job = PLAN_IMMEDIATE(plan, struct list_job);
    struct view masks[TENSOR_MAX_DIMS], blocks = plan->operands[1];
    struct list_geometry g;
    if (job->nothing)
        return 0;
    TRY(masks_to_positions(plan, masks));
    if (collect_terms(plan, job, &plan->operands[0], masks, &g) < 0)
        return ACLNN_ERROR_PARAM;
    TRY(lay_out(plan, &plan->operands[0], &g));
    if (job->writes && !view_expand(&blocks, g.result_sizes, (uint8_t)g.result_ndim))
        return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "values is %s and doesn't broadcast to the %lld indexed places",
                         view_text(&blocks), (long long)g.result_sizes[g.first]);
    if (!job->writes)
        TRY(check_sizes(plan, &blocks, "out", g.result_sizes, g.result_ndim));
    return list_run_blocks(plan, &g, &blocks);
}

/* A full slice comes as NULL or as an empty tensor, which could also be an index that selects nothing. Nothing is to be done
 * when the result is empty, or when an assignment has empty indices only; everywhere else an empty index is a full slice,
 * since it wouldn't broadcast with the others. */
static bool selects_nothing(const struct list_job *job, const struct view *indexed, const struct view *blocks,
                            const aclTensorList *indices)
{
    bool any_empty = false;
    if (blocks->count == 0 || (job->writes && indexed->count == 0))
        return true;
    for (uint64_t e = 0; e < indices->count; ++e) {
        any_empty |= indices->tensors[e] && indices->tensors[e]->view.count == 0;
        if (indices->tensors[e] && indices->tensors[e]->view.count > 0)
            return false;
    }
    return job->writes && any_empty;
}

static int add_entries(struct plan *plan, const aclTensorList *indices)
{
    struct list_job *const job = PLAN_IMMEDIATE(plan, struct list_job);
    if (indices->count > TENSOR_MAX_DIMS)
        return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "indices has %llu entries; at most %d are allowed",
                         (unsigned long long)indices->count, TENSOR_MAX_DIMS);
    job->entries = (int)indices->count;
    for (int e = 0; e < job->entries; ++e) {
        const aclTensor *const entry = indices->tensors[e];
        job->skipped[e] = !entry || entry->view.count == 0;
        if (job->skipped[e]) {
            TRY(plan_optional(plan, NULL, ROLE_INPUT, "indices", NULL));
            continue;
        }
        struct view *v;
        TRY(plan_input(plan, entry, "indices", &v));
        if (!is_mask(v))
            TRY(check_index_dtype(plan, v, "indices"));
    }
    return 0;
}

static int list_checked(struct plan *plan, const struct view *indexed, struct view *blocks, const aclTensorList *indices)
{
    struct list_job *const job = PLAN_IMMEDIATE(plan, struct list_job);
    struct list_geometry g;
    struct view masks[TENSOR_MAX_DIMS] = {{.ndim = 0}};
    TRY(check_not_null(plan, indices, "indices"));
    job->nothing = selects_nothing(job, indexed, blocks, indices);
    if (job->nothing)
        return 0;
    TRY(add_entries(plan, indices));
    TRY(check_same_dtype(plan, indexed, job->writes ? "selfRef" : "self", blocks, job->writes ? "values" : "out"));
    if (collect_terms(plan, job, indexed, masks, &g) < 0)
        return ACLNN_ERROR_PARAM;
    for (int e = 0; e < job->entries; ++e)
        if (!job->skipped[e] && is_mask(&plan->operands[FIRST_ENTRY + e]))
            return 0; /* the result's size depends on the mask: checked when it runs */
    TRY(lay_out(plan, indexed, &g));
    struct view wide = *blocks;
    if (!job->writes)
        return check_sizes(plan, blocks, "out", g.result_sizes, g.result_ndim);
    if (!view_expand(&wide, g.result_sizes, (uint8_t)g.result_ndim)) {
        wide.ndim = (uint8_t)g.result_ndim;
        memcpy(wide.sizes, g.result_sizes, sizeof wide.sizes);
        return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "values is %s and doesn't broadcast to %s", view_text(blocks),
                         view_text(&wide));
    }
    return 0;
}

aclnnStatus aclnnIndexGetWorkspaceSize(const aclTensor *self, const aclTensorList *indices, aclTensor *out, uint64_t *workspaceSize,
                                       aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *from, *to;
    TRY(plan_begin(OPERATOR_Index, list_run, workspaceSize, executor, &plan));
    *PLAN_IMMEDIATE(plan, struct list_job) = (struct list_job){.writes = false};
    PLAN_TRY(plan, plan_input(plan, self, "self", &from));
    PLAN_TRY(plan, plan_output(plan, out, "out", &to));
    PLAN_TRY(plan, check_output_not_expanded(plan, to, "out"));
    PLAN_TRY(plan, list_checked(plan, from, to, indices));
    return finish_by_size(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(Index)

aclnnStatus aclnnIndexPutImplGetWorkspaceSize(aclTensor *selfRef, const aclTensorList *indices, const aclTensor *values,
                                              bool accumulate, bool unsafe, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *to, *from;
    TRY(plan_begin(OPERATOR_IndexPutImpl, list_run, workspaceSize, executor, &plan));
    *PLAN_IMMEDIATE(plan, struct list_job) = (struct list_job){.writes = true, .accumulate = accumulate};
    PLAN_TRY(plan, plan_inout(plan, selfRef, "selfRef", &to));
    PLAN_TRY(plan, plan_input(plan, values, "values", &from));
    PLAN_REQUIRE(plan, !accumulate || !dtype_is_stored_only((enum dtype)to->dtype), ACLNN_ERROR_PARAM,
                 "aclnnIndexPutImpl: selfRef is %s, a type without sums; only accumulate = false is allowed", view_text(to));
    PLAN_TRY(plan, list_checked(plan, to, from, indices));
    return finish_by_size(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(IndexPutImpl)
