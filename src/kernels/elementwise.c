/* The table of elementwise kernels: the same list that makes them fills it. See elementwise.h. */
#include "kernels/elementwise.h"

#include "kernels/isa.h"

#define KERNEL_NAME(op, tag) KERNEL_TABLE(elementwise_##op##_##tag)
#define DECLARE(op, tag) void KERNEL_NAME(op, tag)(void *const *operands, size_t n, const union elementwise_scalar *scalars);
#define ENTRY(op, TAG, tag) [ELEMENTWISE_##op][DTYPE_##TAG] = KERNEL_NAME(op, tag),

/* One line of the list, in the two forms in which it is needed here. */
#define SLOTS_FLOAT(op) SLOT(op, F64, f64) SLOT(op, F32, f32)
#define SLOTS_INTEGER(op) SLOT(op, I64, i64) SLOT(op, I32, i32) SLOT(op, I16, i16) SLOT(op, I8, i8) SLOT(op, U8, u8)
#define SLOTS_SIGNED(op) SLOT(op, I64, i64) SLOT(op, I32, i32) SLOT(op, I16, i16) SLOT(op, I8, i8)
#define SLOTS_BOOLEAN(op) SLOT(op, B8, b8)
#define SLOTS_COMPLEX(op) SLOT(op, C64, c64) SLOT(op, C128, c128)
#define SLOTS_CHOICE(op) \
    SLOTS_FLOAT(op) SLOTS_INTEGER(op) SLOTS_BOOLEAN(op) SLOTS_COMPLEX(op) SLOT(op, F16, f16) SLOT(op, BF16, bf16)
#define SLOTS_EXTRA SLOTS_FLOAT(complex_pair) SLOTS_FLOAT(polar) SLOTS_COMPLEX(complex_abs) SLOTS_COMPLEX(complex_angle)

#define SLOT(op, TAG, tag) DECLARE(op, tag)
#include "kernels/elementwise_slots.h"
SLOTS_EXTRA
#undef SLOT

const struct elementwise_kernels KERNEL_TABLE(elementwise_kernels) = {
    .run =
        {
#define SLOT(op, TAG, tag) ENTRY(op, TAG, tag)
#include "kernels/elementwise_slots.h"
            SLOTS_EXTRA
#undef SLOT
        },
};
