/* The functions that are one call of one operator, from functions.def, and which of them the loaded CANN can serve. */
#include <string.h>

#include "op_plugin/call.h"

#define TENSOR const struct npu_tensor *
#define SCALAR const struct npu_scalar *
#define LIST(...) __VA_ARGS__
#define FUNCTION(name, operator, parameters, arguments)     \
    int npu_##name(LIST parameters, aclrtStream stream)     \
    {                                                       \
        CALL(operator, LIST arguments);                     \
    }
#include "op_plugin/functions.def"
#undef FUNCTION

/* Address of the pointer in the table, which is filled at load time. */
static const struct requirement {
    const char *function;
    const void *pointer;
} requirements[] = {
#define FUNCTION(name, operator, parameters, arguments) {#name, &cann.aclnn##operator##GetWorkspaceSize},
#include "op_plugin/functions.def"
#undef FUNCTION
    {"clamp", &cann.aclnnClampGetWorkspaceSize},
    {"clamp_tensor", &cann.aclnnClampTensorGetWorkspaceSize},
    {"div_mode", &cann.aclnnDivModGetWorkspaceSize},
    {"nonzero", &cann.aclnnNonzeroGetWorkspaceSize},
    {"masked_select", &cann.aclnnMaskedSelectGetWorkspaceSize},
    {"unique", &cann.aclnnUnique2GetWorkspaceSize},
    {"unique_consecutive", &cann.aclnnUniqueConsecutiveGetWorkspaceSize},
    {"unique_dim", &cann.aclnnUniqueDimGetWorkspaceSize},
};

bool npu_available(const char *function)
{
    for (size_t i = 0; i < sizeof requirements / sizeof *requirements; ++i)
        if (strcmp(requirements[i].function, function) == 0) {
            void *address;
            memcpy(&address, requirements[i].pointer, sizeof address);
            return address != NULL;
        }
    return false;
}
