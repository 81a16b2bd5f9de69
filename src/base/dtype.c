/* Element type table and torch's promotion lattice. See dtype.h. */
#include "base/dtype.h"

const struct dtype_info dtype_infos[DTYPE_ALL_COUNT + 1] = {
#define DTYPE(tag, UPPER, code, type, size, kind_, compute_) \
    [DTYPE_##UPPER] = {.name = #tag, .acl = (code), .bytes = (size), .kind = KIND_##kind_, .compute = DTYPE_##compute_},
#define STORED_DTYPE DTYPE
#include "base/dtype.def"
#undef DTYPE
    [DTYPE_NONE] = {.name = "none", .acl = -1, .bytes = 0, .kind = KIND_BOOL, .compute = DTYPE_NONE},
};

/* Filled from the list; 0 means absent, so entries are stored plus one. */
const uint8_t dtype_codes[DTYPE_ACL_CODES] = {
#define DTYPE(tag, UPPER, code, type, bytes, kind, compute) [code] = DTYPE_##UPPER + 1,
#define STORED_DTYPE DTYPE
#include "base/dtype.def"
#undef DTYPE
};

static enum dtype promote_integers(enum dtype a, enum dtype b)
{
    if (a == b)
        return a;
    /* u8 with any signed type needs the next wider signed type; wider signed types absorb narrower ones. */
    if (a == DTYPE_U8 || b == DTYPE_U8) {
        const enum dtype other = a == DTYPE_U8 ? b : a;
        return other == DTYPE_I8 ? DTYPE_I16 : other;
    }
    return dtype_bytes(a) > dtype_bytes(b) ? a : b;
}

static enum dtype promote_floats(enum dtype a, enum dtype b)
{
    if (a == b)
        return a;
    if (dtype_bytes(a) == 2 && dtype_bytes(b) == 2)
        return DTYPE_F32; /* f16 with bf16 */
    return dtype_bytes(a) > dtype_bytes(b) ? a : b;
}

enum dtype dtype_promote(enum dtype a, enum dtype b)
{
    if (a == b || a >= DTYPE_COUNT || b >= DTYPE_COUNT)
        return a == b ? a : DTYPE_NONE;
    const enum dtype_kind ka = dtype_kind(a), kb = dtype_kind(b);
    if (ka == kb)
        return ka == KIND_INTEGER ? promote_integers(a, b) : ka == KIND_FLOAT ? promote_floats(a, b) : DTYPE_C128;
    const enum dtype high = ka > kb ? a : b, low = ka > kb ? b : a;
    if (high == DTYPE_C64 && low == DTYPE_F64)
        return DTYPE_C128;
    return high;
}
