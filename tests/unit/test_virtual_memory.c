/* Reserved addresses with physical memory mapped into them, and memory shared with another process. */
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"
#include "check.h"

enum { MIB = 1 << 20, LIMIT = 64 * MIB, PIECE = 2 * MIB };

static size_t free_bytes(void)
{
    size_t available = 0, total = 0;
    CHECK_OK(aclrtGetMemInfo(ACL_HBM_MEM, &available, &total));
    return available;
}

static aclrtPhysicalMemProp properties(void)
{
    return (aclrtPhysicalMemProp){.memAttr = ACL_HBM_MEM_HUGE, .location = {.id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE}};
}

/* Two pieces, side by side, are one piece of device memory for copies. */
static void pieces(void)
{
    const aclrtPhysicalMemProp prop = properties();
    aclrtDrvMemHandle first, second;
    aclrtPtrAttributes attributes;
    char *range, host[256], back[256];
    for (int i = 0; i < 256; ++i)
        host[i] = (char)i;
    CHECK_OK(aclrtReserveMemAddress((void **)&range, 8 * PIECE, 0, NULL, 1));
    CHECK_OK(aclrtMallocPhysical(&first, PIECE, &prop, 0));
    CHECK_OK(aclrtMallocPhysical(&second, PIECE, &prop, 0));
    CHECK_INT(free_bytes(), LIMIT - 2 * PIECE);
    CHECK_FAILS(aclrtMemcpy(range, 256, host, 256, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_INVALID_PARAM, "not device memory");
    CHECK_OK(aclrtMapMem(range + PIECE, PIECE, 0, first, 0));
    CHECK_FAILS(aclrtMemcpy(range + 2 * PIECE - 128, 256, host, 256, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_INVALID_PARAM,
                "128 left");
    CHECK_FAILS(aclrtMapMem(range + PIECE, PIECE, 0, second, 0), ACL_ERROR_RT_PARAM_INVALID, "mapped there already");
    CHECK_OK(aclrtMapMem(range + 2 * PIECE, PIECE, 0, second, 0));
    CHECK_OK(aclrtMemcpy(range + 2 * PIECE - 128, 256, host, 256, ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK_OK(aclrtMemcpy(back, 256, range + 2 * PIECE - 128, 256, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(memcmp(host, back, 256) == 0, "bytes changed on their way");
    CHECK_OK(aclrtPointerGetAttributes(range + 3 * PIECE - 1, &attributes));
    CHECK_INT(attributes.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);

    /* The same memory at a second address; then freed while it is mapped. */
    CHECK_OK(aclrtMapMem(range + 5 * PIECE, PIECE, 0, second, 0));
    CHECK_OK(aclrtMemcpy(back, 128, range + 5 * PIECE, 128, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(memcmp(host + 128, back, 128) == 0, "the second mapping shows other bytes");
    CHECK_OK(aclrtFreePhysical(second));
    CHECK_FAILS(aclrtFreePhysical(second), ACL_ERROR_RT_INVALID_HANDLE, "no physical memory");
    CHECK_OK(aclrtUnmapMem(range + 2 * PIECE));
    CHECK_INT(free_bytes(), LIMIT - 2 * PIECE);
    CHECK_OK(aclrtUnmapMem(range + 5 * PIECE));
    CHECK_INT(free_bytes(), LIMIT - PIECE);
    CHECK_FAILS(aclrtFree(range + PIECE), ACL_ERROR_INVALID_PARAM, "aclrtUnmapMem");
    CHECK_FAILS(aclrtReleaseMemAddress(range), ACL_ERROR_RT_PARAM_INVALID, "still mapped");
    CHECK_OK(aclrtUnmapMem(range + PIECE));
    CHECK_OK(aclrtFreePhysical(first));
    CHECK_OK(aclrtReleaseMemAddress(range));
    CHECK_INT(free_bytes(), LIMIT);
}

static void refusals(void)
{
    aclrtPhysicalMemProp prop = properties();
    aclrtDrvMemHandle handle;
    void *range;
    size_t granularity;
    CHECK_OK(aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &granularity));
    CHECK_INT(granularity, PIECE);
    CHECK_FAILS(aclrtMallocPhysical(&handle, PIECE + 1, &prop, 0), ACL_ERROR_INVALID_PARAM, "multiple of 2097152");
    CHECK_FAILS(aclrtMallocPhysical(&handle, 2 * LIMIT, &prop, 0), ACL_ERROR_RT_MEMORY_ALLOCATION, "out of memory");
    prop.location.type = ACL_MEM_LOCATION_TYPE_HOST;
    CHECK_FAILS(aclrtMallocPhysical(&handle, PIECE, &prop, 0), ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "location type 0");
    prop = properties();
    CHECK_OK(aclrtMallocPhysical(&handle, PIECE, &prop, 0));
    CHECK_OK(aclrtReserveMemAddress(&range, PIECE, 0, NULL, 0));
    CHECK_FAILS(aclrtMapMem((char *)range + PIECE, PIECE, 0, handle, 0), ACL_ERROR_INVALID_PARAM, "aren't inside a reserved range");
    CHECK_FAILS(aclrtMapMem(range, PIECE, 512, handle, 0), ACL_ERROR_INVALID_PARAM, "offset is 512");
    CHECK_FAILS(aclrtUnmapMem(range), ACL_ERROR_INVALID_PARAM, "no mapping starts");
    CHECK_OK(aclrtReleaseMemAddress(range));
    CHECK_FAILS(aclrtReleaseMemAddress(range), ACL_ERROR_INVALID_PARAM, "isn't the start");
    CHECK_OK(aclrtFreePhysical(handle));
}

/* Waits for the event, whose text the environment holds; the first process records it 100 ms later, behind what it writes. */
static void wait_for_the_other(void)
{
    aclrtIpcEventHandle handle = {""};
    aclrtEvent event;
    aclrtStream stream;
    aclrtEventRecordedStatus status;
    strncpy(handle.reserved, getenv("TEST_EVENT"), sizeof handle.reserved - 1);
    CHECK_OK(aclrtIpcOpenEventHandle(handle, &event));
    CHECK_OK(aclrtCreateStream(&stream));
    CHECK_FAILS(aclrtRecordEvent(event, stream), ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "another process records");
    CHECK_OK(aclrtQueryEventStatus(event, &status));
    CHECK_INT(status, ACL_EVENT_RECORDED_STATUS_NOT_READY);
    CHECK_OK(aclrtStreamWaitEvent(stream, event));
    CHECK_OK(aclrtSynchronizeStream(stream));
    CHECK_OK(aclrtSynchronizeEvent(event));
    CHECK_OK(aclrtQueryEventStatus(event, &status));
    CHECK_INT(status, ACL_EVENT_RECORDED_STATUS_COMPLETE);
    CHECK_OK(aclrtDestroyEvent(event));
    CHECK_OK(aclrtDestroyStream(stream));
    handle.reserved[0] = 'x';
    CHECK_FAILS(aclrtIpcOpenEventHandle(handle, &event), ACL_ERROR_INVALID_PARAM, "holds no event");
}

/* In the other process: reads "given" through both ways, writes "taken". */
static int other_process(const char *key, const char *handle_text)
{
    char text[8] = "";
    void *memory, *range;
    aclrtDrvMemHandle handle;
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(1));
    wait_for_the_other();
    CHECK_OK(aclrtIpcMemImportByKey(&memory, key, 0));
    CHECK_OK(aclrtMemcpy(text, 6, memory, 6, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(strcmp(text, "given") == 0, "the key's memory holds \"%s\"", text);
    CHECK_OK(aclrtMemcpy(memory, 6, "taken", 6, ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK_OK(aclrtIpcMemClose(key));
    CHECK_OK(aclrtMemImportFromShareableHandle(strtoull(handle_text, NULL, 10), 1, &handle));
    CHECK_OK(aclrtReserveMemAddress(&range, PIECE, 0, NULL, 0));
    CHECK_OK(aclrtMapMem(range, PIECE, 0, handle, 0));
    CHECK_OK(aclrtMemcpy(text, 6, (char *)range + 1000, 6, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(strcmp(text, "given") == 0, "the handle's memory holds \"%s\"", text);
    CHECK_OK(aclrtMemcpy((char *)range + 1000, 6, "taken", 6, ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK_OK(aclrtUnmapMem(range));
    CHECK_OK(aclrtFreePhysical(handle));
    CHECK_OK(aclrtReleaseMemAddress(range));
    CHECK_OK(aclFinalize());
    return check_result();
}

static void sleep_long(void *argument) { usleep(*(unsigned *)argument); }

static void run_other(const char *key, uint64_t handle)
{
    char text[32], permitted = 0;
    unsigned pause = 400000;
    aclrtIpcEventHandle event_handle;
    aclrtEvent event, plain;
    aclrtStream stream;
    CHECK_OK(aclrtCreateEvent(&plain));
    CHECK_FAILS(aclrtIpcGetEventHandle(plain, &event_handle), ACL_ERROR_INVALID_PARAM, "without ACL_EVENT_IPC");
    CHECK_OK(aclrtDestroyEvent(plain));
    CHECK_OK(aclrtCreateStream(&stream));
    CHECK_OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC));
    CHECK_OK(aclrtLaunchHostFunc(stream, sleep_long, &pause));
    CHECK_OK(aclrtRecordEvent(event, stream)); /* under way when the handle is made */
    CHECK_OK(aclrtIpcGetEventHandle(event, &event_handle));
    setenv("TEST_EVENT", event_handle.reserved, 1);
    int status = -1, gate[2];
    CHECK_INT(pipe(gate), 0);
    snprintf(text, sizeof text, "%llu", (unsigned long long)handle);
    const pid_t child = fork();
    if (child == 0) {
        if (read(gate[0], &permitted, 1) == 1)
            execl("/proc/self/exe", "test_virtual_memory", key, text, (char *)NULL);
        _exit(127);
    }
    int32_t pid = (int32_t)child;
    CHECK_OK(aclrtIpcMemSetImportPid(key, &pid, 1));
    CHECK_OK(aclrtMemSetPidToShareableHandle(handle, &pid, 1));
    CHECK_INT(write(gate[1], "x", 1), 1);
    waitpid(child, &status, 0);
    CHECK_INT(status, 0);
    CHECK_OK(aclrtDestroyEvent(event));
    CHECK_OK(aclrtDestroyStream(stream));
}

static void sharing(void)
{
    const aclrtPhysicalMemProp prop = properties();
    char *memory, *range, key[65], text[8] = "";
    aclrtDrvMemHandle physical;
    uint64_t handle;
    CHECK_OK(aclrtMalloc((void **)&memory, 3000, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtMemcpy(memory + 512, 6, "given", 6, ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK_FAILS(aclrtIpcMemGetExportKey(memory, 4000, key, sizeof key, 0), ACL_ERROR_INVALID_PARAM, "past the end");
    CHECK_OK(aclrtIpcMemGetExportKey(memory + 512, 1000, key, sizeof key, 0));
    CHECK_OK(aclrtReserveMemAddress((void **)&range, PIECE, 0, NULL, 0));
    CHECK_OK(aclrtMallocPhysical(&physical, PIECE, &prop, 0));
    CHECK_OK(aclrtMapMem(range, PIECE, 0, physical, 0));
    CHECK_OK(aclrtMemcpy(range + 1000, 6, "given", 6, ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK_OK(aclrtMemExportToShareableHandle(physical, ACL_MEM_HANDLE_TYPE_NONE, 0, &handle));
    void *mine;
    CHECK_FAILS(aclrtIpcMemImportByKey(&mine, key, 0), ACL_ERROR_INVALID_PARAM, "didn't name process");
    run_other(key, handle);
    CHECK_OK(aclrtMemcpy(text, 6, memory + 512, 6, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(strcmp(text, "taken") == 0, "the other process wrote \"%s\"", text);
    CHECK_OK(aclrtMemcpy(text, 6, range + 1000, 6, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(strcmp(text, "taken") == 0, "the other process wrote \"%s\"", text);
    CHECK_OK(aclrtIpcMemClose(key));
    CHECK_FAILS(aclrtIpcMemClose(key), ACL_ERROR_INVALID_PARAM, "neither exported nor imported");
    CHECK_FAILS(aclrtIpcMemImportByKey(&mine, key, 0), ACL_ERROR_INVALID_PARAM, "close the export");
    CHECK_FAILS(aclrtIpcMemImportByKey(&mine, "hello", 0), ACL_ERROR_INVALID_PARAM, "\"hello\"");
    CHECK_OK(aclrtUnmapMem(range));
    CHECK_OK(aclrtFreePhysical(physical));
    CHECK_OK(aclrtReleaseMemAddress(range));
    CHECK_OK(aclrtFree(memory));
}

int main(int count, char **words)
{
    setenv("NPU_MEMORY_LIMIT", "64M", 1);
    if (count == 3)
        return other_process(words[1], words[2]);
    void *range;
    CHECK_FAILS(aclrtReserveMemAddress(&range, PIECE, 0, NULL, 0), ACL_ERROR_UNINITIALIZE, "aclInit");
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    pieces();
    refusals();
    sharing();
    CHECK_INT(free_bytes(), LIMIT);
    CHECK_OK(aclFinalize());
    return check_result();
}
