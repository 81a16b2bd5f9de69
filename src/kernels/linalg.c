/* Decompositions of matrices. See linalg.h. Complex products are plain ones here (the build says so): matrices with infinities have no
 * decomposition. */
#include "kernels/linalg.h"

#include <complex.h>
#include <math.h>

#include "kernels/isa.h"

enum { JACOBI_SWEEPS = 60 };

#define NUMBER double
#define TAG f64
#define CONJ(x) (x)
#define RE(x) (x)
#define SQUARED(x) ((x) * (x))
#define MAGNITUDE(x) fabs(x)
#include "kernels/linalg_number.h"

#define NUMBER double _Complex
#define TAG c128
#define CONJ(x) conj(x)
#define RE(x) creal(x)
#define SQUARED(x) (creal(x) * creal(x) + cimag(x) * cimag(x))
#define MAGNITUDE(x) (fabs(creal(x)) + fabs(cimag(x)))
#include "kernels/linalg_number.h"

#define TABLE(tag)                                                                                             \
    {lu_##tag,  solve_##tag,    cholesky_##tag,    qr_##tag,        qr_basis_##tag,                              \
     svd_##tag, complete_##tag, determinant_##tag, conjugate_##tag}
const struct linalg_kernels KERNEL_TABLE(linalg_kernels) = {
    .number = {[LINALG_REAL] = TABLE(f64), [LINALG_COMPLEX] = TABLE(c128)},
};
