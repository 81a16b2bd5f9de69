/* Decompositions of dense matrices by LAPACK, whichever library has it: OpenBLAS of the PyPI package scipy-openblas32, or what
 * NPU_LAPACK names.
 *
 * Matrices are column-major without gaps, numbers double or pairs of them (`wide`: DTYPE_F64 or DTYPE_C128).
 * Invariants: nothing but lapack_open may be called before it has answered 0 once. The library is loaded at the first need, its symbols
 * stay its own, and it has no threads: callers are our pool's. Sizes fit into its 32-bit integers (lapack_fits). */
#ifndef ACLNN_MATH_LAPACK_H
#define ACLNN_MATH_LAPACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"

/* 0, or ERROR_RT_FEATURE_UNSUPPORTED with a text that says what is missing. Thread-safe. */
int lapack_open(const char *operator_name);

/* Whether a matrix of this size can be named to the library. */
bool lapack_fits(int64_t rows, int64_t columns);

/* a (n x n) becomes L below the diagonal (whose ones aren't stored) and U; row k was swapped with row pivots[k] - 1. Returns 0, or 1 + the
 * first column without a pivot. */
int64_t lapack_lu(enum dtype wide, int64_t n, void *a, int32_t *pivots);
/* b (n x columns) becomes the solution of a x = b. */
void lapack_lu_solve(enum dtype wide, int64_t n, const void *lu, const int32_t *pivots, void *b, int64_t columns);

/* The triangle of a (n x n) becomes its Cholesky factor, the other one isn't touched. Returns 0, or 1 + the first row that isn't
 * positive. */
int64_t lapack_cholesky(enum dtype wide, int64_t n, void *a, bool upper);

struct lapack_triangle {
    bool upper, transpose, unit;
};
/* b (rows x n) becomes x with x op(a) = b. */
void lapack_triangular_solve(enum dtype wide, struct lapack_triangle kind, int64_t n, const void *a, int64_t rows, void *b);

/* Numbers of scratch that the two below want; wanted: columns of the basis, 0 for none. */
int64_t lapack_qr_room(enum dtype wide, int64_t rows, int64_t columns, int64_t wanted);
/* a (rows x columns) becomes R, with the reflections below the diagonal and in tau (least of rows and columns). */
void lapack_qr(enum dtype wide, int64_t rows, int64_t columns, void *a, void *tau, void *work, int64_t room);
/* q (rows x wanted), whose first columns are the reflections, becomes the orthonormal columns. */
void lapack_qr_basis(enum dtype wide, int64_t rows, int64_t wanted, int64_t reflections, void *q, const void *tau, void *work,
                     int64_t room);

/* The most that the library can count scratch for: its 32-bit integers hold 10 n^2 and some rows. */
enum { LAPACK_SVD_SIDE = 10000 };
enum lapack_vectors { VECTORS_NONE = 'N', VECTORS_REDUCED = 'S', VECTORS_ALL = 'A' };
/* A singular value decomposition a = u diag(s) vh. */
struct lapack_svd {
    enum dtype wide;
    enum lapack_vectors vectors;
    int64_t rows, columns;
    void *a;   /* is overwritten */
    double *s; /* least of rows and columns, largest first */
    void *u;   /* rows x (least | rows); NULL without vectors */
    void *vh;  /* (least | columns) x columns */
    void *work;
    int64_t room; /* of work: what lapack_svd_room said */
};
/* Numbers of scratch, from the first four members; -1 where a side is too long for the library. */
int64_t lapack_svd_room(const struct lapack_svd *svd);
/* False where it doesn't converge; the results are undefined then. The matrix has no NaN and no Inf, and isn't empty. */
bool lapack_svd(const struct lapack_svd *svd);

#endif
