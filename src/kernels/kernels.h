/* All kernels of one instruction set, and the choice made at start.
 *
 * Kernels are plain arithmetic on contiguous memory: no malloc, lock, error, thread or global. Each file in this folder but
 * select.c is compiled once per ISA with -DISA=<name>; its tables get the ISA's suffix (KERNEL_TABLE in isa.h). Which set runs
 * is decided once, from the CPU and NPU_ISA (naming one that the CPU lacks is refused). Tests reach each set by name. */
#ifndef KERNELS_KERNELS_H
#define KERNELS_KERNELS_H

#define FAMILY(name) struct name##_kernels;
#include "kernels/families.def"
#undef FAMILY

struct kernel_set {
    const char *isa; /* "baseline", "avx2", "avx512", "neon" */
#define FAMILY(name) const struct name##_kernels *name;
#include "kernels/families.def"
#undef FAMILY
};

/* The set in use; never NULL once kernels_select ran (aclInit does; plans are refused before). */
extern const struct kernel_set *kernels;

/* The compiled-in set of that name, or NULL. Doesn't look at the CPU. */
const struct kernel_set *kernel_set_find(const char *isa);
/* Can this CPU run it? */
int kernel_set_runnable(const char *isa);
/* NULL or "": the best one that this CPU runs. Returns 0, or -1 when the named one is unknown or not runnable. */
int kernels_select(const char *isa);
/* The i-th compiled-in set, best last; NULL past the end. */
const struct kernel_set *kernel_set_at(int i);

#endif
