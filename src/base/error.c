/* The thread-local error slot. See error.h. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/thread.h"

enum { TEXT_BYTES = 2048 };

/* Made on a thread's first error, so that the library's static TLS stays small enough for dlopen. */
struct error_slot {
    char text[TEXT_BYTES];  /* newest failure first */
    char given[TEXT_BYTES]; /* what the caller was handed last */
};

static void free_slot(void);
static _Thread_local struct error_slot *slot;
static _Thread_local int last_code;
static _Thread_local struct thread_cleanup slot_cleanup = {.run = free_slot};

static void free_slot(void)
{
    free(slot);
    slot = NULL;
}

static struct error_slot *slot_get(void)
{
    if (!slot) {
        slot = calloc(1, sizeof *slot);
        thread_at_exit(&slot_cleanup);
    }
    return slot;
}

int error_set(int code, const char *function, const char *format, ...)
{
    last_code = code;
    struct error_slot *const s = slot_get();
    if (!s)
        return code;
    if (strncmp(function, "core_", 5) == 0) /* the prefix that public names carry inside the core */
        function += 5;
    char older[TEXT_BYTES];
    memcpy(older, s->text, sizeof older);
    int used = snprintf(s->text, TEXT_BYTES, "%s: ", function);
    va_list arguments;
    va_start(arguments, format);
    used += vsnprintf(s->text + used, (size_t)(TEXT_BYTES - used), format, arguments);
    va_end(arguments);
    LOG_ERROR("%d %s", code, s->text);
    if (older[0] && used < TEXT_BYTES - 2)
        snprintf(s->text + used, (size_t)(TEXT_BYTES - used), "\n%s", older);
    return code;
}

int error_last(void) { return last_code; }

int error_take_last(void)
{
    const int code = last_code;
    last_code = 0;
    return code;
}

const char *error_take_text(void)
{
    if (!slot || slot->text[0] == '\0')
        return NULL;
    memcpy(slot->given, slot->text, sizeof slot->given);
    slot->text[0] = '\0';
    return slot->given;
}

void error_copy_text(char *text, size_t bytes) { snprintf(text, bytes, "%s", slot ? slot->text : ""); }
