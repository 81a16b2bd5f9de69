/* Chooses the kernel set of this CPU, once. Compiled once, for the baseline. See kernels.h. */
#include "kernels/kernels.h"

#include <string.h>

#define KERNEL_SET_(isa_name) kernel_set_##isa_name
#define DECLARE_ISA(isa_name) extern const struct kernel_set KERNEL_SET_(isa_name);
KERNEL_ISA_LIST(DECLARE_ISA)

/* Worst first. KERNEL_ISA_LIST comes from the build: the sets that were compiled for this machine's architecture. */
#define ISA_ENTRY(isa_name) &KERNEL_SET_(isa_name),
static const struct kernel_set *const sets[] = {KERNEL_ISA_LIST(ISA_ENTRY)};
enum { SETS = sizeof sets / sizeof sets[0] };

const struct kernel_set *kernels;

const struct kernel_set *kernel_set_at(int i) { return i >= 0 && i < (int)SETS ? sets[i] : NULL; }

const struct kernel_set *kernel_set_find(const char *isa)
{
    for (int i = 0; i < (int)SETS; ++i)
        if (strcmp(sets[i]->isa, isa) == 0)
            return sets[i];
    return NULL;
}

#if defined(__x86_64__) && defined(__clang__) && __clang_major__ < 18 /* which knows features, but no levels */
#define HAS(feature) (__builtin_cpu_supports(feature) != 0)
#define HAS_LEVEL_3 (HAS("avx2") && HAS("fma") && HAS("bmi") && HAS("bmi2"))
#define HAS_LEVEL_4 (HAS_LEVEL_3 && HAS("avx512f") && HAS("avx512bw") && HAS("avx512cd") && HAS("avx512dq") && HAS("avx512vl"))
#else
#define HAS_LEVEL_3 (__builtin_cpu_supports("x86-64-v3") != 0)
#define HAS_LEVEL_4 (__builtin_cpu_supports("x86-64-v4") != 0)
#endif

int kernel_set_runnable(const char *isa)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    /* All that the build's -march levels may use (cmake/kernels.cmake): hypervisors mask single features. */
    if (strcmp(isa, "avx2") == 0)
        return HAS_LEVEL_3;
    if (strcmp(isa, "avx512") == 0)
        return HAS_LEVEL_4;
#endif
    return kernel_set_find(isa) != NULL;
}

int kernels_select(const char *isa)
{
    if (isa && isa[0] != '\0') {
        const struct kernel_set *const named = kernel_set_find(isa);
        if (!named || !kernel_set_runnable(isa))
            return -1;
        kernels = named;
        return 0;
    }
    for (int i = (int)SETS - 1; i >= 0; --i)
        if (kernel_set_runnable(sets[i]->isa)) {
            kernels = sets[i];
            return 0;
        }
    return -1;
}
