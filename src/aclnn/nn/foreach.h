/* Operators over lists of tensors: one plan, cut over the pool across all tensors together, so that many small tensors cost
 * little more than one large one.
 *
 * A foreach plan has `count` items (tensors) of `lists` operands each; its views lie in plan->extra_views, item by item:
 * view(item, list) = extra_views[item * lists + list]. List 0 is the output or the first operand that is updated. */
#ifndef ACLNN_NN_FOREACH_H
#define ACLNN_NN_FOREACH_H

#include "aclnn/math/elementwise.h"
#include "aclnn/math/strided_loop.h"

enum { FOREACH_LISTS = 5 };

/* What one tensor of the lists needs: kernel and types. */
struct foreach_item {
    elementwise_fn run;                      /* NULL: a copy */
    bool (*check)(const void *in, size_t n); /* of operand 0, before the kernel; NULL: none. See strided_loop.h */
    uint8_t compute;
    uint8_t result;
    uint8_t constant_dtype;
    union elementwise_scalar constant;  /* the scalar operand */
    union elementwise_scalar parameter; /* s0 */
};

struct foreach_job {
    int64_t count;
    int64_t *starts; /* count + 1: elements before each tensor */
    struct foreach_item *items;
    int lists;
    int operands; /* how many of the lists the kernel takes; foreach_begin sets it to all */
    int cost;
    unsigned updated; /* bit per list: read and written; without it list 0 is only written */
    int constant_at;  /* which operand is a scalar; 0: none */
    /* Scalars that live in device memory, read when the plan runs: among the plan's operands, or NULL. */
    const struct view *device_constant, *device_parameter;
    /* Fills the kernel's scalars for an item; NULL: item->parameter. */
    void (*scalars)(const struct plan *plan, const struct foreach_job *job, int64_t item, union elementwise_scalar *scalars);
    _Atomic bool *found; /* set when an item's check hits */
    double numbers[8];   /* of the operator that owns the plan */
};

enum foreach_shapes { FOREACH_SAME_SHAPES, FOREACH_ANY_SHAPE };

/* Puts the lists into the plan and prepares the job (in the plan's immediates); items are zeroed. Lists must have equal counts
 * and, unless told otherwise, tensor by tensor equal shapes; lists[0] may be the same as an input, but not overlap one in
 * another way. */
int foreach_begin(struct plan *plan, int lists, const struct aclTensorList *const *tensors, const char *const *names,
                  enum foreach_shapes shapes, struct foreach_job **job);

/* Runs all items over the pool: the plan_run_fn of most foreach plans. */
int foreach_run(struct plan *plan);

static inline struct foreach_job *foreach_job_of(struct plan *plan) { return PLAN_IMMEDIATE(plan, struct foreach_job); }
static inline struct view *foreach_view(const struct plan *plan, const struct foreach_job *job, int64_t item, int list)
{
    return &plan->extra_views[item * job->lists + list];
}

/* Reads one element of device memory; call it while the plan runs. */
double foreach_read(const struct view *v, int64_t element);

#endif
