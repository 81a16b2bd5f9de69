/* Random calls of every aclnn operator under the sanitizers: any shapes, strides, types, formats, NULLs and numbers in phase 1;
 * where phase 1 accepts them and the memory is really there, phase 2 too. Nothing may crash, whatever is refused.
 *
 * An input is a string of bytes; take_* turn the next ones into an argument. Most arguments resemble each other (one base shape
 * and one base type an input), so that phase 1 often says yes. Built with libFuzzer where clang has it (SOFTNPU_SANITIZE=fuzz);
 * otherwise main makes the bytes from a seed:  fuzz_plans [seconds [seed [operator]]] */
#include <time.h>

#include "acl/acl.h"
#include "aclnnop/all_operators.h"
#include "check.h"

enum { MAX_TENSORS = 64, MAX_ELEMENTS = 4096, MAX_WORKSPACE = 1 << 26, MAX_DIMS = 8, INPUT_BYTES = 400 };

/* What aclCreateTensor was given: a later argument may be the same tensor (in place). */
struct description {
    int64_t sizes[MAX_DIMS + 2], strides[MAX_DIMS + 2], offset, room;
    int ndim;
    int32_t dtype;
    aclFormat format;
    bool plain, exists;
    void *memory;
};

struct bytes {
    const uint8_t *data;
    size_t left;
    int64_t base_sizes[MAX_DIMS];
    int base_ndim, base_dtype;
    bool runnable;             /* every view lies in memory that exists */
    void *blocks[MAX_TENSORS]; /* heap memory behind the tensors, to free after the run */
    int block_count;
    struct description latest;
    const void *handles[MAX_TENSORS]; /* to destroy; members of a list belong to the list */
    aclnnStatus (*destroy[MAX_TENSORS])(const void *);
    int handle_count;
};

struct operator_calls {
    const char *name;
    int (*plan)(struct bytes *b, uint64_t *size, aclOpExecutor **executor);
    int (*launch)(void *workspace, uint64_t size, aclOpExecutor *executor, aclrtStream stream);
};

static uint8_t take_byte(struct bytes *b)
{
    if (b->left == 0)
        return 0;
    --b->left;
    return *b->data++;
}

static uint64_t take_word(struct bytes *b)
{
    uint64_t word = 0;
    for (int i = 0; i < 8; ++i)
        word = word << 8 | take_byte(b);
    return word;
}

static bool one_in(struct bytes *b, int n) { return take_byte(b) % n == 0; }

/* --- numbers --------------------------------------------------------------------------------------------------------- */

static int64_t take_int64_t(struct bytes *b)
{
    static const int64_t edges[] = {INT64_MAX, INT64_MIN, INT64_MIN + 1, INT32_MAX,  INT32_MIN,  1ll << 31,
                                    1ll << 32, 1ll << 62, 1000,          -1ll << 33, 4294967295, 255};
    const uint8_t kind = take_byte(b);
    if (kind < 200)
        return (int64_t)(kind % 8) - 2;
    if (kind < 220 && b->base_ndim > 0)
        return b->base_sizes[kind % b->base_ndim];
    if (kind < 250)
        return edges[kind % (sizeof edges / sizeof *edges)];
    return (int64_t)take_word(b);
}

static uint64_t take_uint64_t(struct bytes *b) { return (uint64_t)take_int64_t(b); }
static inline int32_t take_int32_t(struct bytes *b) { return (int32_t)take_int64_t(b); }
static int take_int(struct bytes *b) { return (int)take_int64_t(b); }
static int8_t take_int8_t(struct bytes *b) { return (int8_t)take_int64_t(b); }
static bool take_bool(struct bytes *b) { return take_byte(b) & 1; }

static double take_double(struct bytes *b)
{
    static const double edges[] = {0,   -0.0,  1,      -1,     0.5,  2,     3,    1e-5, INFINITY, -INFINITY,
                                   NAN, 1e308, -1e308, 5e-324, 1e19, -1e19, 0.25, 0.9,  1e10,     255};
    const uint8_t kind = take_byte(b);
    if (kind < 250)
        return edges[kind % (sizeof edges / sizeof *edges)];
    const uint64_t word = take_word(b);
    double value;
    memcpy(&value, &word, sizeof value);
    return value;
}
static float take_float(struct bytes *b)
{
    const double value = take_double(b);
    return value > 3e38 ? INFINITY : value < -3e38 ? -INFINITY : (float)value;
}

