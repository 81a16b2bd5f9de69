/* The distinct elements of a tensor, as values, inverse positions and counts. The number of values is known only when this has
 * run: as in index_mask.c, the caller waits and reads the shapes from the handles of the outputs. */
#include <string.h>

#include "aclnn/math/operand_check.h"
#include "aclnn/math/sort_line.h"
#include "aclnn/math/tile.h"
#include "aclnn/math/unique_rows.h"
#include "aclnnop/all_operators.h"
#include "base/pool.h"
#include "tensor/awaited.h"

/* Operands: self, valueOut, inverseOut, countsOut; the last two may be absent. */
struct unique_job {
    struct awaited_shape values, counts;
    bool consecutive;
};

static void write_one(const struct view *out, int64_t at, int64_t value)
{
    if (out->data)
        tile_write(out, at, 1, &value, ACCUMULATE_I64);
}

static int unique_run(struct plan *plan)
{
    const struct unique_job *const job = PLAN_IMMEDIATE(plan, struct unique_job);
    const struct view *const self = &plan->operands[0], *const values = &plan->operands[1];
    const struct view *const inverse = &plan->operands[2], *const counts = &plan->operands[3];
    struct sort_line s;
    int64_t distinct = 0, first = 0;
    if (self->count > 0 && !sort_line_begin(&s, self, false))
        return error_set(ERROR_BAD_ALLOC, plan_name(plan), "no memory for %lld elements", (long long)self->count);
    if (self->count > 0 && !job->consecutive)
        sort_line_sort(&s);
    const int64_t numbers = self->count > 0 ? self->count - s.nan_count : 0;
    for (int64_t i = 0; i < self->count; ++i) {
        const int64_t position = sort_line_position(&s, i);
        /* NaN differs from NaN; sorted, they are the last ones. */
        const bool is_nan = self->count != numbers && sort_line_key(&s, i) == (s.wide ? UINT64_MAX : UINT32_MAX);
        if (i == 0 || is_nan || sort_line_key(&s, i) != sort_line_key(&s, i - 1)) {
            complex64_pair element;
            tile_gather(&element, self, position, 1);
            tile_scatter(values, distinct, 1, &element);
            if (i > 0)
                write_one(counts, distinct - 1, i - first);
            first = i;
            ++distinct;
        }
        write_one(inverse, position, distinct - 1);
    }
    if (distinct > 0)
        write_one(counts, distinct - 1, self->count - first);
    awaited_answer(&job->values, 1, &distinct);
    awaited_answer(&job->counts, 1, &distinct);
    return 0;
}

static int unique_plan(enum operator_id id, const aclTensor *self, aclTensor *values, aclTensor *inverse, aclTensor *counts,
                       uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *from, *to;
    TRY(plan_begin(id, unique_run, workspace_size, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, self, "self", &from));
    PLAN_TRY(plan, plan_output(plan, values, "valueOut", &to));
    PLAN_TRY(plan, check_not_complex(plan, from, "self"));
    PLAN_TRY(plan, check_same_dtype(plan, from, "self", to, "valueOut"));
    PLAN_REQUIRE(plan, to->count >= from->count && to->contiguous, ACLNN_ERROR_PARAM,
                 "%s: valueOut is %s; it is contiguous with room for all %lld elements of self", operator_name(id), view_text(to),
                 (long long)from->count);
    PLAN_TRY(plan, unique_add_indices(plan, inverse, "inverseOut", from->count));
    PLAN_TRY(plan, unique_add_indices(plan, counts, "countsOut", from->count));
    *PLAN_IMMEDIATE(plan, struct unique_job) =
        (struct unique_job){awaited_begin(values), awaited_begin(counts), id == OPERATOR_UniqueConsecutive};
    return finish_by_size(plan, 0, workspace_size, executor);
}

/* Values come sorted whether asked for or not. */
aclnnStatus aclnnUniqueGetWorkspaceSize(const aclTensor *self, bool sorted, bool returnInverse, aclTensor *valueOut,
                                        aclTensor *inverseOut, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    TRY(unique_check_asked(OPERATOR_Unique, returnInverse, inverseOut, "inverseOut"));
    return unique_plan(OPERATOR_Unique, self, valueOut, returnInverse ? inverseOut : NULL, NULL, workspaceSize, executor);
}
ACLNN_PHASE_2(Unique)

aclnnStatus aclnnUnique2GetWorkspaceSize(const aclTensor *self, bool sorted, bool returnInverse, bool returnCounts,
                                         aclTensor *valueOut, aclTensor *inverseOut, aclTensor *countsOut, uint64_t *workspaceSize,
                                         aclOpExecutor **executor)
{
    TRY(unique_check_asked(OPERATOR_Unique2, returnInverse, inverseOut, "inverseOut"));
    TRY(unique_check_asked(OPERATOR_Unique2, returnCounts, countsOut, "countsOut"));
    return unique_plan(OPERATOR_Unique2, self, valueOut, returnInverse ? inverseOut : NULL, returnCounts ? countsOut : NULL,
                       workspaceSize, executor);
}
ACLNN_PHASE_2(Unique2)

/* dim: 1000 stands for the flattened tensor, and a tensor of one dimension is flat. */
aclnnStatus aclnnUniqueConsecutiveGetWorkspaceSize(const aclTensor *self, bool returnInverse, bool returnCounts, int64_t dim,
                                                   aclTensor *valueOut, aclTensor *inverseOut, aclTensor *countsOut,
                                                   uint64_t *workspaceSize, aclOpExecutor **executor)
{
    REQUIRE(self, ACLNN_ERROR_NULLPTR, "self is null");
    TRY(unique_check_asked(OPERATOR_UniqueConsecutive, returnInverse, inverseOut, "inverseOut"));
    TRY(unique_check_asked(OPERATOR_UniqueConsecutive, returnCounts, countsOut, "countsOut"));
    if (dim != 1000 && self->view.ndim > 1)
        return unique_rows_plan(OPERATOR_UniqueConsecutive, self, dim, valueOut, returnInverse ? inverseOut : NULL,
                                returnCounts ? countsOut : NULL, workspaceSize, executor);
    return unique_plan(OPERATOR_UniqueConsecutive, self, valueOut, returnInverse ? inverseOut : NULL,
                       returnCounts ? countsOut : NULL, workspaceSize, executor);
}
ACLNN_PHASE_2(UniqueConsecutive)
