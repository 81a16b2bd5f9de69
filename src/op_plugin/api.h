/* The adapter's only way to CANN: one table of function pointers, filled once at load time.
 *
 * Invariant: filled before the first operator, constant afterwards; a NULL entry is a function that the libraries lack. Where the
 * libraries come from is the caller's choice: ours (a folder), or a CANN installation (bare names on the library path). */
#ifndef OP_PLUGIN_API_H
#define OP_PLUGIN_API_H

#include "acl/acl.h"
#include "aclnn/aclnn_base.h"
#include "all_prototypes.h" /* every aclnn prototype that CANN documents, made by the build */

#ifdef __cplusplus
extern "C" {
#endif

struct cann_api {
#define RUNTIME(name) __typeof__(name) *name;
#define HANDLE(name) __typeof__(name) *name;
#include "op_plugin/api.def"
#undef RUNTIME
#undef HANDLE
#define ACLNN(name)                                                         \
    __typeof__(aclnn##name##GetWorkspaceSize) *aclnn##name##GetWorkspaceSize; \
    __typeof__(aclnn##name) *aclnn##name;
#include "op_plugin/operators.def"
#undef ACLNN
};

extern struct cann_api cann;

/* Opens libascendcl, libnnopbase and libopapi in `folder` (NULL: by bare name) and fills `cann`. 0, or -1 with words in
 * cann_load_error(): a library that can't be opened, or a runtime or handle function that is missing. Missing operators are fine.
 * table_bytes: sizeof(struct cann_api) as the caller was compiled; another size than ours is refused, since a caller from another
 * build would read the wrong pointers without a word. */
int cann_load_table(const char *folder, size_t table_bytes);
static inline int cann_load(const char *folder) { return cann_load_table(folder, sizeof(struct cann_api)); }
const char *cann_load_error(void);
/* Path of the i-th loaded library as the dynamic loader found it; NULL past the end. */
const char *cann_library_path(int i);
/* The i-th name of the table ("aclrtMalloc" ...), and whether it was found; NULL past the end. For tests and `softnpu info`. */
const char *cann_function_name(int i, bool *found);

#ifdef __cplusplus
}
#endif

#endif
