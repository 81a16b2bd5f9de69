/* Environment variables: typed access by name. env.def is the only list, env.c the only place of the core that calls getenv; the
 * bridge, which may run on other libraries, has its own (bridge/runtime/environment.h).
 *
 * Values are read at each call; who is on a hot path keeps what it read. A value that doesn't fit its type or range counts as
 * the default here, and aclInit reports it (env_check). */
#ifndef BASE_ENV_H
#define BASE_ENV_H

#include <stdbool.h>
#include <stdint.h>

enum env_name {
#define ENV_INT(name, ...) ENV_##name,
#define ENV_BYTES(name, ...) ENV_##name,
#define ENV_TEXT(name, ...) ENV_##name,
#define ENV_SECTION(title)
#include "base/env.def"
#undef ENV_INT
#undef ENV_BYTES
#undef ENV_TEXT
#undef ENV_SECTION
    ENV_COUNT
};

/* Of ENV_INT and ENV_BYTES variables. */
int64_t env_int(enum env_name name);
/* Of ENV_TEXT variables; never NULL. Valid until somebody changes the environment. */
const char *env_text(enum env_name name);
/* Is it set at all (an empty value counts as not set)? */
bool env_is_set(enum env_name name);
/* 0, or ERROR_INVALID_PARAM with a text that names the first core variable whose value doesn't fit, and what is allowed. */
int env_check(void);

#endif
