/* Device memory shared with other processes of the same user. See acl/acl_rt.h.
 *
 * An export is a small anonymous file with a record: which file holds the memory, where in it, and who may. The key that travels to the
 * other process names the exporting process and that file; the importer opens both through /proc/<pid>/fd and maps the memory. The
 * kernel checks that both processes are one user's; the list of processes is checked by the importing library. Nothing is left behind
 * when a process dies, and imported memory stays valid when its exporter ends. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "acl/acl_rt.h"
#include "base/error.h"
#include "runtime/device.h"
#include "runtime/fork.h"
#include "runtime/init.h"
#include "runtime/memory.h"
#include "runtime/virtual_memory.h"

enum { PIDS_MAX = 64, KEY_BYTES = 65, RECORD_MAGIC = 0x4e505558 };

/* The contents of an export's file. */
struct record {
    uint32_t magic;
    int32_t device;     /* number among all of the machine */
    int32_t descriptor; /* of the memory's file in the exporting process */
    int32_t pid_count;  /* -1: every process may */
    uint64_t offset, bytes;
    int32_t pids[PIDS_MAX];
};

/* What this process exported or imported by key; sharing_lock. */
struct share {
    struct share *next;
    char key[KEY_BYTES];
    int record_file;         /* exported; else -1 */
    void *address;           /* imported; else NULL */
    struct physical *memory; /* imported */
};

static pthread_mutex_t sharing_lock = PTHREAD_MUTEX_INITIALIZER;
static struct share *shares;

static int write_record(const char *function, int file, const struct record *record)
{
    if (pwrite(file, record, sizeof *record, 0) != (ssize_t)sizeof *record)
        return error_set(ERROR_INTERNAL, function, "the export's record couldn't be written: %s", strerror(errno));
    return 0;
}

/* The descriptor of a new record's file, in *file. */
static int export_record(const char *function, const struct record *record, int *file)
{
    *file = memfd_create("npu-export", MFD_CLOEXEC);
    if (*file < 0)
        return error_set(ERROR_INTERNAL, function, "no file for the export: %s", strerror(errno));
    const int code = write_record(function, *file, record);
    if (code != 0)
        close(*file);
    return code;
}

static int open_of_process(const char *function, int pid, int descriptor, int *opened)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, descriptor);
    *opened = open(path, O_RDWR | O_CLOEXEC);
    if (*opened < 0)
        return error_set(ERROR_INVALID_PARAM, function,
                         "the memory of process %d can't be opened (%s); did it end, or close the export?", pid, strerror(errno));
    return 0;
}

static int read_record(const char *function, int pid, int descriptor, struct record *record)
{
    int file;
    TRY(open_of_process(function, pid, descriptor, &file));
    const bool whole = pread(file, record, sizeof *record, 0) == (ssize_t)sizeof *record && record->magic == RECORD_MAGIC;
    close(file);
    return whole ? 0 : error_set(ERROR_INVALID_PARAM, function, "process %d exported nothing under this key", pid);
}

static int check_permission(const char *function, const struct record *record)
{
    bool allowed = record->pid_count < 0;
    for (int i = 0; i < record->pid_count && i < PIDS_MAX; ++i)
        allowed |= record->pids[i] == (int32_t)getpid();
    if (!allowed)
        return error_set(ERROR_INVALID_PARAM, function, "the exporting process didn't name process %d among those that may import",
                         (int)getpid());
    return 0;
}

static int import_memory(const char *function, int pid, int descriptor, int device, struct physical **memory)
{
    struct record record;
    int file;
    TRY(read_record(function, pid, descriptor, &record));
    TRY(check_permission(function, &record));
    TRY(open_of_process(function, pid, record.descriptor, &file));
    for (int i = 0; device < 0 && i < device_count(); ++i)
        if (device_physical(i) == record.device)
            device = i;
    return physical_import(device < 0 ? 0 : device, file, record.offset, record.bytes, memory);
}

