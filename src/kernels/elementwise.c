/* Elementwise kernels: one loop for each (operator, type). Compiled once per ISA; the vectoriser does the rest. */
#include "kernels/elementwise.h"
#include "kernels/isa.h"

#define KERNEL(op, expression, tag, type)                                       \
    static void op##_##tag(void *out_, const void *a_, const void *b_, size_t n) \
    {                                                                           \
        type *out = out_;                                                       \
        const type *a = a_, *b = b_;                                            \
        for (size_t i = 0; i < n; ++i) {                                        \
            const type x = a[i], y = b[i];                                      \
            out[i] = (type)(expression);                                        \
        }                                                                       \
    }
KERNEL(add, x + y, f32, float)
KERNEL(mul, x * y, f32, float)

const struct elementwise_kernels KERNEL_TABLE(elementwise_kernels) = {
    .binary = {[BINARY_add] = {[DTYPE_F32] = add_f32}, [BINARY_mul] = {[DTYPE_F32] = mul_f32}},
};
