/* Device memory. See memory.h.
 *
 * Each arena has a lock, which guards its list of live blocks, sorted by address; gaps are what lies between. Blocks are
 * searched first-fit from the lowest gap. base is set once, under arenas_lock, and read without it. */
#define _GNU_SOURCE
#include "runtime/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "acl/acl.h"
#include "base/error.h"
#include "base/log.h"
#include "runtime/device.h"
#include "runtime/fork.h"
#include "runtime/virtual_memory.h"

enum { PAGE = 4096, HUGE_PAGE = 2 << 20, RED_ZONE_SHADOW = 64 << 20, HUGE_PAGES_MOST = 64 << 20 };

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

#ifdef SOFTNPU_RED_ZONES
#include <sanitizer/asan_interface.h>
/* Behind each block, and poisoned like freed memory. */
enum { RED_ZONE = MEMORY_ALIGNMENT };
static void poison(const char *memory, size_t bytes) { __asan_poison_memory_region(memory, bytes); }
/* Fresh memory is full of NaN, so that using it before writing shows. */
static void unpoison(char *memory, size_t bytes)
{
    __asan_unpoison_memory_region(memory, bytes);
    if (bytes <= RED_ZONE_SHADOW)
        memset(memory, 0xff, bytes);
}
#else
enum { RED_ZONE = 0 };
static void poison(const char *memory, size_t bytes) { (void)memory, (void)bytes; }
static void unpoison(char *memory, size_t bytes) { (void)memory, (void)bytes; }
#endif

struct block {
    uint64_t start, bytes;
}; /* start: from the arena's base; bytes: as asked for */

struct arena {
    pthread_mutex_t lock;
    char *_Atomic base; /* NULL until the first allocation */
    int descriptor;
    uint64_t reserved; /* length of the mapping: more than the capacity, since gaps cost address space only */
    uint64_t used;     /* rounded up to the alignment */
    struct block *blocks;
    size_t count, room;
    size_t first_gap; /* no gap lies before blocks[first_gap] */
};

static pthread_mutex_t arenas_lock = PTHREAD_MUTEX_INITIALIZER;
static struct arena arenas[DEVICES_MAX];