static const char *take_char(struct bytes *b)
{
    static const char *const known[] = {
        NULL,   "",     "none", "tanh", "mean", "sum",  "BSH", "SBH",
        "BSND", "BNSD", "TND",  "iou",  "NTD",  "rint", "xyz", "a text that is longer than any name"};
    return known[take_byte(b) % 16];
}

static const int32_t dtypes[] = {ACL_FLOAT,         ACL_FLOAT16,     ACL_BF16,    ACL_DOUBLE,  ACL_INT64,    ACL_INT32,
                                 ACL_INT16,         ACL_INT8,        ACL_UINT8,   ACL_BOOL,    16 /* c64 */, 17 /* c128 */,
                                 ACL_FLOAT8_E4M3FN, ACL_FLOAT8_E5M2, 29 /* i4 */, 7 /* u16 */, -1,           1000};

static int32_t take_dtype(struct bytes *b)
{
    const uint8_t kind = take_byte(b);
    if (kind < 190)
        return b->base_dtype;
    return dtypes[kind < 230 ? kind % 6 : kind % (sizeof dtypes / sizeof *dtypes)];
}
static aclDataType take_aclDataType(struct bytes *b) { return (aclDataType)take_dtype(b); }

static size_t dtype_size(int32_t dtype)
{
    const size_t bytes = aclDataTypeSize((aclDataType)dtype);
    return bytes ? bytes : 8;
}

/* --- tensors ---------------------------------------------------------------------------------------------------------- */

static int64_t take_size(struct bytes *b)
{
    static const int64_t rare[] = {0, 1, 17, 64, 130, -1, INT64_MAX, 1ll << 31, 1ll << 62, 4097, INT64_MIN, 300};
    const uint8_t kind = take_byte(b);
    return kind < 225 ? kind % 6 : rare[kind % (sizeof rare / sizeof *rare)];
}

/* The base shape, or one of its relatives: broadcast, without a dimension, with one more, with one changed; or any shape. */
static int take_sizes(struct bytes *b, int64_t *sizes)
{
    const uint8_t kind = take_byte(b);
    int n = b->base_ndim;
    memcpy(sizes, b->base_sizes, sizeof b->base_sizes);
    if (kind < 130 || (n == 0 && kind < 200))
        return n;
    if (kind < 150) {
        sizes[take_byte(b) % n] = 1;
    } else if (kind < 170) {
        const int gone = take_byte(b) % n;
        memmove(sizes + gone, sizes + gone + 1, (size_t)(n - gone - 1) * sizeof *sizes);
        --n;
    } else if (kind < 185) {
        sizes[take_byte(b) % n] = take_size(b);
    } else if (kind < 195) {
        sizes[0] = 1;
        n = 1;
    } else if (kind < 205) {
        sizes[0] = sizes[take_byte(b) % (n ? n : 1)];
        n = 1;
    } else if (kind < 215) {
        n = 0;
    } else {
        n = take_byte(b) % (kind < 250 ? 5 : MAX_DIMS + 2);
        for (int i = 0; i < n && i < MAX_DIMS; ++i)
            sizes[i] = take_size(b);
    }
    return n;
}

static void row_major(const int64_t *sizes, int n, int64_t *strides, bool reversed)
{
    uint64_t stride = 1;
    for (int i = 0; i < n; ++i) {
        const int d = reversed ? i : n - 1 - i;
        strides[d] = (int64_t)stride;
        stride *= sizes[d] > 0 ? (uint64_t)sizes[d] : 1;
    }
}

static void take_strides(struct bytes *b, const int64_t *sizes, int n, int64_t *strides)
{
    const uint8_t kind = take_byte(b);
    row_major(sizes, n, strides, kind >= 150 && kind < 190);
    if (kind >= 190 && kind < 215)
        for (int i = 0; i < n; ++i)
            strides[i] *= 2;
    else if (kind >= 215 && n > 0)
        strides[take_byte(b) % n] = kind < 230 ? 0 : take_int64_t(b);
}

