/* What each call of one small operator costs the host through the C API: handles, phase 1, phase 2. bench/phases.py builds and runs it.
 *
 * Prints one line per step: name, best of ROUNDS, median, in nanoseconds per operator (aclnnAdd of two tensors with 4 floats). */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"

enum { CALLS = 20000, BATCH = 16, ROUNDS = 15, STEPS = 3 };
static const char *const step_names[STEPS] = {"three tensor handles, made and dropped", "phase 1", "phase 2"};

static void check(int code, const char *call)
{
    if (code == 0)
        return;
    const char *const words = aclGetRecentErrMsg();
    fprintf(stderr, "%s failed with code %d: %s\n", call, code, words ? words : "(no text)");
    exit(1);
}
#define CHECK(call) check((call), #call)

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static aclTensor *tensor_of(void *memory)
{
    const int64_t sizes[] = {4}, strides[] = {1};
    return aclCreateTensor(sizes, 1, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, sizes, 1, memory);
}

struct operands {
    void *memory[3];
    aclTensor *tensors[3];
    aclScalar *alpha;
};

static double handles_round(const struct operands *operands)
{
    const double begin = now_ns();
    for (int call = 0; call < CALLS; ++call) {
        aclTensor *made[3];
        for (int i = 0; i < 3; ++i)
            made[i] = tensor_of(operands->memory[i]);
        for (int i = 0; i < 3; ++i)
            aclDestroyTensor(made[i]);
    }
    return (now_ns() - begin) / CALLS;
}

/* A few executors at a time (what a program has in flight, served by the free lists), so that each phase is timed without the other. */
static void phases_round(const struct operands *operands, aclrtStream stream, double *first, double *second)
{
    aclOpExecutor *executors[BATCH];
    uint64_t workspace_size = 0;
    aclTensor *const *const tensors = operands->tensors;
    *first = *second = 0;
    for (int batch = 0; batch < CALLS / BATCH; ++batch) {
        const double begin = now_ns();
        for (int i = 0; i < BATCH; ++i)
            CHECK(aclnnAddGetWorkspaceSize(tensors[0], tensors[1], operands->alpha, tensors[2], &workspace_size, &executors[i]));
        const double middle = now_ns();
        for (int i = 0; i < BATCH; ++i)
            CHECK(aclnnAdd(NULL, 0, executors[i], stream));
        *first += (middle - begin) / CALLS;
        *second += (now_ns() - middle) / CALLS;
    }
    CHECK(aclrtSynchronizeStream(stream));
}

static int ascending(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

int main(void)
{
    float one = 1;
    double times[STEPS][ROUNDS];
    struct operands operands;
    aclrtStream stream;
    CHECK(aclInit(NULL));
    CHECK(aclrtSetDevice(0));
    CHECK(aclrtCreateStream(&stream));
    for (int i = 0; i < 3; ++i) {
        CHECK(aclrtMalloc(&operands.memory[i], 4 * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST));
        CHECK(aclrtMemset(operands.memory[i], 4 * sizeof(float), 0, 4 * sizeof(float)));
        operands.tensors[i] = tensor_of(operands.memory[i]);
    }
    operands.alpha = aclCreateScalar(&one, ACL_FLOAT);
    for (int round = -1; round < ROUNDS; ++round) { /* round -1 warms up and is overwritten */
        const int kept = round < 0 ? 0 : round;
        times[0][kept] = handles_round(&operands);
        phases_round(&operands, stream, &times[1][kept], &times[2][kept]);
    }
    for (int step = 0; step < STEPS; ++step) {
        qsort(times[step], ROUNDS, sizeof times[step][0], ascending);
        printf("%s;%.1f;%.1f\n", step_names[step], times[step][0], times[step][ROUNDS / 2]);
    }
    aclDestroyScalar(operands.alpha);
    for (int i = 0; i < 3; ++i) {
        aclDestroyTensor(operands.tensors[i]);
        CHECK(aclrtFree(operands.memory[i]));
    }
    CHECK(aclrtDestroyStream(stream));
    return aclFinalize();
}
