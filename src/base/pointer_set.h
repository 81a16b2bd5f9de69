/* A set of pointers: which handles are alive. Not locked; its owner does that.
 *
 * Handles that come from outside are looked up here before they are followed, so that a destroyed or foreign one is refused
 * in words. Open addressing; at most half full. */
#ifndef BASE_POINTER_SET_H
#define BASE_POINTER_SET_H

#include <stdbool.h>
#include <stddef.h>

struct pointer_set {
    void **slots;
    size_t room, count; /* room: a power of two, or 0 */
};

/* False when memory is exhausted. */
bool pointer_set_add(struct pointer_set *set, void *pointer);
bool pointer_set_has(const struct pointer_set *set, const void *pointer);
/* False when it isn't in. */
bool pointer_set_remove(struct pointer_set *set, const void *pointer);

#endif
