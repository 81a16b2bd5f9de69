/* Bounded string functions (CANN: securec.h, library libc_sec). destMax: room at the target, the end mark included. Too little room, or
 * a null pointer: the target becomes the empty text, and the answer is an error (-1, or a code), never a cut text. */
#ifndef SECUREC_H
#define SECUREC_H

#include <stdarg.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef EOK
#define EOK 0
#endif
#ifndef EINVAL_AND_RESET
#define EINVAL_AND_RESET 150
#endif
#ifndef ERANGE_AND_RESET
#define ERANGE_AND_RESET 162
#endif

typedef int errno_t;

errno_t strcpy_s(char *strDest, size_t destMax, const char *strSrc);
/* count: how many characters at most, below destMax; a longer text is cut there and the answer is -1. */
int snprintf_s(char *strDest, size_t destMax, size_t count, const char *format, ...);
int vsnprintf_s(char *strDest, size_t destMax, size_t count, const char *format, va_list argList);

#ifdef __cplusplus
}
#endif

#endif
