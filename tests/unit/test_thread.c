/* Clean-ups of ending threads: once each, newest first, and again for what is registered meanwhile; what views leave behind (seen
 * by the leak check of address builds). Cores and memory of the host. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>

#include "base/host.h"
#include "base/thread.h"
#include "tensor/tensor.h"
#include "check.h"

static char order[16];
static _Thread_local struct thread_cleanup first, second;

static void run_first(void)
{
    strcat(order, "1");
    if (strlen(order) < 4)
        thread_at_exit(&second); /* needed again */
}

static void run_second(void) { strcat(order, "2"); }

static void *body(void *unused)
{
    first.run = run_first;
    second.run = run_second;
    for (int i = 0; i < 3; ++i) {
        thread_at_exit(&first);
        thread_at_exit(&second);
    }
    return NULL;
}

static void *write_a_view(void *unused)
{
    struct view view = {.dtype = DTYPE_F32, .ndim = 2, .sizes = {3, 4}};
    CHECK(strcmp(view_text(&view), "f32[3,4]") == 0, "%s", view_text(&view));
    return NULL;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, write_a_view, NULL);
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, body, NULL);
    pthread_join(thread, NULL);
    CHECK(strcmp(order, "212") == 0, "clean-ups ran as %s", order);

    cpu_set_t all, one;
    CHECK_INT(sched_getaffinity(0, sizeof all, &all), 0);
    CHECK(host_cores() >= 1 && host_cores() <= CPU_COUNT(&all), "%d cores", host_cores());
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    CHECK_INT(sched_setaffinity(0, sizeof one, &one), 0);
    CHECK_INT(host_cores(), 1);
    CHECK(host_memory() > 64 << 20, "%lld bytes", (long long)host_memory());
    return check_result();
}
