/* Gathers the tables of one ISA. Compiled once per ISA. */
#include "kernels/kernels.h"
#include "kernels/isa.h"

#define FAMILY(name) extern const struct name##_kernels KERNEL_TABLE(name##_kernels);
#include "kernels/families.def"
#undef FAMILY

#define STRINGIFY_(x) #x
#define STRINGIFY(x) STRINGIFY_(x)

const struct kernel_set KERNEL_TABLE(kernel_set) = {
    .isa = STRINGIFY(ISA),
#define FAMILY(name) .name = &KERNEL_TABLE(name##_kernels),
#include "kernels/families.def"
#undef FAMILY
};
