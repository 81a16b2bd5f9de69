/* A hash set of pointers. See pointer_set.h. */
#include "base/pointer_set.h"

#include <stdint.h>
#include <stdlib.h>

static size_t home(const struct pointer_set *set, const void *pointer)
{
    return (size_t)((uintptr_t)pointer * 0x9e3779b97f4a7c15u >> 20) & (set->room - 1);
}

/* Where the pointer is, or the free slot where it would go. The set has a free slot. */
static size_t find(const struct pointer_set *set, const void *pointer)
{
    size_t i = home(set, pointer);
    while (set->slots[i] && set->slots[i] != pointer)
        i = (i + 1) & (set->room - 1);
    return i;
}

static bool grow(struct pointer_set *set)
{
    struct pointer_set wider = {.room = set->room ? set->room * 2 : 16, .count = set->count};
    wider.slots = calloc(wider.room, sizeof *wider.slots);
    if (!wider.slots)
        return false;
    for (size_t i = 0; i < set->room; ++i)
        if (set->slots[i])
            wider.slots[find(&wider, set->slots[i])] = set->slots[i];
    free(set->slots);
    *set = wider;
    return true;
}

bool pointer_set_add(struct pointer_set *set, void *pointer)
{
    if (set->count * 2 >= set->room && !grow(set))
        return false;
    const size_t i = find(set, pointer);
    set->count += !set->slots[i];
    set->slots[i] = pointer;
    return true;
}

bool pointer_set_has(const struct pointer_set *set, const void *pointer)
{
    return pointer && set->room && set->slots[find(set, pointer)] == pointer;
}

bool pointer_set_remove(struct pointer_set *set, const void *pointer)
{
    if (!pointer_set_has(set, pointer))
        return false;
    size_t hole = find(set, pointer);
    --set->count;
    /* Entries behind the hole move up unless that would put them before their home. */
    for (size_t i = (hole + 1) & (set->room - 1); set->slots[i]; i = (i + 1) & (set->room - 1)) {
        const size_t distance_home = (i - home(set, set->slots[i])) & (set->room - 1);
        if (distance_home >= ((i - hole) & (set->room - 1))) {
            set->slots[hole] = set->slots[i];
            hole = i;
        }
    }
    set->slots[hole] = NULL;
    return true;
}
