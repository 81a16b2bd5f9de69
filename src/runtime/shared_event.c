/* Pages of events that are shared between processes. See shared_event.h; how the other process finds the page: shared_memory.c does the
 * same for memory. */
#define _GNU_SOURCE
#include "runtime/shared_event.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/futex.h"

enum { PAGE = 4096, PAGE_MAGIC = 0x4e505645, LOOKS_WITHOUT_PAUSE = 1000, LONGEST_PAUSE_NS = 1000000, LOOKS_FOR_THE_OWNER = 64 };

struct page {
    uint32_t magic;
    int32_t owner; /* process */
    _Atomic uint64_t recorded, completed;
};

struct shared_event {
    struct page *page; /* mapped */
    int descriptor;    /* of the page's file */
    _Atomic int references;
};

/* Takes over the descriptor. */
static int map_page(int descriptor, struct shared_event **event)
{
    struct page *const page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    struct shared_event *const made = page != MAP_FAILED ? malloc(sizeof *made) : NULL;
    if (!made) {
        if (page != MAP_FAILED)
            munmap(page, PAGE);
        close(descriptor);
        FAIL(ERROR_BAD_ALLOC, "no memory for an event between processes");
    }
    made->page = page;
    made->descriptor = descriptor;
    made->references = 1;
    *event = made;
    return 0;
}

int shared_event_create(struct shared_event **event)
{
    const int descriptor = memfd_create("npu-event", MFD_CLOEXEC);
    REQUIRE(descriptor >= 0, ERROR_BAD_ALLOC, "no file for an event between processes: %s", strerror(errno));
    if (ftruncate(descriptor, PAGE) != 0) {
        close(descriptor);
        FAIL(ERROR_BAD_ALLOC, "no file for an event between processes: %s", strerror(errno));
    }
    TRY(map_page(descriptor, event));
    (*event)->page->owner = (int32_t)getpid();
    (*event)->page->magic = PAGE_MAGIC;
    return 0;
}

int shared_event_open(const char *handle, struct shared_event **event)
{
    int process, file;
    char path[64];
    REQUIRE(sscanf(handle, "npu-event-%d-%d", &process, &file) == 2, ERROR_INVALID_PARAM,
            "the handle holds no event; aclrtIpcGetEventHandle makes handles");
    snprintf(path, sizeof path, "/proc/%d/fd/%d", process, file);
    const int descriptor = open(path, O_RDWR | O_CLOEXEC);
    REQUIRE(descriptor >= 0, ERROR_INVALID_PARAM, "the event of process %d can't be opened (%s); did it end, or destroy the event?",
            process, strerror(errno));
    uint32_t magic = 0;
    if (pread(descriptor, &magic, sizeof magic, 0) != (ssize_t)sizeof magic || magic != PAGE_MAGIC) {
        close(descriptor);
        FAIL(ERROR_INVALID_PARAM, "process %d has no event under this handle", process);
    }
    return map_page(descriptor, event);
}

void shared_event_describe(const struct shared_event *event, char *handle, int bytes)
{
    memset(handle, 0, (size_t)bytes);
    snprintf(handle, (size_t)bytes, "npu-event-%d-%d", event->page->owner, event->descriptor);
}

void shared_event_hold(struct shared_event *event) { atomic_fetch_add(&event->references, 1); }

void shared_event_release(struct shared_event *event)
{
    if (!event || atomic_fetch_sub(&event->references, 1) != 1)
        return;
    munmap(event->page, PAGE);
    close(event->descriptor);
    free(event);
}

uint64_t shared_event_record(struct shared_event *event) { return atomic_fetch_add(&event->page->recorded, 1) + 1; }

void shared_event_complete(struct shared_event *event, uint64_t number)
{
    uint64_t before = atomic_load(&event->page->completed);
    while (before < number && !atomic_compare_exchange_weak(&event->page->completed, &before, number))
        ;
}

uint64_t shared_event_latest(const struct shared_event *event) { return atomic_load(&event->page->recorded); }

bool shared_event_reached(const struct shared_event *event, uint64_t number)
{
    return atomic_load(&event->page->completed) >= number;
}

bool shared_event_wait(const struct shared_event *event, uint64_t number, int64_t deadline)
{
    long pause = 1000;
    for (int looks = 0; !shared_event_reached(event, number); ++looks) {
        if (looks < LOOKS_WITHOUT_PAUSE) {
            cpu_relax();
            continue;
        }
        if (deadline >= 0 && clock_nanoseconds() >= deadline)
            return false;
        if (looks % LOOKS_FOR_THE_OWNER == 0 && kill(event->page->owner, 0) != 0 && errno == ESRCH)
            return shared_event_reached(event, number);
        nanosleep(&(struct timespec){0, pause}, NULL);
        pause = 2 * pause < LONGEST_PAUSE_NS ? 2 * pause : LONGEST_PAUSE_NS;
    }
    return true;
}