/* Elements before the first and behind the last one of the view; false when they don't fit a small block. */
static bool view_reach(const int64_t *sizes, const int64_t *strides, int n, int64_t *low, int64_t *high)
{
    __int128 before = 0, behind = 0, count = 1;
    for (int i = 0; i < n; ++i) {
        if (sizes[i] < 0 || sizes[i] > MAX_ELEMENTS)
            return false;
        count *= sizes[i];
        if (count > MAX_ELEMENTS)
            return false;
        const __int128 reach = (__int128)(sizes[i] - 1) * strides[i];
        if (sizes[i] > 1)
            *(reach < 0 ? &before : &behind) += reach;
    }
    if (behind - before >= 4 * MAX_ELEMENTS)
        return false;
    *low = count ? (int64_t)-before : 0;
    *high = count ? (int64_t)behind + 1 : 0;
    return true;
}

static void *new_block(struct bytes *b, size_t size, int32_t dtype)
{
    if (b->block_count == MAX_TENSORS)
        return NULL;
    uint8_t *const block = malloc(size ? size : 1);
    const uint8_t kind = take_byte(b);
    uint32_t state = kind * 2654435761u + 1;
    for (size_t i = 0; i < size; ++i) {
        state = state * 1664525u + 1013904223u;
        block[i] = (uint8_t)(state >> 24);
    }
    const bool integers = dtype == ACL_INT64 || dtype == ACL_INT32 || dtype == ACL_INT16 || dtype == ACL_INT8 || dtype == ACL_UINT8;
    if (kind < 200 && (integers || dtype == ACL_BOOL)) { /* mostly valid as indices; bools are 0 or 1 */
        const size_t width = dtype_size(dtype);
        for (size_t i = 0; i + width <= size; i += width) {
            const uint8_t small = block[i] % (dtype == ACL_BOOL ? 2 : 3);
            memset(block + i, 0, width);
            block[i] = small;
        }
    } else if (kind < 120 && dtype == ACL_FLOAT) {
        for (size_t i = 0; i + sizeof(float) <= size; i += sizeof(float)) {
            const float value = (float)block[i] / 64 - 2;
            memcpy(block + i, &value, sizeof value);
        }
    }
    b->blocks[b->block_count++] = block;
    return block;
}

static void describe_tensor(struct bytes *b, struct description *d)
{
    int64_t low = 0, high = 0;
    *d = (struct description){.exists = true};
    d->ndim = take_sizes(b, d->sizes);
    d->dtype = take_dtype(b);
    d->plain = one_in(b, 4); /* without strides, which means row-major */
    const int strided = d->ndim < MAX_DIMS ? d->ndim : MAX_DIMS;
    if (d->plain)
        row_major(d->sizes, strided, d->strides, false);
    else
        take_strides(b, d->sizes, strided, d->strides);
    d->offset = one_in(b, 5) ? take_byte(b) % 4 : 0;
    if (one_in(b, 60))
        d->offset = take_int64_t(b);
    const bool small = d->ndim <= MAX_DIMS && view_reach(d->sizes, d->strides, d->ndim, &low, &high);
    const bool fits = small && d->offset >= 0 && d->offset < 8;
    d->room = fits ? low + high + d->offset : 0;
    d->memory = one_in(b, 60) ? NULL : fits ? new_block(b, (size_t)d->room * dtype_size(d->dtype), d->dtype) : (void *)0x1000;
    d->offset += low;
    d->format = one_in(b, 8) ? (aclFormat)(take_byte(b) % 56 - 1) : ACL_FORMAT_ND;
    b->runnable &= fits;
}

static aclTensor *make_tensor(struct bytes *b)
{
    if (one_in(b, 24))
        return NULL;
    struct description *const d = &b->latest;
    if (!d->exists || !one_in(b, 16))
        describe_tensor(b, d);
    return aclCreateTensor(d->sizes, (uint64_t)d->ndim, (aclDataType)d->dtype, d->plain ? NULL : d->strides, d->offset, d->format,
                           &d->room, 1, d->memory);
}

static void keep(struct bytes *b, const void *handle, aclnnStatus (*destroy)(const void *))
{
    if (!handle)
        return;
    b->handles[b->handle_count] = handle;
    b->destroy[b->handle_count++] = destroy;
}

#define DESTROYER(kind) \
    static aclnnStatus destroy_##kind(const void *handle) { return aclDestroy##kind(handle); }
DESTROYER(Tensor)
DESTROYER(Scalar)
DESTROYER(IntArray)
DESTROYER(BoolArray)
DESTROYER(TensorList)
DESTROYER(ScalarList)

