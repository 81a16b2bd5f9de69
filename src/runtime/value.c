/* Values in device memory that streams write and wait for: aclrtValueWrite, aclrtValueWait.
 *
 * A wait keeps its stream's thread: it looks again and again, more and more seldom. Whoever writes the value (another stream, the
 * host, another process) needs no call into this library. */
#include <stdatomic.h>
#include <time.h>

#include "acl/acl_rt.h"
#include "base/error.h"
#include "base/futex.h"
#include "runtime/memory.h"
#include "runtime/stream.h"

enum { LOOKS_WITHOUT_PAUSE = 1000, LONGEST_PAUSE_NS = 1000000 };

static const char *write_name(const struct task *task) { return "aclrtValueWrite"; }

static const char *wait_name(const struct task *task) { return "aclrtValueWait"; }

static void written_range(const struct task *task, void (*visit)(void *, const char *, const char *, bool), void *context)
{
    visit(context, task->out, (const char *)task->out + sizeof(uint64_t), true);
}

static int write_run(struct task *task)
{
    atomic_store_explicit((_Atomic uint64_t *)task->out, (uint64_t)task->immediate.i64, memory_order_release);
    return 0;
}

static bool fits(uint64_t found, uint64_t wanted, uint32_t flag)
{
    switch (flag) {
    case ACL_STREAM_WAIT_VALUE_GEQ: return (int64_t)(found - wanted) >= 0;
    case ACL_STREAM_WAIT_VALUE_EQ: return found == wanted;
    case ACL_STREAM_WAIT_VALUE_AND: return (found & wanted) != 0;
    default: return ~(found | wanted) != 0;
    }
}

static int wait_run(struct task *task)
{
    _Atomic uint64_t *const word = task->out;
    long pause = 1000;
    for (int looks = 0;; ++looks) {
        if (fits(atomic_load_explicit(word, memory_order_acquire), (uint64_t)task->immediate.i64, task->detail))
            return 0;
        if (looks < LOOKS_WITHOUT_PAUSE) {
            cpu_relax();
            continue;
        }
        nanosleep(&(struct timespec){0, pause}, NULL);
        pause = 2 * pause < LONGEST_PAUSE_NS ? 2 * pause : LONGEST_PAUSE_NS;
    }
}

static const struct task_class write_class = {.name = write_name, .ranges = written_range};
static const struct task_class wait_class = {.name = wait_name};

static int check_word(const char *function, const void *address)
{
    if (!address)
        return error_set(ERROR_INVALID_PARAM, function, "devAddr is null");
    if ((uintptr_t)address % sizeof(uint64_t) != 0)
        return error_set(ERROR_INVALID_PARAM, function, "devAddr %p isn't a multiple of 8", address);
    return memory_check(address, sizeof(uint64_t), function, "devAddr");
}

aclError aclrtValueWrite(void *devAddr, uint64_t value, uint32_t flag, aclrtStream stream)
{
    struct stream *target;
    TRY(check_word(__func__, devAddr));
    REQUIRE(flag == 0, ERROR_INVALID_PARAM, "flag is %u; it must be 0", flag);
    TRY(stream_resolve(stream, &target));
    const struct task task = {
        .run = write_run, .class = &write_class, .out = devAddr, .immediate.i64 = (int64_t)value, .flags = TASK_SMALL};
    return stream_launch(target, &task);
}

aclError aclrtValueWait(void *devAddr, uint64_t value, uint32_t flag, aclrtStream stream)
{
    struct stream *target;
    TRY(check_word(__func__, devAddr));
    REQUIRE(flag <= ACL_STREAM_WAIT_VALUE_NOR, ERROR_INVALID_PARAM, "flag is %u; 0 to 3 (ACL_STREAM_WAIT_VALUE_*) are known", flag);
    TRY(stream_resolve(stream, &target));
    const struct task task = {.run = wait_run,
                              .class = &wait_class,
                              .out = devAddr,
                              .immediate.i64 = (int64_t)value,
                              .detail = flag,
                              .flags = TASK_QUEUED};
    return stream_launch(target, &task);
}
