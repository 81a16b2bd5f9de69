/* What a C test needs: checks that count instead of stopping, and an exit code.
 *
 * One test = one program with a plain main that ends in `return check_result();`. A failed CHECK prints where and what and goes
 * on, so that one run shows everything that is wrong. Checks may be made on any thread. */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static _Atomic int check_failures, check_count;

enum { CHECK_SHOWN = 20 }; /* failures printed; the rest is only counted */

/* CHECK(a == b, "a is %d", a): the text is printed when the condition is false. */
#define CHECK(condition, ...)                                                                       \
    do {                                                                                            \
        ++check_count;                                                                              \
        if (!(condition) && check_failures++ < CHECK_SHOWN) {                                       \
            fprintf(stderr, "%s:%d: not true: %s: ", __FILE__, __LINE__, #condition);               \
            fprintf(stderr, __VA_ARGS__);                                                           \
            fprintf(stderr, "\n");                                                                  \
        }                                                                                           \
    } while (0)

/* The call must return 0; otherwise the code and the error text are shown. */
#define CHECK_OK(call)                                                                              \
    do {                                                                                            \
        const int check_code = (call);                                                              \
        const char *const check_text = check_code ? error_take_text() : NULL;                       \
        CHECK(check_code == 0, "%s gave %d: %s", #call, check_code, check_text ? check_text : "");  \
    } while (0)

/* The call must fail with `code` and a text that contains `part`. Clears the error. */
#define CHECK_FAILS(call, code, part)                                                               \
    do {                                                                                            \
        (void)error_take_text();                                                                    \
        const int check_code = (call);                                                              \
        const char *const check_text = error_take_text();                                           \
        CHECK(check_code == (code), "%s gave %d, not %d", #call, check_code, (int)(code));          \
        CHECK(check_text && strstr(check_text, part), "%s: the text \"%s\" lacks \"%s\"", #call,    \
              check_text ? check_text : "(none)", part);                                            \
        (void)error_take_last();                                                                    \
    } while (0)

#define CHECK_INT(value, expected)                                                                  \
    do {                                                                                            \
        const long long check_value = (long long)(value), check_expected = (long long)(expected);   \
        CHECK(check_value == check_expected, "%lld, expected %lld", check_value, check_expected);   \
    } while (0)

/* |value - expected| <= tolerance * max(1, |expected|); two NaN are equal, an infinity equals itself only. */
static inline int check_near(double value, double expected, double tolerance)
{
    if (isnan(value) || isnan(expected))
        return isnan(value) && isnan(expected);
    if (value == expected)
        return 1;
    return isfinite(value) && fabs(value - expected) <= tolerance * fmax(1.0, fabs(expected));
}

#define CHECK_NEAR(value, expected, tolerance)                                                      \
    do {                                                                                            \
        const double check_value = (double)(value), check_expected = (double)(expected);            \
        CHECK(check_near(check_value, check_expected, (tolerance)), "%.17g, expected %.17g", check_value, check_expected); \
    } while (0)

/* Numbers that are the same in every run: a 64-bit generator for test data. */
static inline uint64_t check_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Uniform in [-1, 1). */
static inline double check_random_real(uint64_t *state) { return (double)(int64_t)check_random(state) * 0x1p-63; }

/* For a test that has nothing to look at in this build: ctest shows it as skipped. */
enum { CHECK_SKIPPED = 77 };

static inline int check_result(void)
{
    if (check_count == 0)
        fprintf(stderr, "no check was made\n");
    else if (check_failures)
        fprintf(stderr, "%d of %d checks failed\n", (int)check_failures, (int)check_count);
    else
        printf("%d checks\n", (int)check_count);
    return check_failures || check_count == 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
