/* Errors: every function that can fail returns CANN's code (0 = success); the words sit in a thread-local slot.
 *
 * Who detects an error writes the text (error_set, FAIL, REQUIRE); who passes it on only returns the code (TRY).
 * Outputs are set on success only. Codes: acl/acl_base.h. Semantics of the slot: aclGetRecentErrMsg returns and clears,
 * newest text first, and only the pointer of the latest call stays valid (hence two buffers). */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stddef.h>
#include <stdint.h>

enum {
    ERROR_INVALID_PARAM = 100000,
    ERROR_UNINITIALIZED = 100001,
    ERROR_REPEAT_INITIALIZE = 100002,
    ERROR_BAD_ALLOC = 200000,
    ERROR_API_NOT_SUPPORT = 200001,
    ERROR_RT_PARAM_INVALID = 107000,
    ERROR_RT_INVALID_DEVICE = 107001,
    ERROR_RT_CONTEXT_NULL = 107002,
    ERROR_RT_INVALID_HANDLE = 107017,
    ERROR_RT_WAIT_TIMEOUT = 107019,
    ERROR_RT_FEATURE_UNSUPPORTED = 207000,
    ERROR_RT_MEMORY_ALLOCATION = 207001,
    ERROR_RT_OPERATOR_TIMEOUT = 507014, /* an operator runs longer than aclrtSetOpExecuteTimeOut allows */
    ERROR_RT_STREAM_SYNC_TIMEOUT = 507046,
    ERROR_RT_EVENT_SYNC_TIMEOUT = 507047,
    ERROR_RT_DEVICE_TASK = 507015, /* a kernel failed while it ran ("core exception") */
    ERROR_INTERNAL = 500000,
    ACLNN_ERROR_NULLPTR = 161001,
    ACLNN_ERROR_PARAM = 161002,
    ACLNN_ERROR_INNER = 561000,
    ACLNN_ERROR_EXECUTOR = 561102,
};

/* Writes "function: text" as the newest entry and remembers the code as the thread's last error; returns code. */
int error_set(int code, const char *function, const char *format, ...) __attribute__((format(printf, 3, 4), cold));

/* Code of this thread's last error; reset to 0 by error_take_last, kept by error_last. */
int error_last(void);
int error_take_last(void);

/* What aclGetRecentErrMsg returns: NULL when there is nothing new. */
const char *error_take_text(void);

/* How much a thread has written so far. Work that runs in somebody's thread but isn't his (a task in the caller) takes a mark
 * before and takes out what it added after, so that the thread's own words and last code stay. */
struct error_mark {
    uint32_t written; /* calls of error_set */
    int32_t last_code;
};
extern _Thread_local struct error_mark error_written;

static inline struct error_mark error_here(void) { return error_written; }

/* Moves what was written since the mark to `text` (newest first, "" when nothing was), and gives the last code back. */
void error_take_since(struct error_mark mark, char *text, size_t bytes);

#define FAIL(code, ...) return error_set((code), __func__, __VA_ARGS__)
#define REQUIRE(condition, code, ...)     \
    do {                                  \
        if (__builtin_expect(!(condition), 0)) \
            FAIL((code), __VA_ARGS__);    \
    } while (0)
#define TRY(call)                         \
    do {                                  \
        const int try_code = (call);      \
        if (__builtin_expect(try_code != 0, 0)) \
            return try_code;              \
    } while (0)

#endif
