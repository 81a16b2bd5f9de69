/* Counts by bin: bincount and histc.
 *
 * The elements are cut into slices, each counted by one thread into bins of its own, which are added at the end: whole numbers
 * don't depend on the cut. Weights that are floating numbers are added in order, in one slice. */
#include <math.h>
#include <string.h>

#include "aclnn/math/operand_check.h"
#include "aclnn/math/tile.h"
#include "aclnnop/all_operators.h"
#include "base/arithmetic.h"
#include "base/pool.h"

enum { SLICE = 1 << 15 }; /* elements that are worth a slice */

union bin {
    int64_t i64;
    double f64;
};

struct slice {
    double low, high; /* find_range */
    int64_t stray;    /* bincount: the first value without a bin, */
    bool is_stray;    /* if there is one */
};

struct tally {
    const struct view *self, *weights;
    enum accumulate type;              /* of the bins */
    int64_t bins, slices, slice_count; /* slice_count: elements of one */
    union bin *counts;                 /* [slices][bins]; the first row becomes the sum */
    struct slice *found;               /* [slices] */
    double low, scale, shrink;         /* histc: bin = (x * shrink - low) * bins / scale */
    double first, last;                /* histc: values that count */
};

/* Scratch for as many slices as pay: not so many that clearing and adding their bins costs more than counting. */
static int tally_begin(struct tally *t, const struct plan *plan, bool in_order)
{
    const int64_t count = t->self->count;
    int64_t slices = in_order ? 1 : least(2 * (int64_t)pool_threads(), count / SLICE);
    if (slices > 1 && slices * t->bins > count / 2)
        slices = count / 2 / t->bins;
    t->slices = slices > 1 ? slices : 1;
    t->slice_count = count / t->slices + (count % t->slices != 0);
    const size_t counts = (size_t)t->slices * (size_t)t->bins * sizeof *t->counts;
    char *const memory = pool_scratch(0, counts + (size_t)t->slices * sizeof *t->found);
    if (!memory)
        return error_set(ERROR_BAD_ALLOC, plan_name(plan), "no memory for %lld bins", (long long)t->bins);
    t->counts = (union bin *)(void *)memory;
    t->found = (struct slice *)(void *)(memory + counts);
    memset(memory, 0, counts + (size_t)t->slices * sizeof *t->found);
    return 0;
}

/* Adds the rows of the slices and writes them. */
static void tally_finish(const struct tally *t, const struct view *out)
{
    for (int64_t s = 1; s < t->slices; ++s)
        for (int64_t i = 0; i < t->bins; ++i)
            t->counts[i].i64 += t->counts[s * t->bins + i].i64;
    tile_write(out, 0, out->count, t->counts, t->type);
}

/* --- bincount: operands self, weights (or absent), out --------------------------------------------------------------------------- */

static void count_classes(void *argument, int64_t begin, int64_t end)
{
    const struct tally *const t = argument;
    int64_t classes[TILE];
    union bin weight[TILE];
    for (int64_t s = begin; s < end; ++s) {
        union bin *const bins = t->counts + s * t->bins;
        const int64_t past = least((s + 1) * t->slice_count, t->self->count);
        for (int64_t at = s * t->slice_count; at < past && !t->found[s].is_stray; at += TILE) {
            const int64_t n = least(TILE, past - at);
            tile_read(classes, ACCUMULATE_I64, t->self, at, n);
            if (t->weights->data)
                tile_read(weight, t->type, t->weights, at, n);
            for (int64_t i = 0; i < n; ++i) {
                if (classes[i] < 0 || classes[i] >= t->bins) {
                    t->found[s].stray = classes[i];
                    t->found[s].is_stray = true;
                    break;
                }
                if (t->type == ACCUMULATE_F64)
                    bins[classes[i]].f64 += weight[i].f64;
                else
                    bins[classes[i]].i64 += t->weights->data ? weight[i].i64 : 1;
            }
        }
    }
}

