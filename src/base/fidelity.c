/* NPU_FIDELITY. See fidelity.h. */
#include "base/fidelity.h"

#include <stdatomic.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"

static _Atomic int chosen = FIDELITY_IEEE;

int fidelity_choose(bool keep)
{
    static const char *const names[] = {[FIDELITY_IEEE] = "ieee", [FIDELITY_FAST] = "fast"};
    const char *const wanted = env_text(ENV_NPU_FIDELITY);
    for (int i = 0; i < (int)(sizeof names / sizeof names[0]); ++i)
        if (strcmp(wanted, names[i]) == 0) {
            REQUIRE(!keep || i == chosen, ERROR_INVALID_PARAM,
                    "NPU_FIDELITY=%s, but this process began with %s; its plans depend on it", wanted, names[chosen]);
            chosen = i;
            return 0;
        }
    FAIL(ERROR_INVALID_PARAM, "NPU_FIDELITY=%s isn't available; ieee and fast are", wanted);
}

enum fidelity fidelity(void) { return (enum fidelity)chosen; }
