/* Bounded string functions that CANN's programs expect of libc_sec. See securec.h. */
#include "securec.h"

#include <stdio.h>
#include <string.h>

errno_t strcpy_s(char *strDest, size_t destMax, const char *strSrc)
{
    if (!strDest || destMax == 0)
        return EINVAL_AND_RESET;
    strDest[0] = '\0';
    if (!strSrc)
        return EINVAL_AND_RESET;
    const size_t length = strlen(strSrc);
    if (length >= destMax)
        return ERANGE_AND_RESET;
    memmove(strDest, strSrc, length + 1);
    return EOK;
}

int vsnprintf_s(char *strDest, size_t destMax, size_t count, const char *format, va_list argList)
{
    if (!strDest || destMax == 0)
        return -1;
    strDest[0] = '\0';
    if (!format)
        return -1;
    const size_t room = count < destMax ? count + 1 : destMax;
    const int length = vsnprintf(strDest, room, format, argList);
    if (length >= 0 && (size_t)length < room)
        return length;
    if (length < 0 || count >= destMax)
        strDest[0] = '\0'; /* cut by the room, not by the caller's wish */
    return -1;
}

int snprintf_s(char *strDest, size_t destMax, size_t count, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf_s(strDest, destMax, count, format, arguments);
    va_end(arguments);
    return length;
}
