/* Scalars: reading any element type, and giving the value out as double or int64. See tensor.h. */
#include <string.h>

#include "base/integer.h"
#include "tensor/tensor.h"

/* Exact widening of one half-precision number; conversions of whole tiles live in base/half.h. */
static double half_value(uint16_t bits, int exponent_bits)
{
    const int mantissa_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
    const int mantissa = bits & ((1 << mantissa_bits) - 1);
    double value;
    if (exponent == (1 << exponent_bits) - 1)
        value = mantissa ? __builtin_nan("") : __builtin_inf();
    else if (exponent == 0)
        value = __builtin_ldexp(mantissa, 1 - bias - mantissa_bits);
    else
        value = __builtin_ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
    return bits & 0x8000 ? -value : value;
}

void scalar_read(struct aclScalar *s, const void *value)
{
    float f;
    complex32_pair c;
    s->value.c128 = (complex64_pair){0, 0};
    switch (s->dtype) {
    case DTYPE_F64: memcpy(&s->value.f64, value, 8); break;
    case DTYPE_F32:
        memcpy(&f, value, 4);
        s->value.f64 = (double)f;
        break;
    case DTYPE_F16: s->value.f64 = half_value(*(const uint16_t *)value, 5); break;
    case DTYPE_BF16: s->value.f64 = half_value(*(const uint16_t *)value, 8); break;
    case DTYPE_I64: memcpy(&s->value.i64, value, 8); break;
    case DTYPE_I32: {
        int32_t i;
        memcpy(&i, value, 4);
        s->value.i64 = i;
        break;
    }
    case DTYPE_I16: {
        int16_t i;
        memcpy(&i, value, 2);
        s->value.i64 = i;
        break;
    }
    case DTYPE_I8: s->value.i64 = *(const int8_t *)value; break;
    case DTYPE_U8: s->value.i64 = *(const uint8_t *)value; break;
    case DTYPE_B8: s->value.i64 = *(const uint8_t *)value != 0; break;
    case DTYPE_C64:
        memcpy(&c, value, 8);
        s->value.c128 = (complex64_pair){(double)c.re, (double)c.im};
        break;
    case DTYPE_C128: memcpy(&s->value.c128, value, 16); break;
    default: break;
    }
}

double scalar_to_double(const struct aclScalar *scalar)
{
    switch (dtype_kind(scalar->dtype)) {
    case KIND_FLOAT: return scalar->value.f64;
    case KIND_COMPLEX: return scalar->value.c128.re;
    default: return (double)scalar->value.i64;
    }
}

int64_t scalar_to_int64(const struct aclScalar *scalar)
{
    if (dtype_kind(scalar->dtype) <= KIND_INTEGER)
        return scalar->value.i64;
    return integer_i64_from_f64(scalar_to_double(scalar));
}

complex64_pair scalar_to_complex(const struct aclScalar *scalar)
{
    if (dtype_kind(scalar->dtype) == KIND_COMPLEX)
        return scalar->value.c128;
    return (complex64_pair){scalar_to_double(scalar), 0};
}
