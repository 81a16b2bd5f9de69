/* A process whose thread keys are used up: nothing of others is overwritten, and what can't be cleaned up isn't promised. */
#include <limits.h>
#include <pthread.h>

#include "base/thread.h"
#include "check.h"

static void never(void) { CHECK(false, "a clean-up ran that couldn't be registered"); }

int main(void)
{
    static pthread_key_t keys[PTHREAD_KEYS_MAX + 1];
    static _Thread_local struct thread_cleanup cleanup = {.run = never};
    int count = 0;
    while (count <= PTHREAD_KEYS_MAX && pthread_key_create(&keys[count], NULL) == 0)
        ++count;
    CHECK(count > 100 && count <= PTHREAD_KEYS_MAX, "%d keys", count);
    for (int i = 0; i < count; ++i)
        pthread_setspecific(keys[i], &keys[i]);
    thread_at_exit(&cleanup);
    CHECK(!cleanup.registered, "promised a clean-up without a key");
    for (int i = 0; i < count; ++i)
        CHECK(pthread_getspecific(keys[i]) == &keys[i], "key %d was overwritten", i);
    return check_result();
}
