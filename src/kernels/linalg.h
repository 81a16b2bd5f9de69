/* Decompositions of small dense matrices, row-major, in double precision: f64 or pairs (c128).
 *
 * Invariant: reflections, signs and pivots are chosen as LAPACK chooses them, so that results are those of torch's CPU where the
 * mathematics leave a choice. (Singular vectors keep their free phase.) */
#ifndef KERNELS_LINALG_H
#define KERNELS_LINALG_H

#include <stdint.h>

enum linalg_number { LINALG_REAL, LINALG_COMPLEX, LINALG_NUMBERS };

struct linalg_functions {
    /* a (n x n) becomes L below the diagonal (whose ones aren't stored) and U; row k was swapped with row pivots[k]. Returns 0, or
     * 1 + the first column without a pivot. */
    int64_t (*lu)(void *a, int64_t n, int64_t *pivots);
    /* b (n x columns) becomes the solution of a x = b for a triangular a. */
    void (*solve)(const void *a, int64_t n, void *b, int64_t columns, int lower, int unit);
    /* a (n x n, its lower triangle) becomes L with a = L L^H and zeros above. Returns 0, or 1 + the first row that isn't positive. */
    int64_t (*cholesky)(void *a, int64_t n);
    /* a (rows x columns) becomes R, with the reflections below the diagonal and in tau (least of rows and columns). */
    void (*qr)(void *a, int64_t rows, int64_t columns, void *tau);
    /* The first `wanted` columns of Q (rows x wanted), from what qr left. */
    void (*qr_basis)(const void *a, int64_t rows, int64_t columns, const void *tau, void *q, int64_t wanted);
    /* w: n rows, each a column (of m elements, m >= n) of the matrix; they become the left singular vectors, v (n x n) the right ones,
     * row by row too, and s the singular values, largest first. Vectors of zeros are completed to a basis. */
    void (*svd)(void *w, int64_t n, int64_t m, void *v, double *s);
    /* Rows [from, count) of basis (rows of `length`, count <= length) become orthonormal to those before and to each other. */
    void (*complete)(void *basis, int64_t from, int64_t count, int64_t length);
    /* log |det| from lu's result and its sign (a number; 0 for a singular matrix). */
    double (*determinant)(const void *a, int64_t n, const int64_t *pivots, void *sign);
    void (*conjugate)(void *a, int64_t count);
};

struct linalg_kernels {
    struct linalg_functions number[LINALG_NUMBERS];
};

#endif
