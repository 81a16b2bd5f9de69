/* Fills the pointer table. See api.h. */
#define _GNU_SOURCE
#include "op_plugin/api.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT struct cann_api cann;

static char load_error[8192];

enum { LIBRARY_RUNTIME, LIBRARY_HANDLES, LIBRARY_OPERATORS, LIBRARIES };
static const char *const library_names[LIBRARIES] = {"libascendcl.so", "libnnopbase.so", "libopapi.so"};
static void *libraries[LIBRARIES];

struct row {
    const char *name;
    void **slot;
    int library;
};

static const struct row rows[] = {
#define RUNTIME(function) {#function, (void **)&cann.function, LIBRARY_RUNTIME},
#define HANDLE(function) {#function, (void **)&cann.function, LIBRARY_HANDLES},
#include "op_plugin/api.def"
#undef RUNTIME
#undef HANDLE
#define ACLNN(operator)                                                                                              \
    {"aclnn" #operator "GetWorkspaceSize", (void **)&cann.aclnn##operator##GetWorkspaceSize, LIBRARY_OPERATORS},     \
    {"aclnn" #operator, (void **)&cann.aclnn##operator, LIBRARY_OPERATORS},
#include "op_plugin/operators.def"
#undef ACLNN
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static int open_libraries(const char *folder)
{
    for (int i = 0; i < LIBRARIES; ++i) {
        char path[4096];
        snprintf(path, sizeof path, "%s%s%s", folder ? folder : "", folder ? "/" : "", library_names[i]);
        libraries[i] = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!libraries[i]) {
            snprintf(load_error, sizeof load_error, "%s can't be loaded: %s", path, dlerror());
            return -1;
        }
    }
    return 0;
}

EXPORT int cann_load_table(const char *folder, size_t table_bytes)
{
    if (table_bytes != sizeof cann) {
        snprintf(load_error, sizeof load_error,
                 "the bridge and libop_plugin.so are of different builds (pointer tables of %zu and %zu bytes); build again",
                 table_bytes, sizeof cann);
        return -1;
    }
    if (open_libraries(folder) != 0)
        return -1;
    for (int i = 0; i < ROWS; ++i) {
        *rows[i].slot = dlsym(libraries[rows[i].library], rows[i].name);
        if (!*rows[i].slot && rows[i].library != LIBRARY_OPERATORS) {
            snprintf(load_error, sizeof load_error, "%s has no function %s", library_names[rows[i].library], rows[i].name);
            return -1;
        }
    }
    return 0;
}

EXPORT const char *cann_load_error(void) { return load_error; }

EXPORT const char *cann_library_path(int i)
{
    struct link_map *map;
    if (i < 0 || i >= LIBRARIES || !libraries[i] || dlinfo(libraries[i], RTLD_DI_LINKMAP, &map) != 0)
        return NULL;
    return map->l_name;
}

EXPORT const char *cann_function_name(int i, bool *found)
{
    if (i < 0 || i >= ROWS)
        return NULL;
    *found = *rows[i].slot != NULL;
    return rows[i].name;
}
