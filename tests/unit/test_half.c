/* Half types: widening against arithmetic on the fields, narrowing against the two neighbours of every interval. */
#include "base/half.h"
#include "check.h"

static double f16_value(uint16_t half)
{
    const int exponent = half >> 10 & 31, fraction = half & 1023;
    const double sign = half & 0x8000 ? -1 : 1;
    if (exponent == 31)
        return fraction ? NAN : sign * INFINITY;
    return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

static void widening(void)
{
    int wrong = 0;
    for (int i = 0; i < 65536; ++i) {
        const double expected = f16_value((uint16_t)i), given = half_f16_to_f32((uint16_t)i);
        wrong += !(isnan(expected) ? isnan(given) : given == expected && signbit(given) == signbit(expected));
        wrong += !isnan(expected) && half_f16_from_f32((float)given) != i;
        wrong += isnan(expected) && !isnan(half_f16_to_f32(half_f16_from_f32((float)given)));
        const float brain = half_bf16_to_f32((uint16_t)i);
        wrong += float_bits(brain) != (uint32_t)i << 16;
        wrong += isnan(brain) ? !isnan(half_bf16_to_f32(half_bf16_from_f32(brain))) : half_bf16_from_f32(brain) != i;
    }
    CHECK_INT(wrong, 0);
}

/* Between each pair of neighbours: the middle goes to the even one, the floats beside it to the nearer one. */
static void narrowing(void)
{
    int wrong = 0;
    for (int i = 0; i < 0x7c00; ++i) {
        const double low = f16_value((uint16_t)i), high = i == 0x7bff ? 65536 : f16_value((uint16_t)(i + 1));
        const float middle = (float)((low + high) / 2);
        wrong += half_f16_from_f32(middle) != (i & 1 ? i + 1 : i);
        wrong += half_f16_from_f32(nextafterf(middle, 0)) != i;
        wrong += half_f16_from_f32(nextafterf(middle, INFINITY)) != i + 1;
        wrong += half_f16_from_f32(-middle) != ((i & 1 ? i + 1 : i) | 0x8000);
    }
    for (uint32_t i = 0; i < 0x7f80; ++i) {
        const uint32_t middle = i << 16 | 0x8000;
        wrong += half_bf16_from_f32(float_from_bits(middle)) != (i & 1 ? i + 1 : i);
        wrong += half_bf16_from_f32(float_from_bits(middle - 1)) != i;
        wrong += half_bf16_from_f32(float_from_bits(middle + 1)) != i + 1;
    }
    CHECK_INT(wrong, 0);
    CHECK_INT(half_f16_from_f32(1e10f), 0x7c00);
    CHECK_INT(half_f16_from_f32(-INFINITY), 0xfc00);
    CHECK_INT(half_bf16_from_f32(3.4e38f), 0x7f80);
}

int main(void)
{
    widening();
    narrowing();
    return check_result();
}
