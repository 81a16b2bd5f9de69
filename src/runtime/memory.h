/* Device memory: one arena a device, and the host memory that copies may use asynchronously.
 *
 * An arena is a shared mapping of an anonymous file (other processes can map it too), reserved sparse and filled when blocks of
 * 2 to 64 MiB are allocated, otherwise by use; blocks start at multiples of 512 bytes and the pages of freed ones go back to the
 * system. Addresses that come from outside are checked against live blocks before anything is read or written. */
#ifndef RUNTIME_MEMORY_H
#define RUNTIME_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MEMORY_ALIGNMENT = 512 };

/* bytes > 0. Out of capacity: ERROR_RT_MEMORY_ALLOCATION. */
int memory_allocate(int device, size_t bytes, void **memory);
/* alignment: a power of two, at least MEMORY_ALIGNMENT. */
int memory_allocate_aligned(int device, size_t bytes, size_t alignment, void **memory);
int memory_free(void *memory);
/* Which device's memory is the address in (an arena, or mapped elsewhere)? -1: none. Looks at no block. */
int memory_device(const void *address);
/* 0 when [address, address + bytes) is inside one live block; else ERROR_INVALID_PARAM with a text that starts with `role`. */
int memory_check(const void *address, size_t bytes, const char *function, const char *role);
void memory_usage(int device, size_t *free_bytes, size_t *total_bytes);

/* For peers: the file, where it is mapped here, and how long it is. Makes the arena when there is none. */
struct memory_arena {
    int descriptor;
    char *base;
    size_t bytes;
};
int memory_arena(int device, struct memory_arena *arena);

/* --- host memory that was allocated or registered here -------------------------------------------------------------- */

struct host_block;

/* The block that holds the whole range, kept alive until host_block_release; NULL: not ours. */
struct host_block *host_block_acquire(const void *address, size_t bytes);
void host_block_release(struct host_block *block);

#endif
