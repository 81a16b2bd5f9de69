/* Cores and memory of the machine as far as this process may use them. See host.h. */
#define _GNU_SOURCE
#include "base/host.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Opens a control file of this process's group; version 2 first ("unified"), then version 1's `controller`. */
static FILE *open_cgroup_file(const char *unified, const char *controller, const char *version_1)
{
    char path[512], group[256] = "";
    FILE *const self = fopen("/proc/self/cgroup", "re");
    if (self) {
        char line[300];
        while (fgets(line, sizeof line, self))
            if (sscanf(line, "0::%255[^\n]", group) == 1)
                break;
        fclose(self);
    }
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/%s", group, unified);
    FILE *file = fopen(path, "re");
    if (!file) {
        snprintf(path, sizeof path, "/sys/fs/cgroup/%s", unified);
        file = fopen(path, "re");
    }
    if (!file) {
        snprintf(path, sizeof path, "/sys/fs/cgroup/%s/%s", controller, version_1);
        file = fopen(path, "re");
    }
    return file;
}

/* Cores that the quota allows, rounded up; 0 = no quota. */
static int quota_cores(void)
{
    long long quota = 0, period = 0;
    int cores = 0;
    FILE *file = open_cgroup_file("cpu.max", "cpu", "cpu.cfs_quota_us");
    if (!file)
        return 0;
    const int read = fscanf(file, "%lld %lld", &quota, &period); /* "max 100000" reads nothing */
    fclose(file);
    if (read == 1) { /* version 1 keeps the period in a file of its own; its default is 100 ms */
        period = 100000;
        file = fopen("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "re");
        if (file) {
            if (fscanf(file, "%lld", &period) != 1)
                period = 100000;
            fclose(file);
        }
    }
    if (read >= 1 && quota > 0 && period > 0)
        cores = (int)((quota + period - 1) / period);
    return cores;
}

int host_cores(void)
{
    cpu_set_t mask;
    int cores = 0;
    if (sched_getaffinity(0, sizeof mask, &mask) == 0)
        cores = CPU_COUNT(&mask);
    if (cores < 1) /* more cores than the mask can hold */
        cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    const int quota = quota_cores();
    if (quota > 0 && quota < cores)
        cores = quota;
    return cores < 1 ? 1 : cores;
}

int64_t host_memory(void)
{
    int64_t bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    FILE *const file = open_cgroup_file("memory.max", "memory", "memory.limit_in_bytes");
    long long limit;
    if (file) {
        if (fscanf(file, "%lld", &limit) == 1 && limit > 0 && limit < bytes)
            bytes = limit;
        fclose(file);
    }
    return bytes;
}
