/* Log lines: LOG_DEBUG("stream %d sleeps", id) and so on.
 *
 * Lines below the level cost one load and a compare. Nothing is printed unless the user asked (environment:
 * ASCEND_GLOBAL_LOG_LEVEL, ASCEND_SLOG_PRINT_TO_STDOUT): errors reach the caller as return codes and texts. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdarg.h>
#include <stdbool.h>

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARNING, LOG_LEVEL_ERROR, LOG_LEVEL_NOTHING };

/* Lines of this level and above are printed. Reads the environment again (aclInit does). */
void log_configure(void);
bool log_is_on(enum log_level level);
void log_write(enum log_level level, const char *where, const char *format, ...) __attribute__((format(printf, 3, 4), cold));
void log_write_list(enum log_level level, const char *where, const char *format, va_list arguments);

#define LOG_(level, ...)                           \
    do {                                           \
        if (log_is_on(level))                      \
            log_write((level), __func__, __VA_ARGS__); \
    } while (0)
#define LOG_DEBUG(...) LOG_(LOG_LEVEL_DEBUG, __VA_ARGS__)
#define LOG_INFO(...) LOG_(LOG_LEVEL_INFO, __VA_ARGS__)
#define LOG_WARNING(...) LOG_(LOG_LEVEL_WARNING, __VA_ARGS__)
#define LOG_ERROR(...) LOG_(LOG_LEVEL_ERROR, __VA_ARGS__)

#endif