static aclTensor *take_aclTensor(struct bytes *b)
{
    aclTensor *const tensor = make_tensor(b);
    keep(b, tensor, destroy_Tensor);
    return tensor;
}

static aclScalar *make_scalar(struct bytes *b)
{
    _Alignas(16) uint8_t value[16] = {0};
    if (one_in(b, 30))
        return NULL;
    const uint8_t kind = take_byte(b);
    if (kind < 128) {
        const double number = take_double(b);
        memcpy(value, &number, sizeof number);
        return aclCreateScalar(value, ACL_DOUBLE);
    }
    if (kind < 220) {
        const int64_t number = take_int64_t(b);
        memcpy(value, &number, sizeof number);
        return aclCreateScalar(value, ACL_INT64);
    }
    const double number = take_double(b);
    memcpy(value, &number, sizeof number);
    memcpy(value + 8, &number, sizeof number);
    return aclCreateScalar(value, (aclDataType)dtypes[kind % (sizeof dtypes / sizeof *dtypes)]);
}

static aclScalar *take_aclScalar(struct bytes *b)
{
    aclScalar *const scalar = make_scalar(b);
    keep(b, scalar, destroy_Scalar);
    return scalar;
}

/* --- arrays and lists --------------------------------------------------------------------------------------------------- */

static int take_length(struct bytes *b)
{
    const uint8_t kind = take_byte(b);
    return kind < 220 ? kind % 4 : kind < 250 ? b->base_ndim : kind % 11;
}

static aclIntArray *take_aclIntArray(struct bytes *b)
{
    int64_t values[16] = {0};
    if (one_in(b, 16))
        return NULL;
    const bool as_shape = one_in(b, 5);
    const int n = as_shape ? b->base_ndim : take_length(b);
    for (int i = 0; i < n; ++i)
        values[i] = as_shape ? b->base_sizes[i] : take_int64_t(b);
    aclIntArray *const array = aclCreateIntArray(values, (uint64_t)n);
    keep(b, array, destroy_IntArray);
    return array;
}

static aclBoolArray *take_aclBoolArray(struct bytes *b)
{
    bool values[16] = {false};
    if (one_in(b, 24))
        return NULL;
    const int n = one_in(b, 4) ? take_length(b) : 3;
    for (int i = 0; i < n; ++i)
        values[i] = take_bool(b);
    aclBoolArray *const array = aclCreateBoolArray(values, (uint64_t)n);
    keep(b, array, destroy_BoolArray);
    return array;
}

static aclTensorList *take_aclTensorList(struct bytes *b)
{
    aclTensor *tensors[16] = {NULL};
    if (one_in(b, 24))
        return NULL;
    const int n = one_in(b, 4) ? take_length(b) : 2;
    for (int i = 0; i < n; ++i)
        tensors[i] = make_tensor(b);
    aclTensorList *const list = aclCreateTensorList(tensors, (uint64_t)n);
    if (!list)
        for (int i = 0; i < n; ++i)
            aclDestroyTensor(tensors[i]);
    keep(b, list, destroy_TensorList);
    return list;
}

static aclScalarList *take_aclScalarList(struct bytes *b)
{
    aclScalar *scalars[16] = {NULL};
    if (one_in(b, 24))
        return NULL;
    const int n = one_in(b, 4) ? take_length(b) : 2;
    for (int i = 0; i < n; ++i)
        scalars[i] = make_scalar(b);
    aclScalarList *const list = aclCreateScalarList(scalars, (uint64_t)n);
    if (!list)
        for (int i = 0; i < n; ++i)
            aclDestroyScalar(scalars[i]);
    keep(b, list, destroy_ScalarList);
    return list;
}

#include "fuzz_calls.h"

enum { OPERATOR_CALLS = sizeof operator_calls / sizeof *operator_calls };

/* --- one input ------------------------------------------------------------------------------------------------------------ */

static struct {
    uint64_t inputs, accepted, runs, failed;
} done;
static uint64_t accepted_of[OPERATOR_CALLS];
static aclrtStream stream;

static void start(void)
{
    if (stream)
        return;
    if (aclInit(NULL) || aclrtSetDevice(0) || aclrtCreateStream(&stream)) {
        fprintf(stderr, "no device: %s\n", aclGetRecentErrMsg());
        abort();
    }
}

