/* The one loop under all elementwise operators: runs a kernel over operands of any strides and types.
 *
 * Operands are expanded to the output's shape, sorted by the output's strides and coalesced; then the elements are cut into
 * pieces whose size depends on nothing but the shape. Where an operand lies in memory as the kernel wants it (dense along the
 * row, right type), the kernel works in place; else its elements pass through a tile, gathered and converted.
 * Invariant: no input overlaps the output, except as the very same elements (the callers see to that). */
#ifndef ACLNN_MATH_STRIDED_LOOP_H
#define ACLNN_MATH_STRIDED_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>

#include "kernels/cast.h"
#include "kernels/elementwise.h"
#include "kernels/kernels.h"
#include "tensor/tensor.h"

enum {
    LOOP_TILE = 512,   /* elements that always fit a tile */
    LOOP_OPERANDS = 6, /* optimizers update several operands at once */
    LOOP_SCALARS = 12
};

struct loop_operand {
    char *data;
    uint8_t dtype;        /* in memory */
    uint8_t kernel_dtype; /* what the kernel takes or gives */
    uint8_t through;      /* a half type that values are rounded to on the way, or DTYPE_NONE */
    bool read, written;
    bool constant;                    /* one element for all */
    bool linear;                      /* element i lies at data[i] */
    bool direct;                      /* the kernel may work on its memory */
    int64_t strides[TENSOR_MAX_DIMS]; /* elements; innermost last */
};

struct strided_loop {
    elementwise_fn run; /* NULL: a copy of operand 1 to operand 0 */
    union elementwise_scalar scalars[LOOP_SCALARS];
    int operand_count;
    int ndim;
    int64_t count;
    int64_t grain;
    int64_t sizes[TENSOR_MAX_DIMS];
    bool by_rows; /* no tile crosses the end of a row */
    bool tiled;   /* something passes through tiles, so that they limit the step: */
    int64_t tile; /* elements that pass through a tile at once; more of narrow types */
    /* Looks at each tile of operand `checked` before the kernel runs; a hit sets *found. NULL: nothing to look for. */
    bool (*check)(const void *in, size_t n);
    int checked;
    _Atomic bool *found;
    struct loop_operand operands[LOOP_OPERANDS];
    union elementwise_scalar constants[LOOP_OPERANDS];
    struct view views[LOOP_OPERANDS]; /* while it is being built */
};

/* Building: begin, then the output, then the inputs in order, then ready. kernel: ELEMENTWISE_COUNT means a copy. */
void loop_begin(struct strided_loop *loop, enum elementwise_id kernel, enum dtype compute);
/* For a kernel that isn't in the list of elementwise.def. */
void loop_begin_with(struct strided_loop *loop, elementwise_fn run, int cost);
/* The first operand is the output, the others are inputs. */
void loop_add(struct strided_loop *loop, const struct view *view, enum dtype kernel_dtype);
/* Rounds the newest operand, an input, to a half type before the kernel sees it: what torch does to integers among halves. */
void loop_round_through(struct strided_loop *loop, enum dtype half);
/* An operand that is read and written. */
void loop_add_updated(struct strided_loop *loop, const struct view *view, enum dtype kernel_dtype);
/* An input that is one value of type f64, i64 or c128. */
void loop_add_constant(struct strided_loop *loop, enum dtype value_dtype, union elementwise_scalar value, enum dtype kernel_dtype);
/* False when an input doesn't fit the output's shape. */
bool loop_ready(struct strided_loop *loop);

/* Elements [begin, end), on any thread. */
void loop_range(const struct strided_loop *loop, int64_t begin, int64_t end);
/* All elements, over the pool. */
void loop_run(struct strided_loop *loop);

/* Elements of a piece of work, from what an element costs. */
static inline int64_t loop_grain(int cost) { return cost >= 4 ? 4096 : 16384 / (cost ? cost : 1); }

/* n elements in a row from one type to another; halves go through f32. */
void convert_elements(void *out, enum dtype to, const void *in, enum dtype from, int64_t n);

/* Elements [begin, begin + n) of a view, in row-major order, to dense memory of a type; n <= LOOP_TILE. */
void read_elements(const struct view *v, int64_t begin, int64_t n, enum dtype to, void *out);

/* The two most common loops: same shape, or in broadcast to out; any types. Over the pool. */
void copy_view(const struct view *out, const struct view *in);
void fill_view(const struct view *out, enum dtype value_dtype, union elementwise_scalar value);

extern const struct elementwise_info elementwise_infos[ELEMENTWISE_COUNT];

#endif
