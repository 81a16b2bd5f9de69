/* Operators whose result's shape is known late: handles may be gone when they run, and missing memory is an error. */
#include "operators/operand.h"

#include <pthread.h>

#include "acl/acl.h"
#include "aclnnop/all_operators.h"

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void pass_gate(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
}

/* Behind a task that waits, the output's handle is destroyed and its address used again: the new handle keeps its shape. */
static void handles_may_be_destroyed(void)
{
    const int64_t count = 6, room[2] = {6, 1};
    struct operand self = operand_make(DTYPE_I64, 1, &count, LAYOUT_PLAIN), out = operand_make(DTYPE_I64, 2, room, LAYOUT_PLAIN);
    struct operand values = operand_make(DTYPE_I64, 1, &count, LAYOUT_PLAIN);
    operand_set(&self, 4, 1);
    uint64_t bytes = 0, ndim;
    int64_t *dims;
    aclOpExecutor *executors[2];
    pthread_mutex_lock(&gate);
    CHECK_OK(aclrtLaunchHostFunc(NULL, pass_gate, NULL));
    CHECK_OK(aclnnNonzeroGetWorkspaceSize(self.tensor, out.tensor, &bytes, &executors[0]));
    CHECK_OK(aclnnUniqueGetWorkspaceSize(self.tensor, true, false, values.tensor, NULL, &bytes, &executors[1]));
    CHECK_OK(aclnnNonzero(NULL, 0, executors[0], NULL));
    CHECK_OK(aclnnUnique(NULL, 0, executors[1], NULL));
    aclDestroyTensor(out.tensor);
    aclDestroyTensor(values.tensor);
    aclTensor *again[2];
    for (int i = 0; i < 2; ++i)
        again[i] = aclCreateTensor(room, 2, ACL_INT64, NULL, 0, ACL_FORMAT_ND, room, 2, out.memory);
    CHECK(again[0] == values.tensor && again[1] == out.tensor, "the test needs handles at the old addresses");
    pthread_mutex_unlock(&gate);
    CHECK_OK(aclrtSynchronizeStream(NULL));
    CHECK_INT(operand_get(&out, 0), 4);
    CHECK_INT(((int64_t *)(void *)values.memory)[1], 1);
    for (int i = 0; i < 2; ++i) {
        CHECK_OK(aclGetViewShape(again[i], &dims, &ndim));
        CHECK(ndim == 2 && dims[0] == 6 && dims[1] == 1, "a new handle has %d dimensions, the first is %lld", (int)ndim,
              (long long)dims[0]);
        free(dims);
    }
    values.tensor = again[0];
    out.tensor = again[1];
    operand_free(&values);
    operand_free(&out);
    operand_free(&self);
}

/* More numbers (in the memory of one) than an address space holds: there is no memory for a contiguous copy of them. */
static void missing_memory_is_reported(void)
{
    const int64_t sizes[2] = {1ll << 24, 1ll << 24}, strides[2] = {0, 0}, one = 1, four = 4;
    float value = 3;
    struct operand self = operand_make(DTYPE_F32, 1, &four, LAYOUT_PLAIN), mask = operand_make(DTYPE_B8, 1, &four, LAYOUT_PLAIN);
    aclTensor *const source = aclCreateTensor(sizes, 2, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, &one, 1, &value);
    CHECK_FAILS(RUN(aclnnInplaceMaskedScatter, self.tensor, mask.tensor, source), ERROR_BAD_ALLOC,
                "no memory to work through the mask");
    aclDestroyTensor(source);
    operand_free(&self);
    operand_free(&mask);
}

int main(void)
{
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    handles_may_be_destroyed();
    missing_memory_is_reported();
    return check_result();
}
