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

/* Addresses of pointers in the table, which is filled at load time; a function that uses several operators has several rows. */
static const struct requirement {
    const char *function;
    const void *pointer;
} requirements[] = {
#define USES(name, operator) {#name, &cann.aclnn##operator##GetWorkspaceSize},
#define FUNCTION(name, operator, parameters, arguments) USES(name, operator)
#include "op_plugin/functions.def"
#undef FUNCTION
#undef USES
};

bool npu_available(const char *function)
{
    bool known = false;
    for (size_t i = 0; i < sizeof requirements / sizeof *requirements; ++i)
        if (strcmp(requirements[i].function, function) == 0) {
            void *address;
            memcpy(&address, requirements[i].pointer, sizeof address);
            if (!address)
                return false;
            known = true;
        }
    return known;
}