static int allow(const char *function, int file, const int32_t *pids, size_t count)
{
    struct record record;
    if (!pids || count == 0 || count > PIDS_MAX)
        return error_set(ERROR_INVALID_PARAM, function, "%zu processes at %p; 1 to %d can be named", count, (const void *)pids,
                         PIDS_MAX);
    if (pread(file, &record, sizeof record, 0) != (ssize_t)sizeof record || record.magic != RECORD_MAGIC)
        return error_set(ERROR_INVALID_PARAM, function, "this process exported nothing under this key");
    if (record.pid_count < 0)
        return 0;
    if (record.pid_count + (int)count > PIDS_MAX)
        return error_set(ERROR_INVALID_PARAM, function, "%d processes are named already; %d fit", record.pid_count, PIDS_MAX);
    memcpy(&record.pids[record.pid_count], pids, count * sizeof *pids);
    record.pid_count += (int32_t)count;
    return write_record(function, file, &record);
}

/* --- handles ------------------------------------------------------------------------------------------------------- */

aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle, aclrtMemHandleType handleType, uint64_t flags,
                                         uint64_t *shareableHandle)
{
    int file;
    REFUSE_AFTER_FORK();
    const struct physical *const physical = physical_find(handle);
    REQUIRE(shareableHandle, ERROR_INVALID_PARAM, "shareableHandle is null");
    REQUIRE(physical, ERROR_RT_INVALID_HANDLE, "%p is no physical memory (freed, or never allocated)", handle);
    REQUIRE(handleType == ACL_MEM_HANDLE_TYPE_NONE, ERROR_RT_FEATURE_UNSUPPORTED, "handleType %d isn't available; 0 is",
            (int)handleType);
    REQUIRE(flags <= ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION, ERROR_INVALID_PARAM, "flags is %llu; 0 and 1 are known",
            (unsigned long long)flags);
    const struct record record = {.magic = RECORD_MAGIC,
                                  .device = device_physical(physical->device),
                                  .descriptor = physical->descriptor,
                                  .pid_count = flags ? -1 : 0,
                                  .offset = physical->offset,
                                  .bytes = physical->bytes};
    TRY(export_record(__func__, &record, &file));
    *shareableHandle = (uint64_t)getpid() << 32 | (uint32_t)file;
    return 0;
}

aclError aclrtMemSetPidToShareableHandle(uint64_t shareableHandle, int32_t *pid, size_t pidNum)
{
    REQUIRE((int)(shareableHandle >> 32) == (int)getpid(), ERROR_INVALID_PARAM, "this process didn't export handle 0x%llx",
            (unsigned long long)shareableHandle);
    return allow(__func__, (int)(uint32_t)shareableHandle, pid, pidNum);
}

aclError aclrtMemImportFromShareableHandle(uint64_t shareableHandle, int32_t deviceId, aclrtDrvMemHandle *handle)
{
    struct physical *memory;
    REFUSE_AFTER_FORK();
    TRY(runtime_require(__func__));
    TRY(device_require(deviceId));
    REQUIRE(handle, ERROR_INVALID_PARAM, "handle is null");
    TRY(import_memory(__func__, (int)(shareableHandle >> 32), (int)(uint32_t)shareableHandle, deviceId, &memory));
    *handle = memory;
    return 0;
}

/* --- keys ----------------------------------------------------------------------------------------------------------- */

static int keep(const char *function, struct share share)
{
    struct share *const kept = malloc(sizeof *kept);
    if (!kept)
        return error_set(ERROR_BAD_ALLOC, function, "out of host memory");
    *kept = share;
    pthread_mutex_lock(&sharing_lock);
    kept->next = shares;
    shares = kept;
    pthread_mutex_unlock(&sharing_lock);
    return 0;
}

static int split_key(const char *function, const char *key, int *pid, int *file)
{
    if (!key || sscanf(key, "npu-%d-%d", pid, file) != 2)
        return error_set(ERROR_INVALID_PARAM, function, "key is \"%.64s\"; aclrtIpcMemGetExportKey makes keys",
                         key ? key : "(null)");
    return 0;
}

