/* Pads that repeat what is there: mirrored (without the border element) or the border itself. */
#include "aclnn/nn/resample.h"

static int64_t reflected(const struct resample_axis *axis, int64_t out, int32_t *index, double *weight)
{
    int64_t at = out - axis->pad;
    at = at < 0 ? -at : at;
    *index = (int32_t)(at >= axis->in ? 2 * (axis->in - 1) - at : at);
    *weight = 1;
    return 1;
}

static int64_t replicated(const struct resample_axis *axis, int64_t out, int32_t *index, double *weight)
{
    const int64_t at = out - axis->pad;
    *index = (int32_t)(at < 0 ? 0 : at >= axis->in ? axis->in - 1 : at);
    *weight = 1;
    return 1;
}

/* Pads come in pairs, those of the last dimension first. */
static int check_pad(const struct resample_request *q, int which, struct resample_axis *axis)
{
    const aclIntArray *const padding = q->context;
    const int64_t before = padding->values[2 * (q->axes - 1 - which)], after = padding->values[2 * (q->axes - 1 - which) + 1];
    REQUIRE(axis->in + before + after == axis->out, ACLNN_ERROR_PARAM, "%s: %lld elements with pads of %lld and %lld aren't %lld",
            operator_name(q->id), (long long)axis->in, (long long)before, (long long)after, (long long)axis->out);
    REQUIRE(axis->terms == replicated || (before < axis->in && after < axis->in), ACLNN_ERROR_PARAM,
            "%s: pads of %lld and %lld; a dimension of %lld elements can be mirrored by at most %lld", operator_name(q->id),
            (long long)before, (long long)after, (long long)axis->in, (long long)axis->in - 1);
    axis->pad = before;
    return 0;
}

static int plan_pad(struct resample_request q, const aclIntArray *padding, bool mirrored, uint64_t *workspace_size,
                    aclOpExecutor **executor)
{
    REQUIRE(padding, ACLNN_ERROR_NULLPTR, "%s: padding is null", operator_name(q.id));
    REQUIRE(padding->count == 2 * (uint64_t)q.axes, ACLNN_ERROR_PARAM, "%s: padding has %llu values; it needs %d",
            operator_name(q.id), (unsigned long long)padding->count, 2 * q.axes);
    q.copies = true;
    q.context = padding;
    q.ready = check_pad;
    for (int a = 0; a < q.axes; ++a)
        q.axis[a] = (struct resample_axis){.terms = mirrored ? reflected : replicated, .most = 1};
    return resample_plan(&q, workspace_size, executor);
}

#define PAD(NAME, MIRRORED, AXES)                                                                                              \
    aclnnStatus aclnn##NAME##GetWorkspaceSize(const aclTensor *self, const aclIntArray *padding, aclTensor *out,               \
                                              uint64_t *workspaceSize, aclOpExecutor **executor)                               \
    {                                                                                                                          \
        const struct resample_request q = {                                                                                    \
            .id = OPERATOR_##NAME, .from = self, .to = out, .from_name = "self", .to_name = "out", .axes = AXES};              \
        return plan_pad(q, padding, MIRRORED, workspaceSize, executor);                                                        \
    }                                                                                                                          \
    ACLNN_PHASE_2(NAME)                                                                                                        \
    aclnnStatus aclnn##NAME##BackwardGetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *self,                      \
                                                      const aclIntArray *padding, aclTensor *gradInput, uint64_t *workspaceSize, \
                                                      aclOpExecutor **executor)                                                \
    {                                                                                                                          \
        const struct resample_request q = {.id = OPERATOR_##NAME##Backward,                                                    \
                                           .from = gradOutput,                                                                 \
                                           .to = gradInput,                                                                    \
                                           .from_name = "gradOutput",                                                          \
                                           .to_name = "gradInput",                                                             \
                                           .backward = true,                                                                   \
                                           .axes = AXES};                                                                      \
        return plan_pad(q, padding, MIRRORED, workspaceSize, executor);                                                        \
    }                                                                                                                          \
    ACLNN_PHASE_2(NAME##Backward)
PAD(ReflectionPad1d, true, 1)
PAD(ReflectionPad2d, true, 2)
PAD(ReflectionPad3d, true, 3)
PAD(ReplicationPad1d, false, 1)
PAD(ReplicationPad2d, false, 2)
PAD(ReplicationPad3d, false, 3)
