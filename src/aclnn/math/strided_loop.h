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

enum { LOOP_TILE = 512 }; /* elements that pass through a tile at once */

struct loop_operand {
    char *data;
    uint8_t dtype;        /* in memory */
    uint8_t kernel_dtype; /* what the kernel takes or gives */
    bool constant;        /* one element for all */
    bool linear;          /* element i lies at data[i] */
    bool direct;          /* the kernel may work on its memory */
    int64_t strides[TENSOR_MAX_DIMS]; /* elements; innermost last */
};

struct strided_loop {
    elementwise_fn run; /* NULL: a copy of operand 1 to operand 0 */
    union elementwise_scalar scalars[ELEMENTWISE_SCALARS];
    int operand_count;
    int ndim;
    int64_t count;
    int64_t grain;
    int64_t sizes[TENSOR_MAX_DIMS];
    bool by_rows; /* no tile crosses the end of a row */
    bool tiled;   /* something passes through tiles, so that they limit the step */
    bool (*has_zero)(const void *in, size_t n); /* of the last operand, when a zero there is an error; else NULL */
    _Atomic bool zero_found;
    struct loop_operand operands[ELEMENTWISE_OPERANDS];
    union elementwise_scalar constants[ELEMENTWISE_OPERANDS];
    struct view views[ELEMENTWISE_OPERANDS]; /* while it is being built */
};

/* Building: begin, then the output, then the inputs in order, then ready. kernel: ELEMENTWISE_COUNT means a copy. */
void loop_begin(struct strided_loop *loop, enum elementwise_id kernel, enum dtype compute);
void loop_add(struct strided_loop *loop, const struct view *view, enum dtype kernel_dtype);
/* An input that is one value of type f64, i64 or c128. */
void loop_add_constant(struct strided_loop *loop, enum dtype value_dtype, union elementwise_scalar value,
                       enum dtype kernel_dtype);
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

/* The two most common loops: same shape, or in broadcast to out; any types. Over the pool. */
void copy_view(const struct view *out, const struct view *in);
void fill_view(const struct view *out, enum dtype value_dtype, union elementwise_scalar value);

extern const struct elementwise_info elementwise_infos[ELEMENTWISE_COUNT];

#endif