aclError aclrtIpcMemGetExportKey(void *devPtr, size_t size, char *key, size_t len, uint64_t flags)
{
    struct memory_arena arena;
    struct share share = {.record_file = -1};
    REFUSE_AFTER_FORK();
    REQUIRE(key && len >= KEY_BYTES, ERROR_INVALID_PARAM, "key is %p, len %zu; a key takes %d bytes", (void *)key, len, KEY_BYTES);
    REQUIRE(flags <= ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION, ERROR_INVALID_PARAM, "flags is %llu; 0 and 1 are known",
            (unsigned long long)flags);
    REQUIRE(size > 0, ERROR_INVALID_PARAM, "size is 0");
    TRY(memory_check(devPtr, size, __func__, "devPtr"));
    const int device = memory_device(devPtr);
    REQUIRE(virtual_device(devPtr) < 0, ERROR_RT_FEATURE_UNSUPPORTED, "%p is mapped memory; export its physical memory's handle",
            devPtr);
    TRY(memory_arena(device, &arena));
    const struct record record = {.magic = RECORD_MAGIC,
                                  .device = device_physical(device),
                                  .descriptor = arena.descriptor,
                                  .pid_count = flags ? -1 : 0,
                                  .offset = (uint64_t)((char *)devPtr - arena.base),
                                  .bytes = size};
    TRY(export_record(__func__, &record, &share.record_file));
    snprintf(share.key, sizeof share.key, "npu-%d-%d", (int)getpid(), share.record_file);
    TRY(keep(__func__, share));
    memset(key, 0, len);
    memcpy(key, share.key, KEY_BYTES);
    return 0;
}

aclError aclrtIpcMemSetImportPid(const char *key, int32_t *pid, size_t num)
{
    int exporter, file;
    TRY(split_key(__func__, key, &exporter, &file));
    REQUIRE(exporter == (int)getpid(), ERROR_INVALID_PARAM, "process %d exported this key, not this one", exporter);
    return allow(__func__, file, pid, num);
}

aclError aclrtIpcMemImportByKey(void **devPtr, const char *key, uint64_t flags)
{
    int pid, file;
    struct share share = {.record_file = -1};
    REFUSE_AFTER_FORK();
    TRY(runtime_require(__func__));
    REQUIRE(devPtr, ERROR_INVALID_PARAM, "devPtr is null");
    REQUIRE(flags <= ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS, ERROR_INVALID_PARAM, "flags is %llu; 0 and 1 are known",
            (unsigned long long)flags);
    TRY(split_key(__func__, key, &pid, &file));
    TRY(import_memory(__func__, pid, file, -1, &share.memory));
    int code = virtual_map_anywhere(share.memory, &share.address);
    if (code == 0) {
        snprintf(share.key, sizeof share.key, "%s", key);
        code = keep(__func__, share);
        if (code != 0)
            virtual_unmap(share.address);
    }
    if (code != 0)
        aclrtFreePhysical(share.memory);
    else
        *devPtr = share.address;
    return code;
}

aclError aclrtIpcMemClose(const char *key)
{
    if (fork_happened())
        return 0;
    REQUIRE(key, ERROR_INVALID_PARAM, "key is null");
    pthread_mutex_lock(&sharing_lock);
    struct share **link = &shares;
    while (*link && strncmp((*link)->key, key, KEY_BYTES) != 0)
        link = &(*link)->next;
    struct share *const share = *link;
    if (share)
        *link = share->next;
    pthread_mutex_unlock(&sharing_lock);
    REQUIRE(share, ERROR_INVALID_PARAM, "this process neither exported nor imported the key \"%.64s\"", key);
    if (share->record_file >= 0)
        close(share->record_file);
    if (share->address) {
        virtual_unmap(share->address);
        aclrtFreePhysical(share->memory);
    }
    free(share);
    return 0;
}
