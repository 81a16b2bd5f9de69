/* The thread-local error slot. See error.h. */
#include "base/error.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/thread.h"

enum { TEXT_BYTES = 2048, LENGTHS = 32 };

/* Made on a thread's first error, so that the library's static TLS stays small enough for dlopen. */
struct error_slot {
    char text[TEXT_BYTES];  /* newest failure first */
    char given[TEXT_BYTES]; /* what the caller was handed last */
    int kept;               /* entries in text, as far as lengths are known */
    int lengths[LENGTHS];   /* theirs, newest first; a newline stands between two */
};

static void free_slot(void);
static _Thread_local struct error_slot *slot;
_Thread_local struct error_mark error_written;
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
    ++error_written.written;
    error_written.last_code = code;
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
    used = used < TEXT_BYTES - 1 ? used : TEXT_BYTES - 1;
    memmove(&s->lengths[1], &s->lengths[0], (LENGTHS - 1) * sizeof s->lengths[0]);
    s->lengths[0] = used;
    s->kept += s->kept < LENGTHS;
    LOG_ERROR("%d %s", code, s->text);
    const bool again =
        used < TEXT_BYTES && strncmp(older, s->text, (size_t)used) == 0 && (older[used] == '\0' || older[used] == '\n');
    if (again) /* who polls shouldn't push the rest out */
        memcpy(s->text, older, sizeof older);
    else if (older[0] && used < TEXT_BYTES - 2)
        snprintf(s->text + used, (size_t)(TEXT_BYTES - used), "\n%s", older);
    return code;
}

int error_last(void) { return error_written.last_code; }

int error_take_last(void)
{
    const int code = error_written.last_code;
    error_written.last_code = 0;
    return code;
}

const char *error_take_text(void)
{
    if (!slot || slot->text[0] == '\0')
        return NULL;
    memcpy(slot->given, slot->text, sizeof slot->given);
    slot->text[0] = '\0';
    slot->kept = 0;
    return slot->given;
}

void error_take_since(struct error_mark mark, char *text, size_t bytes)
{
    const uint32_t added = error_written.written - mark.written;
    struct error_slot *const s = slot;
    error_written.last_code = mark.last_code;
    text[0] = '\0';
    if (!s || added == 0)
        return;
    if (added >= (uint32_t)s->kept) { /* nothing older is left */
        snprintf(text, bytes, "%s", s->text);
        s->text[0] = '\0';
        s->kept = 0;
        return;
    }
    size_t end = added - 1; /* the newlines between them */
    for (uint32_t i = 0; i < added; ++i)
        end += (size_t)s->lengths[i];
    const size_t all = strlen(s->text);
    end = end < all ? end : all;
    snprintf(text, bytes, "%.*s", (int)end, s->text);
    const size_t older = end < all ? end + 1 : all;
    memmove(s->text, s->text + older, all - older + 1);
    s->kept -= (int)added;
    memmove(s->lengths, s->lengths + added, (size_t)s->kept * sizeof s->lengths[0]);
}
