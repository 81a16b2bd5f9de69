/* One engine for operators that work on each of the last one to three dimensions by itself: an element of the result is a sum of
 * weighted elements along the dimension. Upsampling of all kinds, reflecting and replicating pads, average pooling, and the
 * gradients of these, which run the same tables turned round.
 *
 * Invariant: tables are made in phase 1 and lie in the plan's extra block; a result depends on them and the input only. */
#ifndef ACLNN_NN_RESAMPLE_H
#define ACLNN_NN_RESAMPLE_H

#include "aclnn/plan.h"
#include "aclnnop/all_operators.h"

enum { RESAMPLE_AXES = 3 };

/* One dimension, forward: where element `out` of the result comes from. */
struct resample_axis {
    int64_t in, out;
    /* Writes at most `most` terms and returns their number. */
    int64_t (*terms)(const struct resample_axis *axis, int64_t out, int32_t *index, double *weight);
    int64_t most;
    /* What the rules of terms need: */
    int64_t pad, kernel, stride;
    double scale, factor;
    bool align, count_padding, narrow; /* narrow: reckon positions in float, as torch does for f32 and halves */
};

struct resample_request {
    enum operator_id id;
    const aclTensor *from, *to; /* backward: the output's gradient, the input's gradient */
    const char *from_name, *to_name;
    bool backward;
    bool copies; /* each element is one element of the input: any type goes */
    int axes;
    struct resample_axis axis[RESAMPLE_AXES]; /* outermost first; in and out are the engine's to set */
    /* Called when in and out are known. 0 or a code with words; may be NULL. */
    int (*ready)(const struct resample_request *request, int which, struct resample_axis *axis);
    const void *context; /* of ready */
};

int resample_plan(const struct resample_request *request, uint64_t *workspace_size, aclOpExecutor **executor);

#endif
