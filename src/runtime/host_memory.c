/* Host memory that asynchronous copies may use: allocated here, or registered. See memory.h.
 *
 * `lock` guards the list (sorted by address, no two overlap) and all fields of its blocks. A block that is freed while copies
 * use it leaves the list at once and is given back by the last of them. Memory is private: a forked child has its own copy. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acl/acl.h"
#include "base/error.h"
#include "runtime/fork.h"
#include "runtime/device.h"
#include "runtime/init.h"
#include "runtime/memory.h"
#include "runtime/stream.h"

struct host_block {
    char *start;
    size_t bytes;
    bool owned;  /* allocated here, else registered */
    bool doomed; /* off the list; the last copy frees it */
    int users;   /* copies under way */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t unused = PTHREAD_COND_INITIALIZER; /* a registered block lost its last user */
static struct host_block **blocks;
static size_t count, room;

/* Index of the first block that starts behind the address. */
static size_t upper_bound(const char *address)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (blocks[middle]->start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct host_block *find(const void *address)
{
    const size_t index = upper_bound(address);
    struct host_block *const block = index ? blocks[index - 1] : NULL;
    return block && (size_t)((const char *)address - block->start) < block->bytes ? block : NULL;
}

static void give_back(struct host_block *block)
{
    if (block->owned)
        free(block->start);
    free(block);
}

struct host_block *host_block_acquire(const void *address, size_t bytes)
{
    pthread_mutex_lock(&lock);
    struct host_block *block = find(address);
    if (block && bytes > block->bytes - (size_t)((const char *)address - block->start))
        block = NULL;
    if (block)
        ++block->users;
    pthread_mutex_unlock(&lock);
    return block;
}

void host_block_release(struct host_block *block)
{
    pthread_mutex_lock(&lock);
    const bool last = --block->users == 0;
    const bool doomed = block->doomed;
    if (last)
        pthread_cond_broadcast(&unused);
    pthread_mutex_unlock(&lock);
    if (last && doomed)
        give_back(block);
}

/* Called with the lock. */
static bool grow_list(void)
{
    if (count < room)
        return true;
    const size_t wider = room ? 2 * room : 64;
    struct host_block **const list = realloc(blocks, wider * sizeof *list);
    if (list) {
        blocks = list;
        room = wider;
    }
    return list != NULL;
}

/* Called with the lock: puts a block for the memory into the list. */
static int insert(const char *function, void *start, size_t bytes, bool owned)
{
    const size_t index = upper_bound(start);
    const bool overlaps = (index && blocks[index - 1]->start + blocks[index - 1]->bytes > (char *)start) ||
                          (index < count && blocks[index]->start < (char *)start + bytes);
    if (overlaps)
        return error_set(ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED, function,
                         "the memory from %p, %zu bytes, overlaps registered memory", start, bytes);
    if (!grow_list())
        return error_set(ERROR_BAD_ALLOC, function, "out of host memory");
    memmove(&blocks[index + 1], &blocks[index], (count - index) * sizeof *blocks);
    blocks[index] = calloc(1, sizeof *blocks[index]);
    if (!blocks[index]) {
        memmove(&blocks[index], &blocks[index + 1], (count - index) * sizeof *blocks);
        return error_set(ERROR_BAD_ALLOC, function, "out of host memory");
    }
    *blocks[index] = (struct host_block){.start = start, .bytes = bytes, .owned = owned};
    ++count;
    return 0;
}

static int add(const char *function, void *start, size_t bytes, bool owned)
{
    pthread_mutex_lock(&lock);
    const int code = insert(function, start, bytes, owned);
    pthread_mutex_unlock(&lock);
    return code;
}

/* Called with the lock: the block that starts there, taken off the list; NULL: none of that kind. */
static struct host_block *take(const void *start, bool owned)
{
    struct host_block *const block = find(start);
    if (!block || block->start != start || block->owned != owned)
        return NULL;
    const size_t index = upper_bound(start) - 1;
    --count;
    memmove(&blocks[index], &blocks[index + 1], (count - index) * sizeof *blocks);
    return block;
}

/* --- public ------------------------------------------------------------------------------------------------------- */

static int allocate(const char *function, void **hostPtr, size_t size)
{
    if (fork_happened())
        return fork_refuse(function);
    TRY(runtime_require(function));
    if (!hostPtr)
        return error_set(ERROR_INVALID_PARAM, function, "the pointer for the address is null");
    if (size == 0)
        return error_set(ERROR_INVALID_PARAM, function, "size is 0; at least 1 byte can be allocated");
    void *memory = NULL;
    if (posix_memalign(&memory, size < 4096 ? 64 : 4096, size) != 0)
        return error_set(ERROR_RT_MEMORY_ALLOCATION, function, "%zu bytes of host memory aren't there", size);
    const int code = add(function, memory, size, true);
    if (code != 0) {
        free(memory);
        return code;
    }
    *hostPtr = memory;
    return 0;
}

aclError aclrtMallocHost(void **hostPtr, size_t size) { return allocate(__func__, hostPtr, size); }

/* Attributes: whose the memory is (for the books), which device it is near, whether devices see it at the same address. */
aclError aclrtMallocHostWithCfg(void **ptr, uint64_t size, aclrtMallocConfig *cfg)
{
    for (size_t i = 0; cfg && cfg->attrs && i < cfg->numAttrs; ++i)
        REQUIRE(cfg->attrs[i].attr >= ACL_RT_MEM_ATTR_MODULE_ID && cfg->attrs[i].attr <= ACL_RT_MEM_ATTR_VA_FLAG,
                ERROR_INVALID_PARAM, "attribute %zu is %d; 1 (module), 2 (device) and 3 (same address) are known", i,
                (int)cfg->attrs[i].attr);
    return allocate(__func__, ptr, (size_t)size);
}

aclError aclrtFreeHost(void *hostPtr)
{
    if (fork_happened())
        return 0;
    REQUIRE(hostPtr, ERROR_INVALID_PARAM, "hostPtr is null");
    pthread_mutex_lock(&lock);
    struct host_block *const block = take(hostPtr, true);
    const bool busy = block && block->users > 0;
    if (busy)
        block->doomed = true;
    pthread_mutex_unlock(&lock);
    REQUIRE(block, ERROR_INVALID_PARAM, "%p wasn't allocated by aclrtMallocHost, or was freed before", hostPtr);
    if (!busy)
        give_back(block);
    return 0;
}

static int host_register(const char *function, void *start, uint64_t bytes)
{
    if (fork_happened())
        return fork_refuse(function);
    TRY(runtime_require(function));
    if (!start || bytes == 0)
        return error_set(ERROR_INVALID_PARAM, function, "ptr is %p, size is %llu; some memory is needed", start,
                         (unsigned long long)bytes);
    if (memory_device(start) >= 0)
        return error_set(ERROR_INVALID_PARAM, function, "%p is device memory", start);
    return add(function, start, bytes, false);
}

/* Device code sees host memory at the same address. */
aclError aclrtHostRegister(void *ptr, uint64_t size, aclrtHostRegisterType type, void **devPtr)
{
    REQUIRE(type == ACL_HOST_REGISTER_MAPPED, ERROR_RT_FEATURE_UNSUPPORTED,
            "type %d isn't available; ACL_HOST_REGISTER_MAPPED (0) is", (int)type);
    TRY(host_register(__func__, ptr, size));
    if (devPtr)
        *devPtr = ptr;
    return 0;
}

aclError aclrtHostRegisterV2(void *ptr, uint64_t size, uint32_t flag)
{
    REQUIRE((flag & ~(uint32_t)(ACL_HOST_REG_MAPPED | ACL_HOST_REG_PINNED)) == 0, ERROR_RT_FEATURE_UNSUPPORTED,
            "flag is 0x%x; ACL_HOST_REG_MAPPED and ACL_HOST_REG_PINNED are available", flag);
    return host_register(__func__, ptr, size);
}

/* The caller may free the memory afterwards, so copies that use it are waited for. */
aclError aclrtHostUnregister(void *ptr)
{
    if (fork_happened())
        return 0;
    REQUIRE(!stream_current_executor(), ERROR_RT_PARAM_INVALID,
            "a function that runs in a stream can't unregister memory: it might wait for itself");
    pthread_mutex_lock(&lock);
    struct host_block *const block = ptr ? take(ptr, false) : NULL;
    while (block && block->users > 0)
        pthread_cond_wait(&unused, &lock);
    pthread_mutex_unlock(&lock);
    REQUIRE(block, ACL_ERROR_HOST_MEMORY_NOT_REGISTERED, "%p isn't the start of registered memory", ptr);
    free(block);
    return 0;
}

aclError aclrtPointerGetAttributes(const void *ptr, aclrtPtrAttributes *attributes)
{
    REFUSE_AFTER_FORK();
    REQUIRE(attributes, ERROR_INVALID_PARAM, "attributes is null");
    memset(attributes, 0, sizeof *attributes);
    attributes->pageSize = (uint32_t)sysconf(_SC_PAGESIZE);
    const int device = memory_device(ptr);
    if (device >= 0) {
        attributes->location = (aclrtMemLocation){(uint32_t)device, ACL_MEM_LOCATION_TYPE_DEVICE};
        return 0;
    }
    pthread_mutex_lock(&lock);
    const bool known = find(ptr) != NULL;
    pthread_mutex_unlock(&lock);
    attributes->location.type = known ? ACL_MEM_LOCATION_TYPE_HOST : ACL_MEM_LOCATION_TYPE_UNREGISTERED;
    return 0;
}
