/* Phase 1 of every elementwise operator: checks, promotion, broadcast, choice of the kernel, and the plan.
 *
 * An operator describes its call in a struct elementwise_call; everything that such operators have in common happens here once:
 * null pointers, torch's promotion (tensors before 0-dimensional tensors before scalars), shapes, dtypes that a kernel lacks,
 * overlaps. Contiguous operands of one shape and type become a 64-byte task, all others a plan over strided_loop.h. */
#ifndef ACLNN_MATH_ELEMENTWISE_H
#define ACLNN_MATH_ELEMENTWISE_H

#include "aclnn/plan.h"
#include "kernels/elementwise.h"
#include "kernels/kernels.h"

enum elementwise_rule {
    RULE_PROMOTE, /* compute in the promoted type */
    RULE_FLOAT,   /* the same, but integers and bools become f32 (or the output's float type) */
    RULE_LOGICAL, /* operands are turned into bools first */
    RULE_RAW      /* moves elements of the promoted type unchanged (where, masked fill) */
};

enum elementwise_flags {
    CALL_MASK_FIRST = 1,    /* the first input is a mask and doesn't take part in promotion */
    CALL_EXACT_SCALARS = 2, /* scalars keep f32 precision with half tensors; else they are rounded to the half type first */
    CALL_REFUSE_ZERO = 4,   /* a zero in the last operand is an error when computing in integers */
    CALL_INPLACE = 8        /* `out` is also the first input */
};

/* A tensor or a scalar; just one of the two is set. */
struct elementwise_input {
    const char *name;
    const struct aclTensor *tensor;
    const struct aclScalar *scalar;
};

struct elementwise_call {
    enum operator_id id;
    enum elementwise_id kernel;
    enum elementwise_rule rule;
    unsigned flags; /* enum elementwise_flags */
    int input_count;
    int parameter_count; /* scalars of the kernel: s0, s1, ... */
    struct elementwise_input inputs[ELEMENTWISE_OPERANDS - 1];
    struct elementwise_input out;
    /* Either scalars in the operator's own types, or numbers; both are given to the kernel in the type it computes in. */
    const struct aclScalar *parameters[ELEMENTWISE_SCALARS];
    double numbers[ELEMENTWISE_SCALARS]; /* where parameters[i] is NULL */
};

int elementwise_plan(const struct elementwise_call *call, uint64_t *workspace_size, struct aclOpExecutor **executor);

/* Operators with two outputs, or an output in two halves: one pass after the other in one plan. */
enum { ELEMENTWISE_PASSES = 2 };
int elementwise_plan_passes(const struct elementwise_call *calls, int count, uint64_t *workspace_size,
                            struct aclOpExecutor **executor);

/* The fast path of the hottest operators: same shape and type, all contiguous. False when it isn't that: nothing happened. */
bool elementwise_plan_small(enum operator_id id, enum elementwise_id kernel, const struct aclTensor *a, const struct aclTensor *b,
                            const struct aclTensor *out, uint64_t *workspace_size, struct aclOpExecutor **executor);

/* The same for a tensor and a scalar. */
bool elementwise_plan_small_scalar(enum operator_id id, enum elementwise_id kernel, unsigned flags, const struct aclTensor *tensor,
                                   const struct aclScalar *scalar, bool scalar_first, const struct aclTensor *out,
                                   uint64_t *workspace_size, struct aclOpExecutor **executor);

/* May a row of the .def files try the fast path? The result must have the operands' type and nothing be checked on the way;
 * whether the type is supported, the kernel table says. Folds to a constant. */
static inline bool elementwise_is_same(enum elementwise_id kernel, unsigned flags, enum elementwise_rule rule)
{
    enum elementwise_result result = RESULT_BOOL;
    switch (kernel) {
#define OP(name_, inputs_, result_, cost_) \
    case ELEMENTWISE_##name_: \
        result = RESULT_##result_; \
        break;
#include "kernels/elementwise.def"
    default: break;
    }
    return result == RESULT_SAME && flags == 0 && rule != RULE_LOGICAL;
}

/* The promoted type of tensors and scalars, by torch's rules. *is_default: a scalar alone made it floating (then it is f32). */
enum dtype elementwise_promote(const struct elementwise_input *inputs, int count, bool *is_default);

/* A scalar handle as a kernel of that type takes it. */
union elementwise_scalar elementwise_scalar_from(const struct aclScalar *scalar, enum dtype compute);

/* "out overlaps itself": an expanded output would get several values for one element. */
int elementwise_check_output(enum operator_id id, const struct view *out, const char *name);
/* Do the two share memory in any other way than being the very same elements? */
bool elementwise_overlaps(const struct view *out, const struct view *in);

#define INPUT_TENSOR(tensor_) {.name = #tensor_, .tensor = (tensor_)}
#define INPUT_SCALAR(scalar_) {.name = #scalar_, .scalar = (scalar_)}

#endif
