/* How near results are to what the type allows: NPU_FIDELITY. The first aclInit of a process that succeeds
 * decides, as plans and their workspaces depend on it; aclInit holds a lock meanwhile. */
#ifndef BASE_FIDELITY_H
#define BASE_FIDELITY_H

#include <stdbool.h>

enum fidelity {
    FIDELITY_IEEE, /* as near to PyTorch's CPU results as the type allows */
    FIDELITY_FAST, /* faster algorithms with a larger rounding error may be taken; docs/environment.md says which */
};

/* keep: what was chosen before has to stay. 0, or ERROR_INVALID_PARAM: a value that isn't known or has to stay another one. */
int fidelity_choose(bool keep);
/* FIDELITY_IEEE until something else is chosen. */
enum fidelity fidelity(void);

#endif
