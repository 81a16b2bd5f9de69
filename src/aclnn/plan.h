/* Plans: what phase 1 of an operator makes and phase 2 launches. An aclOpExecutor is a plan.
 *
 * A plan is self-contained (op, operands as views, immediates, run function), so phases may run on different threads, and it
 * is the graph engine's node: there is no second form of an operator. Life: plan_begin -> plan_input/plan_output ... ->
 * plan_finish (now the caller's) -> plan_launch (consumed, unless repeatable). A failing phase 1 calls plan_abandon. A phase 2
 * that refuses the executor or the workspace leaves the plan to the caller; one that can't launch it gives it back.
 * Plans come from per-thread free lists: no malloc on the hot path. */
#ifndef ACLNN_PLAN_H
#define ACLNN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "aclnn/operator_ids.h"
#include "base/error.h"
#include "runtime/task.h"
#include "tensor/tensor.h"

enum { PLAN_OPERANDS = 16, PLAN_IMMEDIATE_BYTES = 384, PLAN_ALL_OPERANDS = 0xffff };

enum operand_role { ROLE_INPUT = 1, ROLE_OUTPUT = 2, ROLE_BOTH = 3 };

struct plan;
struct plan_launches;                          /* what a repeatable plan has besides, see plan.c */
struct aclOpExecutor;                          /* the public name of a plan */
typedef int (*plan_run_fn)(struct plan *plan); /* 0, or a code after error_set */

struct plan {
    struct task task; /* a small plan: everything that runs (set all fields but operator_id); a large one: flags only */
    plan_run_fn run;  /* for a large plan */
    uint16_t operator_id;
    uint8_t small;
    uint8_t state; /* enum plan_state */
    uint8_t operand_count;
    uint8_t roles[PLAN_OPERANDS];
    struct plan_launches *repeatable; /* owned; NULL: the plan serves one launch */
    /* Inputs that share memory with an output, as bits of operands. An operator may read what it has already written, so such an
     * input is copied to the workspace before the run, unless the operator said that it copes: with any overlap, or with an
     * input that is the very output (same place, strides and type). */
    uint16_t copes_with_overlap, copes_with_same, copied;
    uint64_t copies_at; /* in the workspace */
    void *workspace;    /* given in phase 2; workspace_bytes long */
    uint64_t workspace_bytes;
    void *extra;              /* owned heap block: operand lists of foreach operators and the like */
    struct view *extra_views; /* in extra: further operands, counted below; all treated as ROLE_BOTH */
    int64_t extra_view_count;
    struct plan *next; /* free list */
    union {
        int64_t i[PLAN_IMMEDIATE_BYTES / 8];
        double f[PLAN_IMMEDIATE_BYTES / 8];
        char bytes[PLAN_IMMEDIATE_BYTES];
    } immediate;
    struct view operands[PLAN_OPERANDS];
};

/* Casts the immediates to an operator's own struct: struct conv_shape *s = PLAN_IMMEDIATE(plan, struct conv_shape); */
#define PLAN_IMMEDIATE(plan, type)                                                              \
    ((type *)(void *)((plan)->immediate.bytes +                                                 \
                      0 * sizeof(char[sizeof(type) <= PLAN_IMMEDIATE_BYTES ? 1 : -1])))

/* Starts a plan; checks that the two out parameters aren't NULL. *plan is NULL on failure. */
int plan_begin(enum operator_id id, plan_run_fn run, const uint64_t *workspace_size, struct aclOpExecutor *const *executor,
               struct plan **plan);
/* Adds an operand and returns its view in *view (may be NULL). NULL tensor -> ACLNN_ERROR_NULLPTR naming the parameter;
 * a dtype that the operator doesn't take (plan_stored_dtype) -> ACLNN_ERROR_PARAM. Operands keep their order of adding. */
int plan_input(struct plan *plan, const struct aclTensor *tensor, const char *parameter, struct view **view);
int plan_output(struct plan *plan, const struct aclTensor *tensor, const char *parameter, struct view **view);
int plan_inout(struct plan *plan, const struct aclTensor *tensor, const char *parameter, struct view **view);
/* An optional operand: a NULL tensor gives a view with data == NULL and dtype DTYPE_NONE. */
int plan_optional(struct plan *plan, const struct aclTensor *tensor, enum operand_role role, const char *parameter,
                  struct view **view);
/* The type of a tensor whose handle says DTYPE_NONE, for an operator that takes types which are only stored (float8) there: it moves,
 * converts or compares them. DTYPE_NONE for all other operators, which so refuse such types without knowing of them. */
enum dtype plan_stored_dtype(enum operator_id id, const struct aclTensor *tensor, enum operand_role role);
/* The error for a tensor that is left at DTYPE_NONE. */
int plan_refuse_dtype(enum operator_id id, const struct aclTensor *tensor, const char *parameter);
/* Zeroed memory that lives as long as the plan; one block a plan. */
int plan_extra(struct plan *plan, size_t bytes, void **memory);
/* Hands the plan out. workspace: bytes that phase 2 must be given. Returns 0. */
int plan_finish(struct plan *plan, uint64_t workspace, uint64_t *workspace_size, struct aclOpExecutor **executor);
void plan_abandon(struct plan *plan);

/* Every phase 2. Refuses a NULL executor, one of another operator, a used one, and a workspace that is too small. */
int plan_launch(enum operator_id id, void *workspace, uint64_t workspace_size, struct aclOpExecutor *executor, void *stream);
/* Gives a large plan back after it ran (called by the launch machinery only). */
void plan_release(struct plan *plan);

const char *operator_name(enum operator_id id); /* "aclnnAdd" */
static inline const char *plan_name(const struct plan *plan) { return operator_name((enum operator_id)plan->operator_id); }

/* The class of small plans' tasks: out, a, b (NULL when absent) are contiguous, `count` elements of `dtype` each. */
extern const struct task_class plan_small_class;

/* TRY inside a phase 1: abandons the plan on failure. */
#define PLAN_TRY(plan, call)              \
    do {                                  \
        const int try_code = (call);      \
        if (__builtin_expect(try_code != 0, 0)) { \
            plan_abandon(plan);           \
            return try_code;              \
        }                                 \
    } while (0)
#define PLAN_REQUIRE(plan, condition, code, ...)                   \
    do {                                                           \
        if (__builtin_expect(!(condition), 0)) {                   \
            const int require_code = error_set((code), __func__, __VA_ARGS__); \
            plan_abandon(plan);                                    \
            return require_code;                                   \
        }                                                          \
    } while (0)

/* Defines the exported phase 2 of aclnn<name>. */
#define ACLNN_PHASE_2(name)                                                                                          \
    aclnnStatus aclnn##name(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream)     \
    {                                                                                                                \
        return plan_launch(OPERATOR_##name, workspace, workspaceSize, executor, stream);                             \
    }

#endif
