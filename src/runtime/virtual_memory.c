/* Address ranges and physical memory mapped into them. See virtual_memory.h and acl/acl_rt.h.
 *
 * virtual_lock guards the lists of ranges, handles and mappings, and the counts in them. `mapping_count` is also read without it,
 * so that programs that map nothing pay one load for a look-up. */
#define _GNU_SOURCE
#include "runtime/virtual_memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "acl/acl_rt.h"
#include "base/error.h"
#include "base/log.h"
#include "base/pointer_set.h"
#include "runtime/device.h"
#include "runtime/fork.h"
#include "runtime/init.h"
#include "runtime/memory.h"

enum { GRANULARITY = 2 << 20, PAGE = 4096 };

struct range {
    struct range *next;
    char *start;
    uint64_t bytes;
    int mappings;
};

struct mapping {
    char *start;
    uint64_t bytes;
    struct physical *physical;
    struct range *range; /* NULL: an address of its own, unmapped with it */
};

static pthread_mutex_t virtual_lock = PTHREAD_MUTEX_INITIALIZER;
static struct range *ranges;
static struct pointer_set handles;
static struct mapping *mappings; /* sorted by start */
static _Atomic size_t mapping_count;
static size_t mapping_room;

/* --- the list of mappings; all called with the lock ------------------------------------------------------------------ */

