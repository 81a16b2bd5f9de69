/* The environment table: defaults, units, and values that don't fit. */
#include "base/env.h"
#include "check.h"

int main(void)
{
    unsetenv("NPU_DEVICE_COUNT");
    unsetenv("NPU_MEMORY_LIMIT");
    unsetenv("ASCEND_SOC");
    CHECK_INT(env_int(ENV_NPU_DEVICE_COUNT), 8);
    CHECK(strcmp(env_text(ENV_ASCEND_SOC), "Ascend910B2") == 0, "default profile: %s", env_text(ENV_ASCEND_SOC));
    CHECK(!env_is_set(ENV_ASCEND_SOC), "not set");

    static const struct {
        const char *text;
        int64_t bytes;
    } units[] = {
        {"1000", 1000}, {"4K", 4096}, {"512M", 512ll << 20}, {"2g", 2ll << 30}, {"2GiB", 2ll << 30}, {"1TB", 1ll << 40},
    };
    for (size_t i = 0; i < sizeof units / sizeof units[0]; ++i) {
        setenv("NPU_MEMORY_LIMIT", units[i].text, 1);
        CHECK_INT(env_int(ENV_NPU_MEMORY_LIMIT), units[i].bytes);
        CHECK_OK(env_check());
    }
    static const char *const wrong[] = {"many", "5X", "2GG", "-1", "99999999999999999999", "9999999999999T"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
        setenv("NPU_MEMORY_LIMIT", wrong[i], 1);
        CHECK_FAILS(env_check(), 100000, "NPU_MEMORY_LIMIT");
        CHECK_INT(env_int(ENV_NPU_MEMORY_LIMIT), 0);
    }
    unsetenv("NPU_MEMORY_LIMIT");
    setenv("NPU_DEVICE_COUNT", "65", 1);
    CHECK_FAILS(env_check(), 100000, "from 1 to 64");
    setenv("NPU_DEVICE_COUNT", "", 1);
    CHECK_OK(env_check());
    CHECK_INT(env_int(ENV_NPU_DEVICE_COUNT), 8);
    return check_result();
}
