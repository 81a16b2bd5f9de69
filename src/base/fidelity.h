/* How near results are to what the type allows: NPU_FIDELITY, chosen once by aclInit, as plans and their workspaces depend on it. */
#ifndef BASE_FIDELITY_H
#define BASE_FIDELITY_H

enum fidelity {
    FIDELITY_IEEE, /* as near to PyTorch's CPU results as the type allows */
    FIDELITY_FAST, /* faster algorithms with a larger rounding error may be taken; docs/environment.md says which */
};

/* 0, or ERROR_INVALID_PARAM with a text that names the values that are known. */
int fidelity_choose(void);
/* FIDELITY_IEEE until something else is chosen. */
enum fidelity fidelity(void);

#endif
