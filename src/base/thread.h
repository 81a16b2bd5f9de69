/* What must happen when a thread ends: giving back its free lists, scratch buffers and error slot.
 *
 * The owner keeps a thread-local `struct thread_cleanup` and hands it over when it first has something to free. Clean-ups run
 * once, in the ending thread, newest first; one that becomes needed again later (by another library's destructors) is
 * registered again. The main thread's don't run at the end of the process: its thread-local memory stays reachable. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

struct thread_cleanup {
    void (*run)(void);           /* works on the thread-local state of whoever registered it */
    struct thread_cleanup *next; /* kept by thread.c */
    bool registered;
};

/* Leaves it unregistered when the process has no thread key left: the memory then stays behind the thread. */
void thread_register_cleanup(struct thread_cleanup *cleanup);

/* Cheap enough for hot paths: one load when it is registered already. */
static inline void thread_at_exit(struct thread_cleanup *cleanup)
{
    if (__builtin_expect(!cleanup->registered, 0))
        thread_register_cleanup(cleanup);
}

/* Starts a thread that takes no signals, named for debuggers (15 bytes at most); detached, unless the caller wants to join it.
 * 0, or an errno value. */
int thread_start(void *(*body)(void *), void *argument, const char *name, pthread_t *joinable);

#endif
