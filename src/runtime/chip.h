/* The chip that the software NPU stands for (environment: ASCEND_SOC). chip.def is the table. */
#ifndef RUNTIME_CHIP_H
#define RUNTIME_CHIP_H

#include <stdbool.h>
#include <stdint.h>

struct chip_profile {
    const char *name;
    int cube_cores, vector_cores;
    int64_t cache_bytes, memory_bytes;
    bool bf16; /* does the chip have bfloat16? Operators here take it in any case */
};

/* NULL when ASCEND_SOC names no chip of the table. Chosen at the first call. */
const struct chip_profile *chip_profile(void);
/* "Ascend910A, Ascend910B, ...", for messages. */
const char *chip_names(void);

#endif
