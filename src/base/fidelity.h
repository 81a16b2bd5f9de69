/* How near results are to what the type allows: NPU_FIDELITY. The first aclInit of a process decides, as
 * plans and their workspaces depend on it; aclInit holds a lock meanwhile. */
#ifndef BASE_FIDELITY_H
#define BASE_FIDELITY_H

enum fidelity {
    FIDELITY_IEEE, /* as near to PyTorch's CPU results as the type allows */
    FIDELITY_FAST, /* faster algorithms with a larger rounding error may be taken; docs/environment.md says which */
};

/* 0, or ERROR_INVALID_PARAM: a value that isn't known, or another one than before. */
int fidelity_choose(void);
/* FIDELITY_IEEE until something else is chosen. */
enum fidelity fidelity(void);

#endif
