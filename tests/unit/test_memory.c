/* Device and host memory: blocks, limits, bounds of copies, asynchronous copies, and what is given back. */
#include <pthread.h>

#include "acl/acl.h"
#include "check.h"

enum { MIB = 1 << 20, LIMIT = 64 * MIB };

static size_t free_bytes(void)
{
    size_t available = 0, total = 0;
    CHECK_OK(aclrtGetMemInfo(ACL_HBM_MEM, &available, &total));
    CHECK_INT(total, LIMIT);
    return available;
}

/* Blocks that hold huge pages, at odd distances: neighbours that come, go and are collapsed leave each other's bytes alone. */
static void large_blocks(void)
{
    enum { COUNT = 6 };
    char *memory[COUNT] = {0};
    size_t sizes[COUNT];
    uint64_t state = 1;
    for (int round = 0; round < 120; ++round) {
        const int i = (int)(check_random(&state) % COUNT);
        if (memory[i]) {
            size_t wrong = 0;
            for (size_t byte = 0; byte + 1 < sizes[i]; byte += 509)
                wrong += memory[i][byte] != (char)(i + (int)(byte % 113));
            CHECK(wrong == 0 && memory[i][sizes[i] - 1] == 77, "%zu bytes of block %d were overwritten", wrong, i);
            CHECK_OK(aclrtFree(memory[i]));
            memory[i] = NULL;
            continue;
        }
        sizes[i] = 4096 + check_random(&state) % (9 * MIB);
        CHECK_OK(aclrtMalloc((void **)&memory[i], sizes[i], ACL_MEM_MALLOC_HUGE_FIRST));
        for (size_t byte = 0; byte + 1 < sizes[i]; byte += 509)
            memory[i][byte] = (char)(i + (int)(byte % 113));
        memory[i][sizes[i] - 1] = 77;
    }
    for (int i = 0; i < COUNT; ++i)
        if (memory[i])
            CHECK_OK(aclrtFree(memory[i]));
    CHECK_INT(free_bytes(), LIMIT);
}

static void blocks(void)
{
    enum { COUNT = 200 };
    char *memory[COUNT] = {0};
    size_t sizes[COUNT];
    uint64_t state = 1;
    for (int round = 0; round < 5000; ++round) {
        const int i = (int)(check_random(&state) % COUNT);
        if (memory[i]) {
            CHECK(memory[i][0] == (char)i && memory[i][sizes[i] - 1] == (char)~i, "block %d was overwritten", i);
            CHECK_OK(aclrtFree(memory[i]));
            memory[i] = NULL;
            continue;
        }
        sizes[i] = 2 + check_random(&state) % (check_random(&state) % 2 ? 1000 : 100000);
        CHECK_OK(aclrtMalloc((void **)&memory[i], sizes[i], ACL_MEM_MALLOC_HUGE_FIRST));
        CHECK((uintptr_t)memory[i] % 512 == 0, "%p isn't aligned", (void *)memory[i]);
        memory[i][0] = (char)i;
        memory[i][sizes[i] - 1] = (char)~i;
    }
    for (int i = 0; i < COUNT; ++i)
        if (memory[i])
            CHECK_OK(aclrtFree(memory[i]));
    CHECK_INT(free_bytes(), LIMIT);
}

