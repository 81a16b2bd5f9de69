/* The environment table. See env.h. */
#include "base/env.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum env_type { TYPE_INT, TYPE_BYTES, TYPE_TEXT };

struct env_row {
    const char *name, *text, *reader;
    enum env_type type;
    int64_t number, lowest, highest;
};

static const struct env_row rows[ENV_COUNT] = {
#define ENV_INT(name_, default_, low, high, reader_, help) \
    [ENV_##name_] = {.name = #name_, .reader = (reader_), .type = TYPE_INT, .number = (default_), .lowest = (low), .highest = (high)},
#define ENV_BYTES(name_, default_, reader_, help) \
    [ENV_##name_] = {.name = #name_, .reader = (reader_), .type = TYPE_BYTES, .number = (default_), .lowest = 0, .highest = INT64_MAX},
#define ENV_TEXT(name_, default_, reader_, help) [ENV_##name_] = {.name = #name_, .reader = (reader_), .type = TYPE_TEXT, .text = (default_)},
#define ENV_SECTION(title)
#include "base/env.def"
#undef ENV_INT
#undef ENV_BYTES
#undef ENV_TEXT
#undef ENV_SECTION
};

static const char *value_of(enum env_name name)
{
    const char *const value = getenv(rows[name].name);
    return value && value[0] != '\0' ? value : NULL;
}

/* K, M, G or T, with or without "B" or "iB" behind it; 0 for anything else. */
static int64_t unit_of(const char *suffix)
{
    static const char letters[] = "KMGT";
    if (suffix[0] == '\0')
        return 1;
    const char letter = suffix[0] >= 'a' ? (char)(suffix[0] - 'a' + 'A') : suffix[0];
    const char *const found = strchr(letters, letter);
    if (!found || !(suffix[1] == '\0' || strcmp(suffix + 1, "B") == 0 || strcmp(suffix + 1, "iB") == 0))
        return 0;
    return (int64_t)1 << 10 * (found - letters + 1);
}

static bool parse(const struct env_row *row, const char *value, int64_t *number)
{
    char *end;
    errno = 0;
    const long long parsed = strtoll(value, &end, 10);
    if (end == value || errno != 0)
        return false;
    const int64_t unit = row->type == TYPE_BYTES ? unit_of(end) : *end == '\0';
    int64_t result;
    if (unit == 0 || __builtin_mul_overflow((int64_t)parsed, unit, &result) || result < row->lowest || result > row->highest)
        return false;
    *number = result;
    return true;
}

int64_t env_int(enum env_name name)
{
    const char *const value = value_of(name);
    int64_t number = rows[name].number;
    if (value)
        parse(&rows[name], value, &number);
    return number;
}

const char *env_text(enum env_name name)
{
    const char *const value = value_of(name);
    return value ? value : rows[name].text;
}

bool env_is_set(enum env_name name) { return value_of(name) != NULL; }

int env_check(void)
{
    for (int i = 0; i < ENV_COUNT; ++i) {
        const struct env_row *const row = &rows[i];
        const char *const value = value_of((enum env_name)i);
        int64_t number;
        if (!value || row->type == TYPE_TEXT || !strstr(row->reader, "core") || parse(row, value, &number))
            continue;
        if (row->type == TYPE_BYTES)
            FAIL(ERROR_INVALID_PARAM, "%s=%s isn't a number of bytes; \"536870912\", \"512M\" and \"2G\" are", row->name, value);
        FAIL(ERROR_INVALID_PARAM, "%s=%s isn't a number from %lld to %lld", row->name, value, (long long)row->lowest,
             (long long)row->highest);
    }
    return 0;
}
