/* What the package asks the core about itself, beside CANN's API: private, so the names carry the core's prefix. */
#include <stddef.h>

#include "kernels/kernels.h"

const char *npu_core_isa(void);

/* Name of the kernel set in use; NULL before aclInit. */
const char *npu_core_isa(void) { return kernels ? kernels->isa : NULL; }
