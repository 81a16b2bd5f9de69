/* Are we a child that forked after the parent had started the runtime?
 *
 * Such a child may live and exit (DataLoader workers): frees succeed and do nothing, none of our locks is touched, the arenas
 * aren't there. Using a device is refused with a text that names spawn. */
#ifndef RUNTIME_FORK_H
#define RUNTIME_FORK_H

#include <stdbool.h>

extern int fork_flag; /* written once, in the child, before any of its code runs */

static inline bool fork_happened(void) { return __builtin_expect(fork_flag, 0); }

/* ERROR_RT_CONTEXT_NULL with the text; `what` names what was tried. */
int fork_refuse(const char *what) __attribute__((cold));

/* First line of a public function that uses the device. */
#define REFUSE_AFTER_FORK()               \
    do {                                  \
        if (fork_happened())              \
            return fork_refuse(__func__); \
    } while (0)

/* Registers the child handler; called when the runtime starts. */
int fork_watch(void);

#endif
