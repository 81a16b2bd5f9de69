/* Random choices: permutations and samples from discrete distributions. Philox as in random.c: element i (of the permutation,
 * of the probabilities, or of the samples) draws from subsequence i at the generator's offset. */
#include <string.h>

#include "aclnn/math/operand_check.h"
#include "aclnn/math/tile.h"
#include "aclnnop/all_operators.h"
#include "base/philox.h"
#include "base/pool.h"
#include "kernels/kernels.h"
#include "kernels/random.h"

enum { WORDS = 512 }; /* drawn together */

struct sample_job {
    uint64_t seed, offset;
    int64_t count;
    bool replacement, seed_in_tensors;
};

static uint64_t draw_64(const struct sample_job *job, int64_t i)
{
    const struct philox_block block = philox(job->seed, (uint64_t)i, job->offset / 4);
    return (uint64_t)block.word[0] << 32 | block.word[1];
}

static double draw_unit(const struct sample_job *job, int64_t i) { return (double)(int64_t)(draw_64(job, i) >> 11) * 0x1p-53; }

static int out_of_memory(const struct plan *plan, int64_t bytes)
{
    return error_set(ERROR_BAD_ALLOC, plan_name(plan), "no memory for %lld bytes", (long long)bytes);
}

/* --- randperm ------------------------------------------------------------------------------------------------------------- */

/* Fisher and Yates' shuffle; position i trades places with one of those not yet fixed. */
static int randperm_run(struct plan *plan)
{
    const struct sample_job *const job = PLAN_IMMEDIATE(plan, struct sample_job);
    const struct view *const out = &plan->operands[0];
    const int64_t n = out->count;
    if (n == 0)
        return 0;
    int64_t *const list = pool_scratch(0, (size_t)n * sizeof *list);
    if (!list)
        return out_of_memory(plan, n * (int64_t)sizeof *list);
    for (int64_t i = 0; i < n; ++i)
        list[i] = i;
    uint32_t words[4 * WORDS];
    for (int64_t i = 0; i + 1 < n; ++i) {
        if (i % WORDS == 0)
            kernels->random->words(words, job->seed, (uint64_t)i, job->offset / 4, WORDS);
        const uint64_t left = (uint64_t)(n - i), word = (uint64_t)words[i % WORDS] << 32 | words[WORDS + i % WORDS];
        const int64_t other = i + (int64_t)((unsigned __int128)word * left >> 64);
        const int64_t swap = list[i];
        list[i] = list[other];
        list[other] = swap;
    }
    tile_write(out, 0, n, list, ACCUMULATE_I64);
    return 0;
}

