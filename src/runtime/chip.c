/* Chip profiles and the questions about them. See chip.h. */
#include "runtime/chip.h"

#include <pthread.h>
#include <string.h>

#include "acl/acl.h"
#include "base/env.h"
#include "base/error.h"
#include "runtime/device.h"

static const struct chip_profile profiles[] = {
#define CHIP(chip, cube, vector, cache_mib, memory_gib, bf16_, source) \
    {.name = #chip, .cube_cores = (cube), .vector_cores = (vector), .cache_bytes = (int64_t)(cache_mib) << 20, \
     .memory_bytes = (int64_t)(memory_gib) << 30, .bf16 = (bf16_)},
#include "runtime/chip.def"
#undef CHIP
};

static const struct chip_profile *chosen;

static void choose(void)
{
    const char *const name = env_text(ENV_ASCEND_SOC);
    for (size_t i = 0; i < sizeof profiles / sizeof profiles[0]; ++i)
        if (strcmp(profiles[i].name, name) == 0)
            chosen = &profiles[i];
}

const struct chip_profile *chip_profile(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, choose);
    return chosen;
}

const char *chip_names(void)
{
    return ""
#define CHIP(chip, ...) #chip ", "
#include "runtime/chip.def"
#undef CHIP
           "in this spelling";
}

const char *aclrtGetSocName(void)
{
    const struct chip_profile *const chip = chip_profile();
    if (!chip) {
        error_set(ERROR_INVALID_PARAM, __func__, "ASCEND_SOC=%s is unknown; known are %s", env_text(ENV_ASCEND_SOC), chip_names());
        return NULL;
    }
    return chip->name;
}

static int require_chip(uint32_t device, const struct chip_profile **chip)
{
    TRY(device_require((int64_t)device));
    *chip = chip_profile();
    REQUIRE(*chip, ERROR_INVALID_PARAM, "ASCEND_SOC=%s is unknown", env_text(ENV_ASCEND_SOC));
    return 0;
}

aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t *value)
{
    const struct chip_profile *chip;
    REQUIRE(value, ERROR_INVALID_PARAM, "value is null");
    TRY(require_chip(deviceId, &chip));
    switch ((int)attr) {
    case ACL_DEV_ATTR_AICPU_CORE_NUM: *value = 0; return 0;
    case ACL_DEV_ATTR_AICORE_CORE_NUM:
    case ACL_DEV_ATTR_CUBE_CORE_NUM: *value = chip->cube_cores; return 0;
    case ACL_DEV_ATTR_VECTOR_CORE_NUM: *value = chip->vector_cores; return 0;
    case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE: *value = device_memory_capacity(); return 0;
    case ACL_DEV_ATTR_L2_CACHE_SIZE: *value = chip->cache_bytes; return 0;
    case ACL_DEV_ATTR_PHY_CHIP_ID: *value = device_physical((int)deviceId); return 0;
    case ACL_DEV_ATTR_IS_VIRTUAL: *value = 0; return 0;
    default: FAIL(ERROR_RT_FEATURE_UNSUPPORTED, "attribute %d isn't available", (int)attr);
    }
}

aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo, int64_t *value)
{
    const struct chip_profile *chip;
    REQUIRE(value, ERROR_INVALID_PARAM, "value is null");
    TRY(require_chip(deviceId, &chip));
    switch ((int)deviceInfo) {
    case ACL_DEVICE_INFO_AI_CORE_NUM: *value = chip->cube_cores; return 0;
    case ACL_DEVICE_INFO_VECTOR_CORE_NUM: *value = chip->vector_cores; return 0;
    case ACL_DEVICE_INFO_L2_SIZE: *value = chip->cache_bytes; return 0;
    default: FAIL(ERROR_INVALID_PARAM, "deviceInfo is %d; 0, 1 and 2 are known", (int)deviceInfo);
    }
}

static const aclCannAttr attributes[] = {ACL_CANN_ATTR_INF_NAN, ACL_CANN_ATTR_BF16, ACL_CANN_ATTR_JIT_COMPILE};

aclError aclGetCannAttributeList(const aclCannAttr **cannAttrList, size_t *num)
{
    REQUIRE(cannAttrList && num, ERROR_INVALID_PARAM, "cannAttrList or num is null");
    *cannAttrList = attributes;
    *num = sizeof attributes / sizeof attributes[0];
    return 0;
}

aclError aclGetCannAttribute(aclCannAttr cannAttr, int32_t *value)
{
    REQUIRE(value, ERROR_INVALID_PARAM, "value is null");
    REQUIRE(cannAttr >= ACL_CANN_ATTR_INF_NAN && cannAttr <= ACL_CANN_ATTR_JIT_COMPILE, ERROR_INVALID_PARAM,
            "cannAttr is %d; 0, 1 and 2 are known", (int)cannAttr);
    const struct chip_profile *const chip = chip_profile();
    REQUIRE(chip, ERROR_INVALID_PARAM, "ASCEND_SOC=%s is unknown", env_text(ENV_ASCEND_SOC));
    *value = cannAttr == ACL_CANN_ATTR_INF_NAN || (cannAttr == ACL_CANN_ATTR_BF16 && chip->bf16);
    return 0;
}

aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode)
{
    int device;
    TRY(device_current(&device));
    REQUIRE(mode == ACL_RT_OVERFLOW_MODE_INFNAN, ERROR_RT_FEATURE_UNSUPPORTED,
            "overflow mode %d isn't available; ACL_RT_OVERFLOW_MODE_INFNAN (1) is", (int)mode);
    return 0;
}

aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode *mode)
{
    int device;
    REQUIRE(mode, ERROR_INVALID_PARAM, "mode is null");
    TRY(device_current(&device));
    *mode = ACL_RT_OVERFLOW_MODE_INFNAN;
    return 0;
}