/* Index of the first mapping that starts behind the address. */
static size_t upper_bound(const char *address)
{
    size_t low = 0, high = mapping_count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (mappings[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The mapping that holds the address, or NULL. */
static struct mapping *find(const char *address)
{
    const size_t index = upper_bound(address);
    struct mapping *const mapping = index ? &mappings[index - 1] : NULL;
    return mapping && (uint64_t)(address - mapping->start) < mapping->bytes ? mapping : NULL;
}

static bool insert(struct mapping mapping)
{
    if (mapping_count == mapping_room) {
        const size_t room = mapping_room ? 2 * mapping_room : 64;
        struct mapping *const wider = realloc(mappings, room * sizeof *wider);
        if (!wider)
            return false;
        mappings = wider;
        mapping_room = room;
    }
    const size_t index = upper_bound(mapping.start);
    memmove(&mappings[index + 1], &mappings[index], (mapping_count - index) * sizeof mapping);
    mappings[index] = mapping;
    ++mapping_count;
    ++mapping.physical->mappings;
    if (mapping.range)
        ++mapping.range->mappings;
    return true;
}

int virtual_device(const void *address)
{
    if (mapping_count == 0)
        return -1;
    pthread_mutex_lock(&virtual_lock);
    const struct mapping *const mapping = find(address);
    const int device = mapping ? mapping->physical->device : -1;
    pthread_mutex_unlock(&virtual_lock);
    return device;
}

size_t virtual_extent(const void *address)
{
    const char *end = address;
    pthread_mutex_lock(&virtual_lock);
    for (const struct mapping *mapping; (mapping = find(end)) != NULL;)
        end = mapping->start + mapping->bytes;
    pthread_mutex_unlock(&virtual_lock);
    return (size_t)(end - (const char *)address);
}

/* --- physical memory ----------------------------------------------------------------------------------------------- */

static void release(struct physical *physical)
{
    if (physical->block)
        memory_free(physical->block);
    else
        close(physical->descriptor);
    free(physical);
}

struct physical *physical_find(const void *handle)
{
    pthread_mutex_lock(&virtual_lock);
    const bool known = pointer_set_has(&handles, handle);
    pthread_mutex_unlock(&virtual_lock);
    return known ? (struct physical *)handle : NULL;
}

/* Takes over what `made` owns, also on failure. */
static int publish(struct physical made, struct physical **physical)
{
    struct physical *const kept = malloc(sizeof *kept);
    if (kept) {
        *kept = made;
        pthread_mutex_lock(&virtual_lock);
        const bool added = pointer_set_add(&handles, kept);
        pthread_mutex_unlock(&virtual_lock);
        if (added) {
            *physical = kept;
            return 0;
        }
    }
    free(kept);
    if (made.block)
        memory_free(made.block);
    else
        close(made.descriptor);
    FAIL(ERROR_BAD_ALLOC, "out of host memory");
}

int physical_import(int device, int descriptor, uint64_t offset, uint64_t bytes, struct physical **physical)
{
    return publish((struct physical){.device = device, .descriptor = descriptor, .offset = offset, .bytes = bytes}, physical);
}

static int check_size(const char *function, const char *what, uint64_t bytes)
{
    if (bytes == 0 || bytes % GRANULARITY != 0)
        return error_set(ERROR_INVALID_PARAM, function,
                         "%s is %llu; it must be a multiple of %d (aclrtMemGetAllocationGranularity)", what,
                         (unsigned long long)bytes, GRANULARITY);
    return 0;
}

static int check_properties(const char *function, const aclrtPhysicalMemProp *prop)
{
    if (!prop)
        return error_set(ERROR_INVALID_PARAM, function, "prop is null");
    if (prop->allocationType != ACL_MEM_ALLOCATION_TYPE_PINNED || prop->location.type != ACL_MEM_LOCATION_TYPE_DEVICE)
        return error_set(ERROR_RT_FEATURE_UNSUPPORTED, function,
                         "allocation type %d at location type %d isn't available; pinned memory (0) of a device (1) is",
                         (int)prop->allocationType, (int)prop->location.type);
    return device_require(prop->location.id);
}

aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp *prop, aclrtMemGranularityOptions option, size_t *granularity)
{
    REQUIRE(granularity, ERROR_INVALID_PARAM, "granularity is null");
    REQUIRE(option == ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM || option == ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED,
            ERROR_INVALID_PARAM, "option is %d; 0 (minimum) and 1 (recommended) are known", (int)option);
    TRY(check_properties(__func__, prop));
    *granularity = GRANULARITY;
    return 0;
}

aclError aclrtMallocPhysical(aclrtDrvMemHandle *handle, size_t size, const aclrtPhysicalMemProp *prop, uint64_t flags)
{
    struct memory_arena arena;
    struct physical *physical;
    void *block;
    REFUSE_AFTER_FORK();
    TRY(runtime_require(__func__));
    REQUIRE(handle, ERROR_INVALID_PARAM, "handle is null");
    REQUIRE(flags == 0, ERROR_INVALID_PARAM, "flags is %llu; it must be 0", (unsigned long long)flags);
    TRY(check_size(__func__, "size", size));
    TRY(check_properties(__func__, prop));
    const int device = (int)prop->location.id;
    TRY(memory_arena(device, &arena));
    TRY(memory_allocate_aligned(device, size, GRANULARITY, &block));
    const struct physical made = {.device = device,
                                  .descriptor = arena.descriptor,
                                  .offset = (uint64_t)((char *)block - arena.base),
                                  .bytes = size,
                                  .block = block};
    TRY(publish(made, &physical));
    *handle = physical;
    return 0;
}

aclError aclrtFreePhysical(aclrtDrvMemHandle handle)
{
    struct physical *const physical = handle;
    if (fork_happened())
        return 0;
    pthread_mutex_lock(&virtual_lock);
    const bool known = pointer_set_remove(&handles, handle);
    const bool unused = known && physical->mappings == 0;
    if (known)
        physical->abandoned = true;
    pthread_mutex_unlock(&virtual_lock);
    REQUIRE(known, ERROR_RT_INVALID_HANDLE, "%p is no physical memory (freed, or never allocated)", handle);
    if (unused)
        release(physical);
    return 0;
}

/* --- ranges ---------------------------------------------------------------------------------------------------------- */

/* Called with the lock. */
static struct range *range_of(const char *address)
{
    struct range *range = ranges;
    while (range && (uint64_t)(address - range->start) >= range->bytes)
        range = range->next;
    return range;
}

aclError aclrtReserveMemAddress(void **virPtr, size_t size, size_t alignment, void *expectPtr, uint64_t flags)
{
    REFUSE_AFTER_FORK();
    TRY(runtime_require(__func__));
    REQUIRE(virPtr, ERROR_INVALID_PARAM, "virPtr is null");
    REQUIRE(alignment == 0, ERROR_INVALID_PARAM, "alignment is %zu; it must be 0", alignment);
    REQUIRE(flags <= 1, ERROR_INVALID_PARAM, "flags is %llu; it must be 0 or 1", (unsigned long long)flags);
    REQUIRE(size > 0 && size < SIZE_MAX / 2, ERROR_INVALID_PARAM, "size is %zu", size);
    size = (size + PAGE - 1) / PAGE * PAGE;
    char *space = mmap(expectPtr, size + GRANULARITY, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(space != MAP_FAILED, ERROR_RT_MEMORY_ALLOCATION, "%zu bytes of address space aren't there: %s", size, strerror(errno));
    /* The part that is aligned stays. */
    char *const start = (char *)(((uintptr_t)space + GRANULARITY - 1) / GRANULARITY * GRANULARITY);
    if (start > space)
        munmap(space, (size_t)(start - space));
    if (space + GRANULARITY > start)
        munmap(start + size, (size_t)(space + GRANULARITY - start));
    struct range *const range = malloc(sizeof *range);
    if (!range) {
        munmap(start, size);
        FAIL(ERROR_BAD_ALLOC, "out of host memory");
    }
    pthread_mutex_lock(&virtual_lock);
    *range = (struct range){.next = ranges, .start = start, .bytes = size};
    ranges = range;
    pthread_mutex_unlock(&virtual_lock);
    *virPtr = start;
    return 0;
}

aclError aclrtReleaseMemAddress(void *virPtr)
{
    if (fork_happened())
        return 0;
    pthread_mutex_lock(&virtual_lock);
    struct range **link = &ranges;
    while (*link && (*link)->start != virPtr)
        link = &(*link)->next;
    struct range *const range = *link;
    const int mapped = range ? range->mappings : 0;
    if (range && mapped == 0)
        *link = range->next;
    pthread_mutex_unlock(&virtual_lock);
    REQUIRE(range, ERROR_INVALID_PARAM, "%p isn't the start of a reserved range", virPtr);
    REQUIRE(mapped == 0, ERROR_RT_PARAM_INVALID, "%d physical memories are still mapped in the range from %p; unmap them first",
            mapped, virPtr);
    munmap(range->start, range->bytes);
    free(range);
    return 0;
}

/* --- mapping --------------------------------------------------------------------------------------------------------- */

/* Called with the lock. Pages of the file over reserved ones; a forked child doesn't get them. */
static int map_into_range(const char *function, struct range *range, char *start, struct physical *physical)
{
    const struct mapping mapping = {start, physical->bytes, physical, range};
    const struct mapping *const last = find(start + physical->bytes - 1);
    if (last || find(start) || (upper_bound(start) < mapping_count && mappings[upper_bound(start)].start < start + physical->bytes))
        return error_set(ERROR_RT_PARAM_INVALID, function, "physical memory is mapped there already: %p, %llu bytes", (void *)start,
                         (unsigned long long)physical->bytes);
    if (mmap(start, physical->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, physical->descriptor,
             (off_t)physical->offset) == MAP_FAILED)
        return error_set(ERROR_RT_MEMORY_ALLOCATION, function, "%llu bytes couldn't be mapped at %p: %s",
                         (unsigned long long)physical->bytes, (void *)start, strerror(errno));
    madvise(start, physical->bytes, MADV_DONTFORK);
    return insert(mapping) ? 0 : error_set(ERROR_BAD_ALLOC, function, "out of host memory");
}

aclError aclrtMapMem(void *virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t flags)
{
    REFUSE_AFTER_FORK();
    struct physical *const physical = physical_find(handle);
    REQUIRE(physical, ERROR_RT_INVALID_HANDLE, "%p is no physical memory (freed, or never allocated)", handle);
    REQUIRE(offset == 0 && flags == 0, ERROR_INVALID_PARAM, "offset is %zu and flags %llu; both must be 0", offset,
            (unsigned long long)flags);
    REQUIRE(size == physical->bytes, ERROR_INVALID_PARAM, "size is %zu; the physical memory has %llu bytes, and all are mapped",
            size, (unsigned long long)physical->bytes);
    REQUIRE((uintptr_t)virPtr % GRANULARITY == 0, ERROR_INVALID_PARAM, "virPtr %p isn't a multiple of %d", virPtr, GRANULARITY);
    pthread_mutex_lock(&virtual_lock);
    struct range *const range = range_of(virPtr);
    const bool inside = range && size <= range->bytes - (uint64_t)((char *)virPtr - range->start);
    const int code = inside ? map_into_range(__func__, range, virPtr, physical) : 0;
    pthread_mutex_unlock(&virtual_lock);
    REQUIRE(inside, ERROR_INVALID_PARAM, "%zu bytes from %p aren't inside a reserved range", size, virPtr);
    return code;
}

int virtual_map_anywhere(struct physical *physical, void **address)
{
    const uint64_t lead = physical->offset % PAGE;
    char *const pages = mmap(NULL, lead + physical->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, physical->descriptor,
                             (off_t)(physical->offset - lead));
    REQUIRE(pages != MAP_FAILED, ERROR_RT_MEMORY_ALLOCATION, "%llu bytes couldn't be mapped: %s",
            (unsigned long long)physical->bytes, strerror(errno));
    madvise(pages, lead + physical->bytes, MADV_DONTFORK);
    pthread_mutex_lock(&virtual_lock);
    const bool added = insert((struct mapping){pages + lead, physical->bytes, physical, NULL});
    pthread_mutex_unlock(&virtual_lock);
    if (!added) {
        munmap(pages, lead + physical->bytes);
        FAIL(ERROR_BAD_ALLOC, "out of host memory");
    }
    *address = pages + lead;
    return 0;
}

/* Called with the lock. */
static void unmap_pages(const struct mapping *mapping)
{
    if (mapping->range) { /* the addresses stay reserved */
        if (mmap(mapping->start, mapping->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) ==
            MAP_FAILED)
            LOG_WARNING("the memory at %p stays mapped: %s", (void *)mapping->start, strerror(errno));
        return;
    }
    const uint64_t lead = (uintptr_t)mapping->start % PAGE;
    munmap(mapping->start - lead, lead + mapping->bytes);
}

bool virtual_unmap(void *address)
{
    pthread_mutex_lock(&virtual_lock);
    const struct mapping *const found = find(address);
    const bool known = found && found->start == address;
    struct physical *dead = NULL;
    if (known) {
        const struct mapping mapping = *found;
        const size_t index = (size_t)(found - mappings);
        unmap_pages(&mapping);
        --mapping_count;
        memmove(&mappings[index], &mappings[index + 1], (mapping_count - index) * sizeof mapping);
        if (mapping.range)
            --mapping.range->mappings;
        if (--mapping.physical->mappings == 0 && mapping.physical->abandoned)
            dead = mapping.physical;
    }
    pthread_mutex_unlock(&virtual_lock);
    if (dead)
        release(dead);
    return known;
}

aclError aclrtUnmapMem(void *virPtr)
{
    if (fork_happened())
        return 0;
    REQUIRE(virtual_unmap(virPtr), ERROR_INVALID_PARAM, "no mapping starts at %p", virPtr);
    return 0;
}
