/* Attributes of the operators of before aclnn: names with values, kept in the order in which they came. See acl/acl_op.h.
 *
 * A set of attributes belongs to who created it and isn't shared between threads. */
#include "tensor/attributes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum kind { KIND_BOOL, KIND_INT, KIND_FLOAT, KIND_STRING, KIND_DATA_TYPE };

struct attribute {
    struct attribute *next;
    enum kind kind;
    bool list;
    int count;  /* values, of all lists together */
    char *name; /* owned, like values */
    void *values;
};

struct aclopAttr {
    struct attribute *first;
};

aclopAttr *aclopCreateAttr(void)
{
    aclopAttr *const attributes = calloc(1, sizeof *attributes);
    if (!attributes)
        error_set(ERROR_BAD_ALLOC, __func__, "out of host memory");
    return attributes;
}

static void release(struct attribute *attribute)
{
    if (!attribute)
        return;
    free(attribute->name);
    free(attribute->values);
    free(attribute);
}

void aclopDestroyAttr(const aclopAttr *attr)
{
    for (struct attribute *at = attr ? attr->first : NULL; at;) {
        struct attribute *const next = at->next;
        release(at);
        at = next;
    }
    free((void *)attr);
}

/* Puts it at the end, or in the place of the one of the same name. */
static void insert(aclopAttr *attributes, struct attribute *added)
{
    struct attribute **link = &attributes->first;
    while (*link && strcmp((*link)->name, added->name) != 0)
        link = &(*link)->next;
    if (*link) {
        added->next = (*link)->next;
        release(*link);
    }
    *link = added;
}

static int add(const char *function, aclopAttr *attributes, const char *name, struct attribute value, const void *data,
               size_t element)
{
    if (!attributes || !name)
        return error_set(ERROR_INVALID_PARAM, function, "%s is null", attributes ? "attrName" : "attr");
    if (value.count < 0 || (value.count > 0 && !data))
        return error_set(ERROR_INVALID_PARAM, function, "attribute %s: %d values, and the pointer to them is %p", name, value.count,
                         data);
    const size_t bytes = (size_t)value.count * element;
    struct attribute *const added = calloc(1, sizeof *added);
    if (added) {
        *added = value;
        added->name = strdup(name);
        added->values = malloc(bytes ? bytes : 1);
    }
    if (!added || !added->name || !added->values) {
        release(added);
        return error_set(ERROR_BAD_ALLOC, function, "out of host memory");
    }
    if (bytes)
        memcpy(added->values, data, bytes);
    insert(attributes, added);
    return 0;
}

aclError aclopSetAttrBool(aclopAttr *attr, const char *attrName, uint8_t attrValue)
{
    return add(__func__, attr, attrName, (struct attribute){.kind = KIND_BOOL, .count = 1}, &attrValue, sizeof attrValue);
}

aclError aclopSetAttrInt(aclopAttr *attr, const char *attrName, int64_t attrValue)
{
    return add(__func__, attr, attrName, (struct attribute){.kind = KIND_INT, .count = 1}, &attrValue, sizeof attrValue);
}

aclError aclopSetAttrFloat(aclopAttr *attr, const char *attrName, float attrValue)
{
    return add(__func__, attr, attrName, (struct attribute){.kind = KIND_FLOAT, .count = 1}, &attrValue, sizeof attrValue);
}

aclError aclopSetAttrDataType(aclopAttr *attr, const char *attrName, aclDataType attrValue)
{
    const int64_t value = attrValue;
    return add(__func__, attr, attrName, (struct attribute){.kind = KIND_DATA_TYPE, .count = 1}, &value, sizeof value);
}

aclError aclopSetAttrString(aclopAttr *attr, const char *attrName, const char *attrValue)
{
    REQUIRE(attrValue, ERROR_INVALID_PARAM, "attrValue is null");
    return add(__func__, attr, attrName, (struct attribute){.kind = KIND_STRING, .count = (int)strlen(attrValue) + 1}, attrValue,
               1);
}

aclError aclopSetAttrListBool(aclopAttr *attr, const char *attrName, int numValues, const uint8_t *values)
{
    return add(__func__, attr, attrName, (struct attribute){.kind = KIND_BOOL, .list = true, .count = numValues}, values, 1);
}

aclError aclopSetAttrListInt(aclopAttr *attr, const char *attrName, int numValues, const int64_t *values)
{
    return add(__func__, attr, attrName, (struct attribute){.kind = KIND_INT, .list = true, .count = numValues}, values,
               sizeof *values);
}

aclError aclopSetAttrListFloat(aclopAttr *attr, const char *attrName, int numValues, const float *values)
{
    return add(__func__, attr, attrName, (struct attribute){.kind = KIND_FLOAT, .list = true, .count = numValues}, values,
               sizeof *values);
}

/* Kept as one list: the lengths of its parts are in nobody's interest here. */
aclError aclopSetAttrListListInt(aclopAttr *attr, const char *attrName, int numLists, const int *numValues,
                                 const int64_t *const values[])
{
    int total = 0;
    REQUIRE(numLists >= 0 && (numLists == 0 || (numValues && values)), ERROR_INVALID_PARAM, "%d lists; numValues is %p, values %p",
            numLists, (const void *)numValues, (const void *)values);
    for (int i = 0; i < numLists; ++i) {
        REQUIRE(numValues[i] >= 0 && (numValues[i] == 0 || values[i]), ERROR_INVALID_PARAM, "list %d: %d values at %p", i,
                numValues[i], (const void *)values[i]);
        total += numValues[i];
    }
    int64_t *const joined = malloc((size_t)total * sizeof *joined + 1);
    REQUIRE(joined, ERROR_BAD_ALLOC, "out of host memory");
    for (int i = 0, at = 0; i < numLists; ++i)
        for (int k = 0; k < numValues[i]; ++k)
            joined[at++] = values[i][k];
    const int code =
        add(__func__, attr, attrName, (struct attribute){.kind = KIND_INT, .list = true, .count = total}, joined, sizeof *joined);
    free(joined);
    return code;
}

/* --- text --------------------------------------------------------------------------------------------------------- */

static int put_value(char *text, size_t room, const struct attribute *attribute, int i)
{
    switch (attribute->kind) {
    case KIND_BOOL: return snprintf(text, room, "%s", ((const uint8_t *)attribute->values)[i] ? "true" : "false");
    case KIND_FLOAT: return snprintf(text, room, "%g", (double)((const float *)attribute->values)[i]);
    case KIND_STRING: return snprintf(text, room, "\"%s\"", (const char *)attribute->values);
    default: return snprintf(text, room, "%lld", (long long)((const int64_t *)attribute->values)[i]);
    }
}

void attributes_describe(const aclopAttr *attributes, char *text, size_t room)
{
    size_t used = 0;
    text[0] = '\0';
    for (const struct attribute *at = attributes ? attributes->first : NULL; at && used < room; at = at->next) {
        used += (size_t)snprintf(text + used, room - used, "%s%s=%s", used ? ", " : "", at->name, at->list ? "[" : "");
        const int values = at->kind == KIND_STRING ? 1 : at->count;
        for (int i = 0; i < values && used < room; ++i) {
            used += i ? (size_t)snprintf(text + used, room - used, ",") : 0;
            used += used < room ? (size_t)put_value(text + used, room - used, at, i) : 0;
        }
        if (at->list && used < room)
            used += (size_t)snprintf(text + used, room - used, "]");
    }
}
