/* Scalars as elements of a tensor's type. See scalar_element.h. */
#include "aclnn/math/scalar_element.h"

#include <math.h>
#include <string.h>

#include "kernels/convert.h"
#include "kernels/kernels.h"

void element_from_scalar(void *element, enum dtype dtype, const struct aclScalar *scalar)
{
    if (dtype_kind(dtype) == KIND_COMPLEX) {
        const complex64_pair value = scalar_to_complex(scalar);
        const complex32_pair narrow = {(float)value.re, (float)value.im};
        if (dtype == DTYPE_C128)
            memcpy(element, &value, sizeof value);
        else
            memcpy(element, &narrow, sizeof narrow);
        return;
    }
    if (dtype_kind(dtype) <= KIND_INTEGER && dtype_kind(scalar->dtype) <= KIND_INTEGER)
        kernels->convert->store[dtype][ACCUMULATE_I64](element, 1, &(int64_t){scalar_to_int64(scalar)}, 1);
    else
        kernels->convert->store[dtype][ACCUMULATE_F64](element, 1, &(double){scalar_to_double(scalar)}, 1);
}

void element_limit(void *element, enum dtype dtype, double value)
{
    if (dtype_kind(dtype) >= KIND_FLOAT || !isinf(value)) {
        struct aclScalar scalar = {.dtype = DTYPE_F64, .value.f64 = value};
        element_from_scalar(element, dtype, &scalar);
        return;
    }
    const int bits = (int)dtype_bytes(dtype) * 8;
    const bool is_signed = dtype != DTYPE_U8 && dtype != DTYPE_B8;
    const int64_t top = dtype == DTYPE_B8 ? 1 : is_signed ? (int64_t)(UINT64_MAX >> (65 - bits)) : (1 << bits) - 1;
    const int64_t limit = value > 0 ? top : is_signed ? -top - 1 : 0;
    kernels->convert->store[dtype][ACCUMULATE_I64](element, 1, &limit, 1);
}
