/* NpuFormatCast: between formats that only name or permute dimensions. Blocked formats don't exist here (a tensor is always plain
 * strided memory), so they are refused in words. */
#include <stdlib.h>
#include <string.h>

#include "aclnn/math/operand_check.h"
#include "aclnn/math/tile.h"
#include "aclnnop/all_operators.h"

/* Dimensions in order; NULL: whatever they are. */
struct format {
    int32_t number;
    const char *dimensions;
};
static const struct format formats[] = {{2, NULL},     {0, "NCHW"},   {1, "NHWC"}, {16, "HWCN"},
                                        {30, "NCDHW"}, {27, "NDHWC"}, {35, "NC"},  {47, "NCL"}};

static int find_format(const char *name, int32_t number, const struct format **format)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; ++i)
        if (formats[i].number == number) {
            *format = &formats[i];
            return 0;
        }
    FAIL(ACLNN_ERROR_PARAM,
         "%s: format %d; supported are the plain ones: NCHW 0, NHWC 1, ND 2, HWCN 16, NDHWC 27, NCDHW 30, NC 35, NCL 47", name,
         number);
}

/* order[d]: which dimension of `from` is dimension d of `to`. The same order unless both name the same dimensions. */
static void find_order(const struct format *from, const struct format *to, int ndim, int *order)
{
    const bool named = from->dimensions && to->dimensions && strlen(from->dimensions) == strlen(to->dimensions) &&
                       (int)strlen(to->dimensions) == ndim;
    for (int d = 0; d < ndim; ++d)
        order[d] = named ? (int)(strchr(from->dimensions, to->dimensions[d]) - from->dimensions) : d;
}

static int run_format_cast(struct plan *plan)
{
    const int64_t *const order = plan->immediate.i;
    const struct view *const out = &plan->operands[1];
    struct view in = plan->operands[0];
    for (int d = 0; d < out->ndim; ++d) {
        in.sizes[d] = plan->operands[0].sizes[order[d]];
        in.strides[d] = plan->operands[0].strides[order[d]];
    }
    view_refresh(&in);
    if (out->count > 0)
        view_copy(out, &in);
    return 0;
}

aclnnStatus aclnnNpuFormatCastGetWorkspaceSize(const aclTensor *srcTensor, aclTensor *dstTensor, uint64_t *workspaceSize,
                                               aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *in, *out;
    const struct format *from = NULL, *to = NULL;
    int order[TENSOR_MAX_DIMS];
    int64_t sizes[TENSOR_MAX_DIMS];
    TRY(plan_begin(OPERATOR_NpuFormatCast, run_format_cast, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, srcTensor, "srcTensor", &in));
    PLAN_TRY(plan, plan_output(plan, dstTensor, "dstTensor", &out));
    PLAN_TRY(plan, find_format("aclnnNpuFormatCast", srcTensor->format, &from));
    PLAN_TRY(plan, find_format("aclnnNpuFormatCast", dstTensor->format, &to));
    PLAN_TRY(plan, check_same_dtype(plan, in, "srcTensor", out, "dstTensor"));
    find_order(from, to, in->ndim, order);
    for (int d = 0; d < in->ndim; ++d) {
        plan->immediate.i[d] = order[d];
        sizes[d] = in->sizes[order[d]];
    }
    PLAN_TRY(plan, check_sizes(plan, out, "dstTensor", sizes, in->ndim));
    return plan_finish(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(NpuFormatCast)

/* The caller frees *dstShape with C++'s delete[], which is free here. */
aclnnStatus aclnnNpuFormatCastCalculateSizeAndFormat(const aclTensor *srcTensor, int dstFormat, int additionalDtype,
                                                     int64_t **dstShape, uint64_t *dstShapeSize, int *actualFormat)
{
    static const char name[] = "aclnnNpuFormatCastCalculateSizeAndFormat";
    const struct format *from = NULL, *to = NULL;
    int order[TENSOR_MAX_DIMS];
    REQUIRE(srcTensor && dstShape && dstShapeSize && actualFormat, ACLNN_ERROR_NULLPTR,
            "%s: srcTensor, dstShape, dstShapeSize or actualFormat is null", name);
    TRY(find_format(name, srcTensor->format, &from));
    TRY(find_format(name, dstFormat, &to));
    const struct view *const v = &srcTensor->view;
    int64_t *const shape = malloc(sizeof *shape * (v->ndim ? v->ndim : 1));
    REQUIRE(shape, ERROR_BAD_ALLOC, "%s: out of host memory", name);
    find_order(from, to, v->ndim, order);
    for (int d = 0; d < v->ndim; ++d)
        shape[d] = v->sizes[order[d]];
    *dstShape = shape;
    *dstShapeSize = v->ndim;
    *actualFormat = dstFormat;
    return 0;
}
