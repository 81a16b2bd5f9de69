/* Element types: the dense index used by every table, and what is known about each type.
 *
 * Invariant: dtype.def is the only list; enum, sizes, names and the mapping to aclDataType all come from it. */
#ifndef BASE_DTYPE_H
#define BASE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Complex numbers as plain pairs: C's _Complex multiplication checks for Inf on every product and doesn't vectorise. */
typedef struct {
    float re, im;
} complex32_pair;
typedef struct {
    double re, im;
} complex64_pair;

enum dtype {
#define DTYPE(tag, UPPER, code, type, bytes, kind, compute) DTYPE_##UPPER,
#include "base/dtype.def"
#undef DTYPE
    DTYPE_COUNT, /* of the types that operators compute with */
    DTYPE_BEFORE_STORED = DTYPE_COUNT - 1,
#define DTYPE(...)
#define STORED_DTYPE(tag, UPPER, code, type, bytes, kind, compute) DTYPE_##UPPER,
#include "base/dtype.def"
#undef DTYPE
    DTYPE_ALL_COUNT,             /* with those that are only stored: what tables of moves and conversions are sized by */
    DTYPE_NONE = DTYPE_ALL_COUNT /* a type that we know nothing of, or that an operator doesn't take */
};

/* Ordered as torch promotes: a later kind absorbs an earlier one. */
enum dtype_kind { KIND_BOOL, KIND_INTEGER, KIND_FLOAT, KIND_COMPLEX };

struct dtype_info {
    const char *name; /* "f32" */
    int32_t acl;      /* aclDataType code */
    uint8_t bytes;    /* per element */
    uint8_t kind;     /* enum dtype_kind */
    uint8_t compute;  /* enum dtype in which arithmetic runs */
};

extern const struct dtype_info dtype_infos[DTYPE_ALL_COUNT + 1];

/* DTYPE_NONE for a code that isn't in the list. */
enum { DTYPE_ACL_CODES = 64 };
extern const uint8_t dtype_codes[DTYPE_ACL_CODES];
static inline enum dtype dtype_from_acl(int32_t code)
{
    return code < 0 || code >= DTYPE_ACL_CODES || dtype_codes[code] == 0 ? DTYPE_NONE : (enum dtype)(dtype_codes[code] - 1);
}

/* The type that torch's promotion gives two tensors of at least one dimension; types that are only stored promote with nothing. */
enum dtype dtype_promote(enum dtype a, enum dtype b);

static inline size_t dtype_bytes(enum dtype d) { return dtype_infos[d].bytes; }
static inline const char *dtype_name(enum dtype d) { return dtype_infos[d].name; }
static inline enum dtype_kind dtype_kind(enum dtype d) { return (enum dtype_kind)dtype_infos[d].kind; }
static inline enum dtype dtype_compute(enum dtype d) { return (enum dtype)dtype_infos[d].compute; }
static inline bool dtype_is_stored_only(enum dtype d) { return d >= DTYPE_COUNT && d < DTYPE_ALL_COUNT; }
static inline bool dtype_is_floating(enum dtype d) { return dtype_infos[d].kind == KIND_FLOAT; }

#endif
