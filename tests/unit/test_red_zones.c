/* The red zones of a sanitizer build: writing past a block, or using a freed one, ends the process; fresh memory is NaN. In
 * other builds there is nothing to see, and the test is skipped. */
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"
#include "check.h"

#ifdef SOFTNPU_RED_ZONES
/* Not inlined and through a volatile pointer, so that the compiler neither warns nor removes the access. */
static __attribute__((noinline)) void touch(volatile char *memory) { *memory = 1; }

enum misuse { NONE, PAST_END, PAST_ODD_END, BEFORE, AFTER_FREE, MISUSES };

static void misuse(enum misuse what)
{
    char *memory, *neighbour;
    if (aclInit(NULL) || aclrtSetDevice(0) || aclrtMalloc((void **)&memory, 1024, ACL_MEM_MALLOC_HUGE_FIRST) ||
        aclrtMalloc((void **)&neighbour, 100, ACL_MEM_MALLOC_HUGE_FIRST))
        return;
    float fresh = 0;
    memcpy(&fresh, memory + 512, sizeof fresh);
    CHECK(fresh != fresh, "fresh memory holds %f", (double)fresh);
    touch(memory);
    touch(memory + 1023);
    touch(neighbour + 99);
    if (what == PAST_END)
        touch(memory + 1024);
    if (what == PAST_ODD_END)
        touch(neighbour + 100);
    if (what == BEFORE)
        touch(memory - 1);
    if (what == AFTER_FREE && aclrtFree(memory) == 0)
        touch(memory);
}

int main(void)
{
    for (int what = NONE; what < MISUSES; ++what) {
        int status = -1;
        fflush(NULL);
        const pid_t child = fork();
        if (child == 0) {
            if (!freopen("/dev/null", "w", stderr))
                return 1;
            misuse((enum misuse)what);
            _exit(check_failures ? 99 : 0);
        }
        waitpid(child, &status, 0);
        CHECK((status == 0) == (what == NONE), "misuse %d ended with %d", what, status);
        CHECK(!WIFEXITED(status) || WEXITSTATUS(status) != 99, "a check failed in the child");
    }
    return check_result();
}
#else
int main(void) { return CHECK_SKIPPED; }
#endif
