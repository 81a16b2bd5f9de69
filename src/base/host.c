/* Cores and memory of the machine as far as this process may use them. See host.h. */
#define _GNU_SOURCE
#include "base/host.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { GROUP_PATH = 512 };

static void take_less(int64_t value, int64_t *least)
{
    if (value > 0 && (*least == 0 || value < *least))
        *least = value;
}

/* Reads up to two numbers; how many there were ("max" is none). */
static int read_numbers(const char *folder, const char *name, long long *first, long long *second)
{
    char path[2 * GROUP_PATH];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *const file = fopen(path, "re");
    if (!file)
        return 0;
    const int read = fscanf(file, "%lld %lld", first, second);
    fclose(file);
    return read > 0 ? read : 0;
}

/* One group's own limits; version 2's files and version 1's have different names. */
static void read_group(const char *folder, struct host_limits *limits)
{
    long long quota = 0, period = 100000, bytes = 0, unused;
    if (read_numbers(folder, "cpu.max", &quota, &period) == 2 || read_numbers(folder, "cpu.cfs_quota_us", &quota, &unused) == 1) {
        read_numbers(folder, "cpu.cfs_period_us", &period, &unused);
        if (quota > 0 && period > 0)
            take_less((quota + period - 1) / period, &limits->cores);
    }
    if (read_numbers(folder, "memory.max", &bytes, &unused) == 1 ||
        read_numbers(folder, "memory.limit_in_bytes", &bytes, &unused) == 1)
        take_less(bytes, &limits->memory);
}

/* The limits of a group and of all above it: usually a parent has them. In a container the path may be the host's, and only the
 * last step, to the root that is mounted here, finds files. */
static void read_group_and_parents(const char *root, const char *controller, char *group, struct host_limits *limits)
{
    char folder[2 * GROUP_PATH];
    for (;;) {
        snprintf(folder, sizeof folder, "%s%s%s", root, controller, group);
        read_group(folder, limits);
        char *const last = strrchr(group, '/');
        if (!last)
            return;
        *last = '\0';
    }
}

/* Is the name in a list such as "cpu,cpuacct"? */
static bool list_has(const char *list, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)) != NULL; at += length)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0'))
            return true;
    return false;
}

struct host_limits host_group_limits(const char *root, const char *self)
{
    struct host_limits limits = {0, 0};
    char line[GROUP_PATH + 128];
    FILE *const file = fopen(self, "re");
    while (file && fgets(line, sizeof line, file)) { /* number:controllers:path, version 2 without controllers */
        line[strcspn(line, "\n")] = '\0';
        char *const controllers = strchr(line, ':'), *const path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        *path = '\0';
        char *const group = strcmp(path + 1, "/") == 0 ? path + 2 : path + 1;
        if (controllers[1] == '\0')
            read_group_and_parents(root, "", group, &limits);
        else if (list_has(controllers + 1, "cpu"))
            read_group_and_parents(root, "/cpu", group, &limits);
        else if (list_has(controllers + 1, "memory"))
            read_group_and_parents(root, "/memory", group, &limits);
    }
    if (file)
        fclose(file);
    return limits;
}

static struct host_limits own_limits(void) { return host_group_limits("/sys/fs/cgroup", "/proc/self/cgroup"); }

int host_cores(void)
{
    cpu_set_t mask;
    int cores = 0;
    if (sched_getaffinity(0, sizeof mask, &mask) == 0)
        cores = CPU_COUNT(&mask);
    if (cores < 1) /* more cores than the mask can hold */
        cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    const int64_t quota = own_limits().cores;
    if (quota > 0 && quota < cores)
        cores = (int)quota;
    return cores < 1 ? 1 : cores;
}

int64_t host_memory(void)
{
    int64_t bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    take_less(own_limits().memory, &bytes);
    return bytes;
}
