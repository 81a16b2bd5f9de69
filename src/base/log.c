/* Log lines. See log.h. */
#define _GNU_SOURCE
#include "base/log.h"

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/env.h"

/* Lowest level that is printed; negative until log_configure ran. */
static _Atomic int threshold = -1;
static _Atomic bool to_stdout;

void log_configure(void)
{
    const bool print = env_int(ENV_ASCEND_SLOG_PRINT_TO_STDOUT) != 0;
    const bool wanted = print || env_is_set(ENV_ASCEND_GLOBAL_LOG_LEVEL);
    to_stdout = print;
    threshold = wanted ? (int)env_int(ENV_ASCEND_GLOBAL_LOG_LEVEL) : LOG_LEVEL_NOTHING;
}

bool log_is_on(enum log_level level)
{
    int lowest = atomic_load_explicit(&threshold, memory_order_relaxed);
    if (__builtin_expect(lowest < 0, 0)) {
        log_configure();
        lowest = threshold;
    }
    return (int)level >= lowest && lowest < LOG_LEVEL_NOTHING;
}

void log_write_list(enum log_level level, const char *where, const char *format, va_list arguments)
{
    static const char *const names[] = {"DEBUG", "INFO", "WARNING", "ERROR"};
    char text[1024];
    struct timespec now;
    struct tm local;
    vsnprintf(text, sizeof text, format, arguments);
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &local);
    /* One call a line, so that the lines of several threads don't mix. */
    fprintf(to_stdout ? stdout : stderr, "[%s] NPU(%d):%04d-%02d-%02d-%02d:%02d:%02d.%03ld [%s] %s\n", names[level & 3],
            (int)getpid(), local.tm_year + 1900, local.tm_mon + 1, local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec,
            now.tv_nsec / 1000000, where, text);
}

void log_write(enum log_level level, const char *where, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    log_write_list(level, where, format, arguments);
    va_end(arguments);
}
