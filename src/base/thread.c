/* Clean-up at the end of threads; starting our own. See thread.h. */
#define _GNU_SOURCE
#include "base/thread.h"

#include <signal.h>
#include <stddef.h>

static pthread_key_t key;
static bool key_made; /* another library may have taken the last one: then memory stays behind ended threads */
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static _Thread_local struct thread_cleanup *cleanups;

/* Runs again (POSIX: up to 4 times) when a clean-up or another destructor registered something meanwhile. */
static void run_cleanups(void *unused)
{
    while (cleanups) {
        struct thread_cleanup *const first = cleanups;
        cleanups = first->next;
        first->registered = false;
        first->run();
    }
}

static void make_key(void) { key_made = pthread_key_create(&key, run_cleanups) == 0; }

void thread_register_cleanup(struct thread_cleanup *cleanup)
{
    pthread_once(&key_once, make_key);
    if (!key_made)
        return;
    cleanup->registered = true;
    cleanup->next = cleanups;
    cleanups = cleanup;
    pthread_setspecific(key, &cleanups); /* any value but NULL makes the destructor run */
}

int thread_start(void *(*body)(void *), void *argument, const char *name, pthread_t *joinable)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, joinable ? PTHREAD_CREATE_JOINABLE : PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the new thread inherits it: signals are the application's */
    const int code = pthread_create(&thread, &attributes, body, argument);
    if (code == 0)
        pthread_setname_np(thread, name);
    if (code == 0 && joinable)
        *joinable = thread;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return code;
}
