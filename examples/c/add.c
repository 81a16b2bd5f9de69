/* Adds two tensors on the device, from C: device, stream, memory, aclnnAdd in its two phases, copy back, and what an error looks like.
 * The README has the line that builds and runs it. */
#include <stdio.h>
#include <stdlib.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"

enum { ROWS = 2, COLUMNS = 3, COUNT = ROWS * COLUMNS };

/* Every function returns 0 or a code; the words behind the code are fetched once, from the same thread. */
static void check(int code, const char *call)
{
    if (code == 0)
        return;
    const char *const words = aclGetRecentErrMsg();
    fprintf(stderr, "%s failed with code %d: %s\n", call, code, words ? words : "(no text)");
    exit(1);
}
#define CHECK(call) check((call), #call)

/* A tensor of rows x columns floats in device memory, filled from the host (values may be NULL). */
static aclTensor *make_tensor(int64_t rows, int64_t columns, const float *values, void **memory)
{
    const int64_t sizes[] = {rows, columns}, strides[] = {columns, 1};
    const size_t bytes = (size_t)(rows * columns) * sizeof(float);
    CHECK(aclrtMalloc(memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    if (values)
        CHECK(aclrtMemcpy(*memory, bytes, values, bytes, ACL_MEMCPY_HOST_TO_DEVICE));
    return aclCreateTensor(sizes, 2, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, sizes, 2, *memory);
}

int main(void)
{
    const float a_values[COUNT] = {1, 2, 3, 4, 5, 6}, b_values[COUNT] = {10, 20, 30, 40, 50, 60};
    float result[COUNT], two = 2;
    void *a_memory, *b_memory, *out_memory, *wrong_memory, *workspace = NULL;
    uint64_t workspace_size;
    aclOpExecutor *executor;
    aclrtStream stream;

    CHECK(aclInit(NULL));
    CHECK(aclrtSetDevice(0));
    CHECK(aclrtCreateStream(&stream));
    aclTensor *const a = make_tensor(ROWS, COLUMNS, a_values, &a_memory);
    aclTensor *const b = make_tensor(ROWS, COLUMNS, b_values, &b_memory);
    aclTensor *const out = make_tensor(ROWS, COLUMNS, NULL, &out_memory);
    aclScalar *const alpha = aclCreateScalar(&two, ACL_FLOAT);

    /* Phase 1 checks and plans, phase 2 launches: out = a + 2 * b, later, in the stream's order. */
    CHECK(aclnnAddGetWorkspaceSize(a, b, alpha, out, &workspace_size, &executor));
    if (workspace_size > 0)
        CHECK(aclrtMalloc(&workspace, workspace_size, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclnnAdd(workspace, workspace_size, executor, stream));
    CHECK(aclrtSynchronizeStream(stream));
    CHECK(aclrtMemcpy(result, sizeof result, out_memory, sizeof result, ACL_MEMCPY_DEVICE_TO_HOST));
    for (int i = 0; i < COUNT; ++i)
        printf("%g + 2 * %g = %g\n", (double)a_values[i], (double)b_values[i], (double)result[i]);

    /* An error is a code and a text; nothing was launched, and everything goes on working. */
    aclTensor *const wrong = make_tensor(COLUMNS, ROWS, b_values, &wrong_memory);
    const int code = aclnnAddGetWorkspaceSize(a, wrong, alpha, out, &workspace_size, &executor);
    const char *const words = aclGetRecentErrMsg();
    printf("shapes that don't fit give code %d:\n%s\n", code, words ? words : "(no text)");

    aclTensor *const tensors[] = {a, b, out, wrong};
    void *const memories[] = {a_memory, b_memory, out_memory, wrong_memory};
    for (int i = 0; i < 4; ++i) {
        CHECK(aclDestroyTensor(tensors[i]));
        CHECK(aclrtFree(memories[i]));
    }
    CHECK(aclDestroyScalar(alpha));
    if (workspace)
        CHECK(aclrtFree(workspace));
    CHECK(aclrtDestroyStream(stream));
    CHECK(aclrtResetDevice(0));
    CHECK(aclFinalize());
    for (int i = 0; i < COUNT; ++i)
        if (result[i] != a_values[i] + 2 * b_values[i])
            return 1;
    return code == 0;
}