static uint64_t round_up(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

/* Asks for huge pages in new memory, whole ones of it, which fills them now (0.1 to 0.2 ms each, as long as filling small pages
 * later; several ms on a virtual machine whose host gives the memory only then). The speed of streaming through small pages
 * depends on which ones the buffer got, and most systems give shared memory no others; each mapping of the file sees them. More
 * than 64 MiB stay sparse, as they may never be filled. Where the system can't (Linux before 6.1), pages are small. */
static void use_huge_pages(char *memory, uint64_t bytes)
{
    char *const first = (char *)round_up((uintptr_t)memory, HUGE_PAGE);
    char *const last = (char *)((uintptr_t)(memory + bytes) / HUGE_PAGE * HUGE_PAGE);
    if (bytes > HUGE_PAGES_MOST || first >= last)
        return;
    for (const char *page = first; page < last; page += HUGE_PAGE)
        (void)*(const volatile char *)page; /* a huge page grows around a small one that is there */
    madvise(first, (size_t)(last - first), MADV_COLLAPSE);
}

/* What a block takes up: its bytes, rounded, and the red zone behind it. */
static uint64_t extent(const struct block *block) { return round_up(block->bytes, MEMORY_ALIGNMENT) + RED_ZONE; }

/* Address space aligned to huge pages, with the file mapped over it. */
static char *map_arena(int descriptor, uint64_t bytes)
{
    char *const space = mmap(NULL, bytes + HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED)
        return NULL;
    char *const base = (char *)round_up((uintptr_t)space, HUGE_PAGE);
    if (mmap(base, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, descriptor, 0) == MAP_FAILED) {
        munmap(space, bytes + HUGE_PAGE);
        return NULL;
    }
    madvise(base, bytes, MADV_DONTFORK); /* a forked child neither sees nor copies device memory */
    madvise(base, bytes, MADV_HUGEPAGE); /* where the system is set to give shared memory huge pages at the first touch */
    return base;
}

/* Called with arenas_lock. */
static int open_arena(int device)
{
    struct arena *const arena = &arenas[device];
    const uint64_t capacity = round_up((uint64_t)device_memory_capacity(), HUGE_PAGE);
    const int descriptor = memfd_create("npu-memory", MFD_CLOEXEC);
    REQUIRE(descriptor >= 0, ERROR_RT_MEMORY_ALLOCATION, "device %d: no memory file: %s", device, strerror(errno));
    char *base = NULL;
    uint64_t bytes = 2 * capacity;
    for (; !base && bytes >= capacity; bytes -= capacity)
        if (ftruncate(descriptor, (off_t)bytes) == 0 && (base = map_arena(descriptor, bytes)) != NULL)
            break;
    if (!base) {
        const int error = errno;
        close(descriptor);
        FAIL(ERROR_RT_MEMORY_ALLOCATION, "device %d: %llu MiB of address space can't be reserved: %s", device,
             (unsigned long long)(capacity >> 20), strerror(error));
    }
    pthread_mutex_init(&arena->lock, NULL);
    poison(base, RED_ZONE); /* before the first block */
    arena->descriptor = descriptor;
    arena->reserved = bytes;
    LOG_INFO("device %d: %llu MiB of memory", device, (unsigned long long)(capacity >> 20));
    atomic_store_explicit(&arena->base, base, memory_order_release);
    return 0;
}

static int require_arena(int device, struct arena **arena)
{
    *arena = &arenas[device];
    if (__builtin_expect(atomic_load_explicit(&(*arena)->base, memory_order_acquire) != NULL, 1))
        return 0;
    pthread_mutex_lock(&arenas_lock);
    const int code = (*arena)->base ? 0 : open_arena(device);
    pthread_mutex_unlock(&arenas_lock);
    return code;
}

/* Index of the first block that starts behind `offset`. */
static size_t upper_bound(const struct arena *arena, uint64_t offset)
{
    size_t low = 0, high = arena->count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (arena->blocks[middle].start <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool grow_list(struct arena *arena)
{
    if (arena->count < arena->room)
        return true;
    const size_t room = arena->room ? 2 * arena->room : 64;
    struct block *const wider = realloc(arena->blocks, room * sizeof *wider);
    if (wider) {
        arena->blocks = wider;
        arena->room = room;
    }
    return wider != NULL;
}

/* The lowest gap that is long enough; returns the index that the new block gets. False: none. */
static bool find_gap(struct arena *arena, uint64_t bytes, uint64_t alignment, size_t *index, uint64_t *start)
{
    const struct block *const blocks = arena->blocks;
    bool lowest = true; /* every gap so far had no room for anything */
    for (size_t i = arena->first_gap; i <= arena->count; ++i) {
        const uint64_t begin = i ? blocks[i - 1].start + extent(&blocks[i - 1]) : RED_ZONE;
        const uint64_t end = i < arena->count ? blocks[i].start : arena->reserved;
        const uint64_t aligned = round_up(begin, alignment);
        if (end >= aligned && end - aligned >= bytes) {
            *index = i;
            *start = aligned;
            if (lowest) /* what is left before an aligned block is a gap too, and gap i still */
                arena->first_gap = i;
            return true;
        }
        lowest &= end == begin;
        if (lowest)
            arena->first_gap = i;
    }
    return false;
}

static void insert_block(struct arena *arena, size_t index, struct block block)
{
    memmove(&arena->blocks[index + 1], &arena->blocks[index], (arena->count - index) * sizeof block);
    arena->blocks[index] = block;
    ++arena->count;
    arena->used += round_up(block.bytes, MEMORY_ALIGNMENT);
}

int memory_allocate(int device, size_t bytes, void **memory)
{
    return memory_allocate_aligned(device, bytes, MEMORY_ALIGNMENT, memory);
}

int memory_allocate_aligned(int device, size_t bytes, size_t alignment, void **memory)
{
    struct arena *arena;
    size_t index = 0;
    uint64_t start = 0;
    int code = 0;
    TRY(require_arena(device, &arena));
    const uint64_t capacity = (uint64_t)device_memory_capacity();
    const struct block block = {.bytes = bytes};
    pthread_mutex_lock(&arena->lock);
    /* Compared with the capacity first, so that rounding up can't overflow. */
    if (bytes > capacity || round_up(bytes, MEMORY_ALIGNMENT) > capacity - arena->used)
        code = error_set(ERROR_RT_MEMORY_ALLOCATION, __func__,
                         "device %d is out of memory: %llu bytes asked for, %llu of %llu bytes are free", device,
                         (unsigned long long)bytes, (unsigned long long)(capacity - arena->used), (unsigned long long)capacity);
    else if (!grow_list(arena) || !find_gap(arena, extent(&block), alignment, &index, &start))
        code = error_set(ERROR_RT_MEMORY_ALLOCATION, __func__, "device %d: %llu bytes don't fit between the blocks", device,
                         (unsigned long long)bytes);
    else
        insert_block(arena, index, (struct block){start, bytes});
    char *const base = arena->base;
    if (code == 0) {
        unpoison(base + start, bytes);
        poison(base + start + bytes, extent(&block) - bytes);
    }
    pthread_mutex_unlock(&arena->lock);
    TRY(code);
    *memory = base + start;
    use_huge_pages(base + start, bytes);
    return 0;
}

/* Gives back the pages that only held this block. Called with the lock; the block is off the list, `index` is where it was. */
static void return_pages(struct arena *arena, size_t index, struct block block)
{
    const uint64_t before = index ? arena->blocks[index - 1].start + extent(&arena->blocks[index - 1]) : 0;
    const uint64_t behind = index < arena->count ? arena->blocks[index].start : arena->reserved;
    uint64_t first = block.start / PAGE * PAGE, last = round_up(block.start + extent(&block), PAGE);
    if (first < before)
        first = round_up(before, PAGE);
    if (last > behind)
        last = behind / PAGE * PAGE;
    if (first < last)
        fallocate(arena->descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)first, (off_t)(last - first));
}

static bool in_arena(const struct arena *arena, const void *address)
{
    const char *const base = atomic_load_explicit(&arena->base, memory_order_acquire);
    return base && (const char *)address >= base && (const char *)address < base + arena->reserved;
}

int memory_free(void *memory)
{
    const int device = memory_device(memory);
    REQUIRE(device >= 0, ERROR_INVALID_PARAM, "%p is not device memory", memory);
    REQUIRE(in_arena(&arenas[device], memory), ERROR_INVALID_PARAM,
            "%p is mapped memory; aclrtUnmapMem or aclrtIpcMemClose ends it", memory);
    struct arena *const arena = &arenas[device];
    const uint64_t offset = (uint64_t)((char *)memory - arena->base);
    pthread_mutex_lock(&arena->lock);
    const size_t index = upper_bound(arena, offset) - 1; /* wraps to SIZE_MAX when there is no block before */
    const bool found = index < arena->count && arena->blocks[index].start == offset;
    if (found) {
        const struct block block = arena->blocks[index];
        --arena->count;
        memmove(&arena->blocks[index], &arena->blocks[index + 1], (arena->count - index) * sizeof block);
        arena->used -= round_up(block.bytes, MEMORY_ALIGNMENT);
        if (index < arena->first_gap)
            arena->first_gap = index;
        return_pages(arena, index, block);
        poison(arena->base + offset, block.bytes);
    }
    pthread_mutex_unlock(&arena->lock);
    REQUIRE(found, ERROR_INVALID_PARAM, "%p doesn't start a live block of device %d (freed before?)", memory, device);
    return 0;
}

int memory_device(const void *address)
{
    const int count = device_count();
    for (int device = 0; device < count; ++device)
        if (in_arena(&arenas[device], address))
            return device;
    return virtual_device(address);
}

/* Mapped at addresses of its own. */
static int check_virtual(const void *address, size_t bytes, const char *function, const char *role)
{
    const size_t left = virtual_extent(address);
    if (bytes > left)
        return error_set(ERROR_INVALID_PARAM, function,
                         "%s: %zu bytes from %p reach past the end of the mapped memory, which has %zu left", role, bytes, address,
                         left);
    return 0;
}

int memory_check(const void *address, size_t bytes, const char *function, const char *role)
{
    const int device = memory_device(address);
    if (device < 0)
        return error_set(ERROR_INVALID_PARAM, function, "%s: %p is not device memory", role, address);
    struct arena *const arena = &arenas[device];
    if (!in_arena(arena, address))
        return check_virtual(address, bytes, function, role);
    const uint64_t offset = (uint64_t)((const char *)address - arena->base);
    pthread_mutex_lock(&arena->lock);
    const size_t index = upper_bound(arena, offset) - 1;
    const struct block block = index < arena->count ? arena->blocks[index] : (struct block){0, 0};
    pthread_mutex_unlock(&arena->lock);
    if (offset - block.start >= block.bytes)
        return error_set(ERROR_INVALID_PARAM, function, "%s: %p is in no live block of device %d", role, address, device);
    if (bytes > block.bytes - (offset - block.start))
        return error_set(ERROR_INVALID_PARAM, function,
                         "%s: %zu bytes from %p reach past the end of their block, which has %llu left", role, bytes, address,
                         (unsigned long long)(block.bytes - (offset - block.start)));
    return 0;
}

void memory_usage(int device, size_t *free_bytes, size_t *total_bytes)
{
    struct arena *const arena = &arenas[device];
    uint64_t used = 0;
    if (arena->base) {
        pthread_mutex_lock(&arena->lock);
        used = arena->used;
        pthread_mutex_unlock(&arena->lock);
    }
    *total_bytes = (size_t)device_memory_capacity();
    *free_bytes = *total_bytes - used;
}

int memory_arena(int device, struct memory_arena *shared)
{
    struct arena *arena;
    TRY(device_require(device));
    TRY(require_arena(device, &arena));
    *shared = (struct memory_arena){arena->descriptor, arena->base, arena->reserved};
    return 0;
}

/* --- public ------------------------------------------------------------------------------------------------------- */

static int allocate(const char *function, void **devPtr, size_t size)
{
    int device;
    TRY(device_current(&device));
    if (!devPtr)
        return error_set(ERROR_INVALID_PARAM, function, "devPtr is null");
    if (size == 0)
        return error_set(ERROR_INVALID_PARAM, function, "size is 0; at least 1 byte can be allocated");
    return memory_allocate(device, size, devPtr);
}

/* The policies differ in page size and reach only, which mean nothing here. */
aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy) { return allocate(__func__, devPtr, size); }

aclError aclrtMallocAlign32(void **devPtr, size_t size, aclrtMemMallocPolicy policy) { return allocate(__func__, devPtr, size); }

aclError aclrtFree(void *devPtr)
{
    if (fork_happened())
        return 0;
    REQUIRE(devPtr, ERROR_INVALID_PARAM, "devPtr is null");
    return memory_free(devPtr);
}

aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total)
{
    int device;
    TRY(device_current(&device));
    REQUIRE(free && total, ERROR_INVALID_PARAM, "free or total is null");
    REQUIRE((int)attr >= ACL_DDR_MEM && (int)attr <= ACL_MEM_P2P_HUGE1G, ERROR_INVALID_PARAM, "attr is %d; 0 to %d are known",
            (int)attr, ACL_MEM_P2P_HUGE1G);
    const bool ddr = attr == ACL_DDR_MEM || attr == ACL_DDR_MEM_HUGE || attr == ACL_DDR_MEM_NORMAL ||
                     attr == ACL_DDR_MEM_P2P_HUGE || attr == ACL_DDR_MEM_P2P_NORMAL;
    *free = *total = 0; /* the chips of the table have no second kind of memory */
    if (!ddr)
        memory_usage(device, free, total);
    return 0;
}