aclnnStatus aclnnRandpermGetWorkspaceSize(int64_t n, int64_t seed, int64_t offset, aclTensor *out, uint64_t *workspaceSize,
                                          aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *to;
    TRY(plan_begin(OPERATOR_Randperm, randperm_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_output(plan, out, "out", &to));
    PLAN_TRY(plan, check_not_complex(plan, to, "out"));
    PLAN_REQUIRE(plan, to->dtype != DTYPE_B8, ACLNN_ERROR_PARAM, "aclnnRandperm: out is %s; numbers are allowed", view_text(to));
    PLAN_TRY(plan, check_sizes(plan, to, "out", &n, 1));
    PLAN_TRY(plan, check_output_not_expanded(plan, to, "out"));
    *PLAN_IMMEDIATE(plan, struct sample_job) = (struct sample_job){.seed = (uint64_t)seed, .offset = (uint64_t)offset};
    return finish_by_size(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(Randperm)

/* --- multinomial ------------------------------------------------------------------------------------------------------------ */

/* Reads a row of probabilities; refuses negative, infinite, NaN ones, and a sum of 0. */
static int read_row(const struct plan *plan, const struct view *self, int64_t row, double *weights)
{
    const int64_t n = self->sizes[self->ndim - 1];
    double sum = 0;
    bool valid = true;
    tile_read(weights, ACCUMULATE_F64, self, row * n, n);
    for (int64_t i = 0; i < n; ++i) {
        valid &= weights[i] >= 0 && weights[i] <= 1.7976931348623157e308;
        sum += weights[i];
    }
    if (valid && sum > 0)
        return 0;
    return error_set(ERROR_RT_DEVICE_TASK, plan_name(plan),
                     valid ? "row %lld of the probabilities has sum <= 0"
                           : "row %lld of the probabilities has a negative, "
                             "infinite or NaN value",
                     (long long)row);
}

/* By searching the running sums. */
static void sample_with_replacement(const struct sample_job *job, double *weights, int64_t n, int64_t row, int64_t *samples)
{
    for (int64_t i = 1; i < n; ++i)
        weights[i] += weights[i - 1];
    for (int64_t k = 0; k < job->count; ++k) {
        const double wanted = draw_unit(job, row * job->count + k) * weights[n - 1];
        int64_t low = 0, high = n - 1;
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (weights[middle] > wanted)
                high = middle;
            else
                low = middle + 1;
        }
        samples[k] = low;
    }
}

/* The largest weight / exponential variate wins, then the second largest ...: as if drawn one after the other. */
static int sample_without_replacement(const struct plan *plan, const struct sample_job *job, double *weights, int64_t n,
                                      int64_t row, int64_t *samples)
{
    for (int64_t i = 0; i < n; ++i) {
        double unit = draw_unit(job, row * n + i) + 0x1p-54;
        kernels->random->negative_log_f64(&unit, 1);
        weights[i] = weights[i] > 0 ? weights[i] / unit : -1;
    }
    for (int64_t k = 0; k < job->count; ++k) {
        int64_t best = 0;
        for (int64_t i = 1; i < n; ++i)
            best = weights[i] > weights[best] ? i : best;
        if (weights[best] < 0)
            return error_set(ERROR_RT_DEVICE_TASK, plan_name(plan),
                             "row %lld has fewer than %lld probabilities above 0, and samples aren't put back", (long long)row,
                             (long long)job->count);
        samples[k] = best;
        weights[best] = -1;
    }
    return 0;
}

/* Operands: self, out, and for the tensor form seed and offset. */
static int multinomial_run(struct plan *plan)
{
    struct sample_job job = *PLAN_IMMEDIATE(plan, struct sample_job);
    const struct view *const self = &plan->operands[0], *const out = &plan->operands[1];
    if (job.seed_in_tensors) {
        int64_t state[2];
        tile_read(&state[0], ACCUMULATE_I64, &plan->operands[2], 0, 1);
        tile_read(&state[1], ACCUMULATE_I64, &plan->operands[3], 0, 1);
        job.seed = (uint64_t)state[0];
        job.offset += (uint64_t)state[1];
    }
    if (out->count == 0)
        return 0;
    const int64_t n = self->sizes[self->ndim - 1], rows = self->count / (n ? n : 1), bytes = (n + job.count) * 8;
    double *const weights = pool_scratch(0, (size_t)bytes);
    if (!weights)
        return out_of_memory(plan, bytes);
    int64_t *const samples = (int64_t *)(void *)(weights + n);
    for (int64_t row = 0; row < rows; ++row) {
        TRY(read_row(plan, self, row, weights));
        if (job.replacement)
            sample_with_replacement(&job, weights, n, row, samples);
        else
            TRY(sample_without_replacement(plan, &job, weights, n, row, samples));
        tile_write(out, row * job.count, job.count, samples, ACCUMULATE_I64);
    }
    return 0;
}

static int multinomial_checked(struct plan *plan, const aclTensor *self, int64_t samples, bool replacement, aclTensor *out)
{
    struct view *from, *to;
    int64_t sizes[2];
    TRY(plan_input(plan, self, "self", &from));
    TRY(plan_output(plan, out, "out", &to));
    TRY(check_floating(plan, from, "self"));
    TRY(check_index_dtype(plan, to, "out"));
    const char *const name = plan_name(plan);
    if (from->ndim != 1 && from->ndim != 2)
        return error_set(ACLNN_ERROR_PARAM, name, "self is %s; it has one or two dimensions", view_text(from));
    const int64_t n = from->sizes[from->ndim - 1];
    if (samples <= 0 || (!replacement && samples > n))
        return error_set(ACLNN_ERROR_PARAM, name, "numsamples is %lld for %lld probabilities %s replacement", (long long)samples,
                         (long long)n, replacement ? "with" : "without");
    sizes[0] = from->sizes[0];
    sizes[from->ndim - 1] = samples;
    TRY(check_sizes(plan, to, "out", sizes, from->ndim));
    return check_output_not_expanded(plan, to, "out");
}

aclnnStatus aclnnMultinomialGetWorkspaceSize(const aclTensor *self, int64_t numsamples, bool replacement, int64_t seed,
                                             int64_t offset, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(OPERATOR_Multinomial, multinomial_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, multinomial_checked(plan, self, numsamples, replacement, out));
    *PLAN_IMMEDIATE(plan, struct sample_job) =
        (struct sample_job){(uint64_t)seed, (uint64_t)offset, numsamples, replacement, false};
    return finish_by_size(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(Multinomial)

aclnnStatus aclnnMultinomialTensorGetWorkspaceSize(const aclTensor *self, int64_t numsamples, bool replacement,
                                                   const aclTensor *seedTensor, const aclTensor *offsetTensor, int64_t offset,
                                                   aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *seed, *start;
    TRY(plan_begin(OPERATOR_MultinomialTensor, multinomial_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, multinomial_checked(plan, self, numsamples, replacement, out));
    PLAN_TRY(plan, plan_input(plan, seedTensor, "seedTensor", &seed));
    PLAN_TRY(plan, plan_input(plan, offsetTensor, "offsetTensor", &start));
    PLAN_TRY(plan, check_index_dtype(plan, seed, "seedTensor"));
    PLAN_TRY(plan, check_index_dtype(plan, start, "offsetTensor"));
    PLAN_REQUIRE(plan, seed->count == 1 && start->count == 1, ACLNN_ERROR_PARAM,
                 "seedTensor and offsetTensor hold one number each");
    *PLAN_IMMEDIATE(plan, struct sample_job) = (struct sample_job){0, (uint64_t)offset, numsamples, replacement, true};
    return finish_by_size(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(MultinomialTensor)
