/* Limits of containers, read from a tree of control groups made here: both versions, and limits that stand in a parent. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/host.h"
#include "check.h"

static char root[] = "/tmp/npu-groups-XXXXXX";

/* Makes root/path with its folders. */
static void put(const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')) != NULL; ++at) {
        *at = '\0';
        mkdir(full, 0700);
        *at = '/';
    }
    FILE *const file = fopen(full, "w");
    CHECK(file != NULL, "%s can't be written", full);
    if (file) {
        fputs(text, file);
        fclose(file);
    }
}

static void expect(const char *groups, long long cores, long long memory)
{
    char self[512];
    put("self", groups);
    snprintf(self, sizeof self, "%s/self", root);
    const struct host_limits limits = host_group_limits(root, self);
    CHECK(limits.cores == cores && limits.memory == memory, "%s: %lld cores, %lld bytes", groups, (long long)limits.cores,
          (long long)limits.memory);
}

static void version_2(void)
{
    put("box/cpu.max", "350000 100000\n");
    put("box/memory.max", "max\n");
    put("box/job/cpu.max", "max 100000\n");
    put("box/job/memory.max", "1000000\n");
    put("box/job/leaf/cpu.max", "50000 10000\n");
    put("box/job/leaf/memory.max", "max\n");
    expect("0::/box/job/leaf\n", 4, 1000000);
    expect("0::/box/job\n", 4, 1000000);
    expect("0::/box\n", 4, 0);
    expect("0::/\n", 0, 0);
    expect("0::/elsewhere/seen/from/the/host\n", 0, 0);
    put("cpu.max", "200000 100000\n"); /* a container's own root */
    put("memory.max", "5000\n");
    expect("0::/elsewhere/seen/from/the/host\n", 2, 5000);
    expect("0::/box/job/leaf\n", 2, 5000);
    expect("", 0, 0);
}

static void version_1(void)
{
    put("cpu/cpu.cfs_quota_us", "-1\n");
    put("cpu/cpu.cfs_period_us", "100000\n");
    put("cpu/pod/cpu.cfs_quota_us", "30000\n");
    put("cpu/pod/cpu.cfs_period_us", "20000\n");
    put("cpu/pod/leaf/cpu.cfs_quota_us", "-1\n");
    put("memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("memory/pod/memory.limit_in_bytes", "3000000\n");
    expect("9:cpuset:/pod/leaf\n4:cpu,cpuacct:/pod/leaf\n3:memory:/pod/leaf\n", 2, 3000000);
    expect("4:cpuacct,cpu:/pod\n3:memory:/\n", 2, 9223372036854771712);
    expect("4:cpuset,cpuacct:/pod\n", 0, 0);
}

int main(void)
{
    CHECK(mkdtemp(root) != NULL, "no folder");
    version_2();
    version_1();
    char command[600];
    snprintf(command, sizeof command, "rm -r %s", root);
    CHECK_INT(system(command), 0);
    return check_result();
}