static int bincount_run(struct plan *plan)
{
    const struct view *const weights = &plan->operands[1], *const out = &plan->operands[2];
    struct tally t = {.self = &plan->operands[0], .weights = weights, .type = ACCUMULATE_I64, .bins = out->count};
    if (weights->data && accumulate_of((enum dtype)out->dtype) != ACCUMULATE_I64)
        t.type = ACCUMULATE_F64;
    TRY(tally_begin(&t, plan, t.type == ACCUMULATE_F64));
    pool_for(t.slices, 1, count_classes, &t);
    for (int64_t s = 0; s < t.slices; ++s)
        if (t.found[s].is_stray)
            return error_set(ERROR_RT_DEVICE_TASK, plan_name(plan), "value %lld has no bin; there are %lld, from 0",
                             (long long)t.found[s].stray, (long long)out->count);
    tally_finish(&t, out);
    return 0;
}

aclnnStatus aclnnBincountGetWorkspaceSize(const aclTensor *self, const aclTensor *weights, int64_t minlength, aclTensor *out,
                                          uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *from, *factor, *to;
    TRY(plan_begin(OPERATOR_Bincount, bincount_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, self, "self", &from));
    PLAN_TRY(plan, plan_optional(plan, weights, ROLE_INPUT, "weights", &factor));
    PLAN_TRY(plan, plan_output(plan, out, "out", &to));
    PLAN_TRY(plan, check_not_complex(plan, to, "out"));
    PLAN_TRY(plan, check_output_not_expanded(plan, to, "out"));
    PLAN_REQUIRE(plan, dtype_kind((enum dtype)from->dtype) == KIND_INTEGER && from->ndim <= 1, ACLNN_ERROR_PARAM,
                 "self is %s; it has integers and one dimension", view_text(from));
    if (factor->data) {
        PLAN_TRY(plan, check_not_complex(plan, factor, "weights"));
        PLAN_TRY(plan, check_sizes(plan, factor, "weights", from->sizes, from->ndim));
    }
    PLAN_REQUIRE(plan, to->ndim == 1 && to->count >= minlength, ACLNN_ERROR_PARAM,
                 "out is %s; it has one dimension and at least "
                 "minlength = %lld bins",
                 view_text(to), (long long)minlength);
    return finish_by_size(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(Bincount)

/* --- histc: operands self, out ---------------------------------------------------------------------------------------------------- */

struct histogram_job {
    double low, high;
};

/* Least and greatest element of each slice; NaN when there is one. */
static void find_range(void *argument, int64_t begin, int64_t end)
{
    const struct tally *const t = argument;
    double tile[TILE];
    for (int64_t s = begin; s < end; ++s) {
        double low = INFINITY, high = -INFINITY;
        bool has_nan = false;
        const int64_t past = least((s + 1) * t->slice_count, t->self->count);
        for (int64_t at = s * t->slice_count; at < past; at += TILE) {
            const int64_t n = least(TILE, past - at);
            tile_read(tile, ACCUMULATE_F64, t->self, at, n);
            for (int64_t i = 0; i < n; ++i) {
                low = tile[i] < low ? tile[i] : low;
                high = tile[i] > high ? tile[i] : high;
                has_nan |= isnan(tile[i]);
            }
        }
        t->found[s].low = has_nan ? NAN : low;
        t->found[s].high = has_nan ? NAN : high;
    }
}

static void count_values(void *argument, int64_t begin, int64_t end)
{
    const struct tally *const t = argument;
    double tile[TILE];
    for (int64_t s = begin; s < end; ++s) {
        union bin *const bins = t->counts + s * t->bins;
        const int64_t past = least((s + 1) * t->slice_count, t->self->count);
        for (int64_t at = s * t->slice_count; at < past; at += TILE) {
            const int64_t n = least(TILE, past - at);
            tile_read(tile, ACCUMULATE_F64, t->self, at, n);
            for (int64_t i = 0; i < n; ++i) {
                if (!(tile[i] >= t->first && tile[i] <= t->last))
                    continue;
                const int64_t bin = (int64_t)((tile[i] * t->shrink - t->low) * (double)t->bins / t->scale);
                ++bins[bin < t->bins ? bin : t->bins - 1].i64;
            }
        }
    }
}

/* With low == high the range is that of the data, as in torch. */
static int histogram_run(struct plan *plan)
{
    const struct histogram_job *const job = PLAN_IMMEDIATE(plan, struct histogram_job);
    const struct view *const self = &plan->operands[0], *const out = &plan->operands[1];
    struct tally t = {.self = self, .type = ACCUMULATE_I64, .bins = out->count, .first = job->low, .last = job->high};
    TRY(tally_begin(&t, plan, false));
    if (job->low == job->high && self->count > 0) {
        pool_for(t.slices, 1, find_range, &t);
        t.first = t.found[0].low;
        t.last = t.found[0].high;
        for (int64_t s = 1; s < t.slices; ++s) {
            t.first = t.found[s].low < t.first || isnan(t.found[s].low) ? t.found[s].low : t.first;
            t.last = t.found[s].high > t.last || isnan(t.found[s].high) ? t.found[s].high : t.last;
        }
        if (!isfinite(t.first) || !isfinite(t.last))
            return error_set(ERROR_RT_DEVICE_TASK, plan_name(plan), "range of [%g, %g] is not finite", t.first, t.last);
    }
    if (t.first == t.last) {
        t.first -= 1;
        t.last += 1;
        if (t.first == t.last)
            return error_set(ERROR_RT_DEVICE_TASK, plan_name(plan), "all values are %g, where doubles are wider than a range of 2",
                             t.first);
    }
    t.shrink = t.last / 2 - t.first / 2 > 1e280 ? 0x1p-200 : 1; /* neither the range nor a product overflows */
    t.low = t.first * t.shrink;
    t.scale = t.last * t.shrink - t.low;
    pool_for(t.slices, 1, count_values, &t);
    tally_finish(&t, out);
    return 0;
}

aclnnStatus aclnnHistcGetWorkspaceSize(const aclTensor *self, int64_t bins, const aclScalar *min, const aclScalar *max,
                                       aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *from, *to;
    TRY(plan_begin(OPERATOR_Histc, histogram_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, self, "self", &from));
    PLAN_TRY(plan, plan_output(plan, out, "out", &to));
    PLAN_TRY(plan, check_not_complex(plan, from, "self"));
    PLAN_TRY(plan, check_not_complex(plan, to, "out"));
    PLAN_TRY(plan, check_not_null(plan, min, "min"));
    PLAN_TRY(plan, check_not_null(plan, max, "max"));
    PLAN_REQUIRE(plan, from->dtype != DTYPE_B8, ACLNN_ERROR_PARAM, "self is %s; numbers are allowed", view_text(from));
    PLAN_REQUIRE(plan, bins > 0, ACLNN_ERROR_PARAM, "bins is %lld; at least one is needed", (long long)bins);
    PLAN_TRY(plan, check_sizes(plan, to, "out", &bins, 1));
    PLAN_REQUIRE(plan, isfinite(scalar_to_double(min)) && isfinite(scalar_to_double(max)), ACLNN_ERROR_PARAM,
                 "range of [%g, %g] is not finite", scalar_to_double(min), scalar_to_double(max));
    const struct histogram_job job = {scalar_to_double(min), scalar_to_double(max)};
    PLAN_REQUIRE(plan, job.low <= job.high, ACLNN_ERROR_PARAM, "min is %g and max is %g; min <= max is needed", job.low, job.high);
    *PLAN_IMMEDIATE(plan, struct histogram_job) = job;
    return finish_by_size(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(Histc)