static void limits(void)
{
    void *all[LIMIT / MIB + 1], *one = NULL;
    int count = 0;
    for (; count < LIMIT / MIB; ++count) {
        CHECK_OK(aclrtMalloc(&all[count], MIB, ACL_MEM_MALLOC_NORMAL_ONLY));
        memset(all[count], 1, MIB);
    }
    CHECK_INT(free_bytes(), 0);
    CHECK_FAILS(aclrtMalloc(&one, 1, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_MEMORY_ALLOCATION,
                "out of memory: 1 bytes asked for, 0 of 67108864 bytes are free");
    CHECK(one == NULL, "an output of a failed call is untouched");
    CHECK_OK(aclrtFree(all[7]));
    CHECK_FAILS(aclrtFree(all[7]), ACL_ERROR_INVALID_PARAM, "freed before");
    CHECK_FAILS(aclrtMalloc(&one, MIB + 1, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_MEMORY_ALLOCATION, "1048576 of");
    CHECK_OK(aclrtMalloc(&all[7], MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    while (count > 0)
        CHECK_OK(aclrtFree(all[--count]));
    CHECK_FAILS(aclrtMalloc(&one, SIZE_MAX, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_MEMORY_ALLOCATION, "out of memory");
    CHECK_FAILS(aclrtMalloc(&one, 0, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM, "size is 0");
    CHECK_FAILS(aclrtMalloc(NULL, 8, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM, "null");
    CHECK_FAILS(aclrtFree(NULL), ACL_ERROR_INVALID_PARAM, "null");
    CHECK_FAILS(aclrtFree(&one), ACL_ERROR_INVALID_PARAM, "not device memory");
}

static void bounds(void)
{
    char *device, *other, host[300] = {0};
    CHECK_OK(aclrtMalloc((void **)&device, 300, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtMalloc((void **)&other, 300, ACL_MEM_MALLOC_HUGE_FIRST));
    for (int i = 0; i < 300; ++i)
        host[i] = (char)i;
    CHECK_OK(aclrtMemcpy(device, 300, host, 300, ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK_OK(aclrtMemcpy(other + 100, 200, device + 100, 200, ACL_MEMCPY_DEVICE_TO_DEVICE));
    CHECK_OK(aclrtMemset(other, 300, 5, 100));
    memset(host, 0, sizeof host);
    CHECK_OK(aclrtMemcpy(host, 300, other, 300, ACL_MEMCPY_DEFAULT));
    for (int i = 0; i < 300; ++i)
        CHECK_INT(host[i], i < 100 ? 5 : (char)i);
    CHECK_OK(aclrtMemcpy(host, 0, other, 0, ACL_MEMCPY_DEVICE_TO_HOST));

    CHECK_FAILS(aclrtMemcpy(device, 299, host, 300, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_INVALID_PARAM, "destMax only 299");
    CHECK_FAILS(aclrtMemcpy(device + 1, 300, host, 300, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_INVALID_PARAM, "has 299 left");
    CHECK_FAILS(aclrtMemcpy(device + 300, 1, host, 1, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_INVALID_PARAM, "no live block");
    CHECK_FAILS(aclrtMemcpy(host, 8, host + 8, 8, ACL_MEMCPY_DEVICE_TO_HOST), ACL_ERROR_INVALID_PARAM, "src: ");
    CHECK_FAILS(aclrtMemcpy(device, 8, other, 8, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_INVALID_PARAM, "says host");
    CHECK_FAILS(aclrtMemcpy(NULL, 8, other, 8, ACL_MEMCPY_DEVICE_TO_HOST), ACL_ERROR_INVALID_PARAM, "dst is null");
    CHECK_FAILS(aclrtMemcpy(host, 8, other, 8, (aclrtMemcpyKind)9), ACL_ERROR_INVALID_PARAM, "kind is 9");
    CHECK_FAILS(aclrtMemset(device, 301, 0, 301), ACL_ERROR_INVALID_PARAM, "has 300 left");
    CHECK_OK(aclrtFree(other));
    CHECK_FAILS(aclrtMemset(other, 300, 0, 300), ACL_ERROR_INVALID_PARAM, "no live block");
    CHECK_FAILS(aclrtMemcpyAsync(host, 300, other, 300, ACL_MEMCPY_DEVICE_TO_HOST, NULL), ACL_ERROR_INVALID_PARAM, "no live block");
    CHECK_OK(aclrtFree(device));
}

static void host_memory(void)
{
    char *pinned, own[1000];
    void *seen = NULL;
    aclrtPtrAttributes attributes;
    CHECK_OK(aclrtMallocHost((void **)&pinned, 100000));
    CHECK_OK(aclrtPointerGetAttributes(pinned + 99999, &attributes));
    CHECK_INT(attributes.location.type, ACL_MEM_LOCATION_TYPE_HOST);
    CHECK_OK(aclrtPointerGetAttributes(own, &attributes));
    CHECK_INT(attributes.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
    CHECK_OK(aclrtHostRegister(own, sizeof own, ACL_HOST_REGISTER_MAPPED, &seen));
    CHECK(seen == own, "%p, expected %p", seen, (void *)own);
    CHECK_OK(aclrtPointerGetAttributes(own + 999, &attributes));
    CHECK_INT(attributes.location.type, ACL_MEM_LOCATION_TYPE_HOST);
    CHECK_FAILS(aclrtHostRegisterV2(own + 10, 10, ACL_HOST_REG_PINNED), ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "overlaps");
    CHECK_FAILS(aclrtFreeHost(own), ACL_ERROR_INVALID_PARAM, "aclrtMallocHost");
    CHECK_FAILS(aclrtHostUnregister(pinned), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED, "registered");
    CHECK_OK(aclrtHostUnregister(own));
    CHECK_FAILS(aclrtHostUnregister(own), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED, "registered");
    CHECK_OK(aclrtFreeHost(pinned));
    CHECK_FAILS(aclrtFreeHost(pinned), ACL_ERROR_INVALID_PARAM, "freed before");
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void pass_gate(void *unused)
{
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
}

/* Copies wait behind a closed gate while their host memory is changed, freed and unregistered. */
static void asynchronous(void)
{
    enum { BYTES = 3 * MIB };
    char *device, *pinned, *result, *pageable = malloc(BYTES);
    aclrtStream stream;
    CHECK_OK(aclrtCreateStream(&stream));
    CHECK_OK(aclrtMalloc((void **)&device, 3 * BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtMallocHost((void **)&pinned, BYTES));
    CHECK_OK(aclrtMallocHost((void **)&result, 3 * BYTES));
    memset(pinned, 1, BYTES);
    memset(pageable, 2, BYTES);

    pthread_mutex_lock(&gate);
    CHECK_OK(aclrtLaunchHostFunc(stream, pass_gate, NULL));
    CHECK_OK(aclrtMemcpyAsync(device, BYTES, pinned, BYTES, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    CHECK_OK(aclrtMemcpyAsync(device + BYTES, BYTES, pageable, BYTES, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    CHECK_OK(aclrtMemsetAsync(device + 2 * BYTES, BYTES, 3, BYTES, stream));
    CHECK_OK(aclrtMemcpyAsync(result, 3 * BYTES, device, 3 * BYTES, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    memset(pageable, 9, BYTES); /* was read already */
    free(pageable);
    CHECK_OK(aclrtFreeHost(pinned)); /* lives until the copy is done */
    aclrtStreamStatus status;
    CHECK_OK(aclrtStreamQuery(stream, &status));
    CHECK_INT(status, ACL_STREAM_STATUS_NOT_READY);
    pthread_mutex_unlock(&gate);
    CHECK_OK(aclrtSynchronizeStream(stream));
    for (int i = 0; i < 3; ++i)
        CHECK(result[i * BYTES] == i + 1 && result[(i + 1) * BYTES - 1] == i + 1, "part %d is %d", i, result[i * BYTES]);
    char host = 0;
    CHECK_OK(aclrtMemcpyAsync(&host, 1, device, 1, ACL_MEMCPY_DEVICE_TO_HOST, stream)); /* pageable: written on return */
    CHECK_INT(host, 1);
    CHECK_OK(aclrtFreeHost(result));
    CHECK_OK(aclrtFree(device));
    CHECK_OK(aclrtDestroyStream(stream));
}

int main(void)
{
    setenv("NPU_MEMORY_LIMIT", "64M", 1);
    void *memory;
    CHECK_FAILS(aclrtMallocHost(&memory, 8), ACL_ERROR_UNINITIALIZE, "aclInit");
    CHECK_OK(aclInit(NULL));
    CHECK_FAILS(aclrtMalloc(&memory, 8, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_CONTEXT_NULL, "no device");
    CHECK_OK(aclrtSetDevice(1));
    blocks();
    large_blocks();
    limits();
    bounds();
    host_memory();
    asynchronous();
    CHECK_INT(free_bytes(), LIMIT);
    CHECK_OK(aclFinalize());
    return check_result();
}
