/* The pool covers every item exactly once, in ranges cut at multiples of the grain, from several callers at once. */
#include <pthread.h>

#include "base/pool.h"
#include "check.h"

enum { ITEMS = 10007 };

struct job {
    _Atomic int hits[ITEMS];
    int64_t grain;
};

static void touch(void *argument, int64_t begin, int64_t end)
{
    struct job *const job = argument;
    CHECK(begin % job->grain == 0 && end - begin <= job->grain && begin < end, "range %lld..%lld", (long long)begin,
          (long long)end);
    for (int64_t i = begin; i < end; ++i)
        ++job->hits[i];
}

static void *caller(void *unused)
{
    struct job *const job = calloc(1, sizeof *job);
    int wrong = 0;
    for (int round = 0; round < 300; ++round) {
        job->grain = 1 + round * 7 % 900;
        pool_for(ITEMS, job->grain, touch, job);
        for (int i = 0; i < ITEMS; ++i)
            wrong += job->hits[i] != round + 1;
    }
    CHECK_INT(wrong, 0);
    char *const first = pool_scratch(0, 100), *const second = pool_scratch(1, 8 << 20);
    CHECK(first && second && first != second && (uintptr_t)first % 64 == 0 && (uintptr_t)second % 64 == 0, "scratch");
    memset(first, 1, 100);
    memset(second, 2, 8 << 20);
    CHECK(pool_scratch(0, 50) == first, "a smaller request gets the same buffer");
    free(job);
    return NULL;
}

static void nested_inner(void *argument, int64_t begin, int64_t end) { *(_Atomic int *)argument += (int)(end - begin); }

int main(void)
{
    setenv("NPU_POOL_THREADS", "3", 1);
    CHECK_INT(pool_threads(), 3);
    pthread_t threads[3];
    for (int i = 0; i < 3; ++i)
        pthread_create(&threads[i], NULL, caller, NULL);
    caller(NULL);
    for (int i = 0; i < 3; ++i)
        pthread_join(threads[i], NULL);

    _Atomic int sum = 0;
    pool_for(0, 4, nested_inner, &sum);
    CHECK_INT(sum, 0);
    pool_forget_after_fork();
    CHECK_INT(pool_threads(), 1);
    pool_for(100, 4, nested_inner, &sum);
    CHECK_INT(sum, 100);
    return check_result();
}
