/* Device memory at other addresses than its arena's: physical memory mapped into reserved ranges, memory of other processes.
 *
 * Every mapping of both kinds is in one list, sorted by address, so that copies find it as they find arena memory. */
#ifndef RUNTIME_VIRTUAL_MEMORY_H
#define RUNTIME_VIRTUAL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which device's memory is mapped there? -1: none. */
int virtual_device(const void *address);
/* How many bytes from `address` on are mapped without a gap; 0: none. */
size_t virtual_extent(const void *address);

/* Physical memory: a piece of an arena's file, of this process or of another. */
struct physical {
    int device;
    int descriptor;  /* the arena's file; owned when `block` is NULL */
    uint64_t offset; /* in the file */
    uint64_t bytes;
    void *block;    /* the arena memory behind it; NULL: another process's */
    int mappings;   /* virtual_lock */
    bool abandoned; /* virtual_lock: freed by its user, goes back with its last mapping */
};

/* The handle, if it is alive. */
struct physical *physical_find(const void *handle);
/* Takes over the descriptor, also on failure. */
int physical_import(int device, int descriptor, uint64_t offset, uint64_t bytes, struct physical **physical);
/* Maps [offset, offset + bytes) of the file anywhere (its start needn't be a page's). virtual_unmap undoes it. */
int virtual_map_anywhere(struct physical *physical, void **address);
/* False: nothing is mapped that starts there. Frees an abandoned physical memory with its last mapping. */
bool virtual_unmap(void *address);

#endif