/* A refusal has a code that is documented, and words. */
static void judge(const struct operator_calls *calls, int code)
{
    const char *const words = aclGetRecentErrMsg();
    const bool known = code == 161001 || code == 161002 || code == 200000 || code == 561000;
    if (!known || !words || !*words) {
        fprintf(stderr, "aclnn%s: code %d with words \"%s\"\n", calls->name, code, words ? words : "");
        abort();
    }
}

static void launch(const struct operator_calls *calls, struct bytes *b, uint64_t size, aclOpExecutor *executor)
{
    if (!b->runnable || size > MAX_WORKSPACE) {
        aclDestroyAclOpExecutor(executor);
        return;
    }
    void *const workspace = size ? aligned_alloc(64, (size + 63) / 64 * 64) : NULL;
    ++done.runs;
    int code = calls->launch(workspace, size, executor, stream);
    code = code ? code : aclrtSynchronizeStream(stream);
    if (code) {
        ++done.failed;
        (void)aclGetRecentErrMsg();
        (void)aclrtGetLastError(ACL_RT_THREAD_LEVEL);
    }
    free(workspace);
}

static void run_input(const uint8_t *data, size_t size, int chosen)
{
    struct bytes *const b = calloc(1, sizeof *b);
    start();
    b->data = data;
    b->left = size;
    b->runnable = true;
    const unsigned number = take_byte(b) << 8 | take_byte(b);
    const int which = chosen >= 0 ? chosen : (int)(number % OPERATOR_CALLS);
    const struct operator_calls *const calls = &operator_calls[which];
    const uint8_t type = take_byte(b);
    b->base_dtype = dtypes[type < 140 ? 0 : type % 14];
    b->base_ndim = take_byte(b) % 6;
    for (int i = 0; i < b->base_ndim; ++i)
        b->base_sizes[i] = take_size(b);
    uint64_t bytes = 0;
    aclOpExecutor *executor = NULL;
    const int code = calls->plan(b, &bytes, &executor);
    ++done.inputs;
    if (code == 0) {
        ++done.accepted;
        ++accepted_of[which];
        launch(calls, b, bytes, executor);
    } else {
        judge(calls, code);
    }
    for (int i = 0; i < b->handle_count; ++i)
        b->destroy[i](b->handles[i]);
    for (int i = 0; i < b->block_count; ++i)
        free(b->blocks[i]);
    free(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    run_input(data, size, -1);
    return 0;
}

#ifndef FUZZ_WITH_LIBFUZZER
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static int find_operator(const char *name)
{
    for (int i = 0; name && i < OPERATOR_CALLS; ++i)
        if (strcmp(operator_calls[i].name, name) == 0)
            return i;
    return -1;
}

int main(int count, char **words)
{
    const double seconds = count > 1 ? atof(words[1]) : 20;
    uint64_t seed = count > 2 ? strtoull(words[2], NULL, 0) : 1;
    const int chosen = find_operator(count > 3 ? words[3] : NULL);
    const bool talk = getenv("FUZZ_TALK") != NULL;
    const time_t begun = time(NULL);
    for (uint64_t input = 0; difftime(time(NULL), begun) < seconds; ++input) {
        uint8_t data[INPUT_BYTES];
        uint64_t state = (seed + input) * 0x9e3779b97f4a7c15u + 88172645463325252u;
        for (size_t i = 0; i < sizeof data; ++i)
            data[i] = (uint8_t)(next_random(&state) >> 40);
        if (talk)
            fprintf(stderr, "input %llu\n", (unsigned long long)(seed + input));
        /* in turn, so that every operator gets the same share */
        run_input(data, sizeof data, chosen >= 0 ? chosen : (int)((seed + input) % OPERATOR_CALLS));
    }
    int never = 0;
    for (int i = 0; i < OPERATOR_CALLS; ++i)
        if (accepted_of[i] == 0 && (chosen < 0 || chosen == i)) {
            ++never;
            if (count > 2)
                printf("never accepted: %s\n", operator_calls[i].name);
        }
    printf(
        "%llu inputs, %llu accepted by phase 1, %llu run (%llu of them failed while running); %d of %d operators never accepted\n",
        (unsigned long long)done.inputs, (unsigned long long)done.accepted, (unsigned long long)done.runs,
        (unsigned long long)done.failed, never, OPERATOR_CALLS);
    return 0;
}
#endif
