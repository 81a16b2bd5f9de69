/* The library behind lapack.h: finding it, its functions, and Fortran's way of calling them. */
#define _GNU_SOURCE
#include "aclnn/math/lapack.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include "base/arithmetic.h"
#include "base/env.h"
#include "base/error.h"

typedef int32_t integer;      /* LAPACK's, of the libraries that we take */
typedef const integer *value; /* Fortran takes everything by address, and the lengths of texts behind all else */

/* The functions for one kind of number; numbers are void here. */
struct functions {
    void (*getrf)(value m, value n, void *a, value lda, integer *pivots, integer *info);
    void (*getrs)(const char *trans, value n, value nrhs, const void *a, value lda, const integer *pivots, void *b, value ldb,
                  integer *info, size_t);
    void (*potrf)(const char *uplo, value n, void *a, value lda, integer *info, size_t);
    void (*geqrf)(value m, value n, void *a, value lda, void *tau, void *work, value lwork, integer *info);
    void (*basis)(value m, value n, value k, void *a, value lda, const void *tau, void *work, value lwork, integer *info);
    void (*trsm)(const char *side, const char *uplo, const char *trans, const char *diag, value m, value n, const void *alpha,
                 const void *a, value lda, void *b, value ldb, size_t, size_t, size_t, size_t);
};
/* What differs in more than the kind of number. */
struct decompositions {
    void (*dgesdd)(const char *job, value m, value n, void *a, value lda, double *s, void *u, value ldu, void *vt, value ldvt,
                   void *work, value lwork, integer *iwork, integer *info, size_t);
    void (*zgesdd)(const char *job, value m, value n, void *a, value lda, double *s, void *u, value ldu, void *vt, value ldvt,
                   void *work, value lwork, double *rwork, integer *iwork, integer *info, size_t);
};

/* Written once, under pthread_once; never unloaded. */
static struct functions reals, complexes;
static struct decompositions decompositions;
static char problem[1024]; /* empty when all is there */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const struct functions *functions_of(enum dtype wide) { return wide == DTYPE_C128 ? &complexes : &reals; }

static const struct {
    const char *name;
    void *slot; /* where the function's address goes */
} wanted_functions[] = {
    {"dgetrf", &reals.getrf},           {"zgetrf", &complexes.getrf},       {"dgetrs", &reals.getrs}, {"zgetrs", &complexes.getrs},
    {"dpotrf", &reals.potrf},           {"zpotrf", &complexes.potrf},       {"dgeqrf", &reals.geqrf}, {"zgeqrf", &complexes.geqrf},
    {"dorgqr", &reals.basis},           {"zungqr", &complexes.basis},       {"dtrsm", &reals.trsm},   {"ztrsm", &complexes.trsm},
    {"dgesdd", &decompositions.dgesdd}, {"zgesdd", &decompositions.zgesdd},
};

static void *symbol(void *library, const char *name)
{
    char text[64];
    snprintf(text, sizeof text, "scipy_%s", name);
    void *const found = dlsym(library, text);
    return found ? found : dlsym(library, name); /* a system's LAPACK has plain names */
}

enum { CPU_SETS = 8 }; /* of 1024 CPUs each, as many as Linux takes */

/* OpenBLAS starts a thread for each CPU that it sees while it is being loaded: it sees one. */
static void *open_without_threads(const char *name)
{
    cpu_set_t all[CPU_SETS], one[CPU_SETS];
    const bool known = sched_getaffinity(0, sizeof all, all) == 0;
    CPU_ZERO_S(sizeof one, one);
    for (size_t cpu = 0; known && cpu < 8 * sizeof all && CPU_COUNT_S(sizeof one, one) == 0; ++cpu)
        if (CPU_ISSET_S(cpu, sizeof all, all))
            CPU_SET_S(cpu, sizeof one, one);
    if (known)
        sched_setaffinity(0, sizeof one, one);
    void *const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (known)
        sched_setaffinity(0, sizeof all, all);
    void (*set_threads)(int) = NULL;
    if (library)
        *(void **)&set_threads = symbol(library, "openblas_set_num_threads");
    if (set_threads)
        set_threads(1);
    return library;
}

static void open_library(void)
{
    const char *const named = env_text(ENV_NPU_LAPACK), *const name = named[0] ? named : "libscipy_openblas.so";
    void *const library = open_without_threads(name);
    if (!library) {
        const char *const reason = dlerror();
        snprintf(
            problem, sizeof problem,
            "decompositions are LAPACK's, which can't be loaded: %s; `pip install scipy-openblas32` brings it, NPU_LAPACK=<path "
            "of libscipy_openblas.so> names it where it isn't found",
            reason ? reason : name);
        return;
    }
    for (size_t i = 0; i < sizeof wanted_functions / sizeof wanted_functions[0]; ++i) {
        char text[16];
        snprintf(text, sizeof text, "%s_", wanted_functions[i].name);
        void *const function = symbol(library, text);
        if (!function && !problem[0])
            snprintf(problem, sizeof problem,
                     "decompositions are LAPACK's, but %s has no function %s; the one of `pip install scipy-openblas32` has all",
                     name, text);
        *(void **)wanted_functions[i].slot = function;
    }
}

int lapack_open(const char *operator_name)
{
    pthread_once(&once, open_library);
    return problem[0] ? error_set(ERROR_RT_FEATURE_UNSUPPORTED, operator_name, "%s", problem) : 0;
}

static integer leading(int64_t rows) { return (integer)most(rows, 1); }

bool lapack_fits(int64_t rows, int64_t columns)
{
    int64_t count;
    return rows <= INT32_MAX && columns <= INT32_MAX && !__builtin_mul_overflow(rows, columns, &count) && count <= INT32_MAX;
}

/* What a query for scratch left in its first number. */
static int64_t answer_of(complex64_pair work) { return most((int64_t)work.re, 1); }

int64_t lapack_lu(enum dtype wide, int64_t n, void *a, int32_t *pivots)
{
    const integer size = (integer)n, lead = leading(n);
    integer info = 0;
    functions_of(wide)->getrf(&size, &size, a, &lead, pivots, &info);
    return info;
}

void lapack_lu_solve(enum dtype wide, int64_t n, const void *lu, const int32_t *pivots, void *b, int64_t columns)
{
    const integer size = (integer)n, lead = leading(n), right = (integer)columns;
    integer info = 0;
    functions_of(wide)->getrs("N", &size, &right, lu, &lead, pivots, b, &lead, &info, 1);
}

int64_t lapack_cholesky(enum dtype wide, int64_t n, void *a, bool upper)
{
    const integer size = (integer)n, lead = leading(n);
    integer info = 0;
    functions_of(wide)->potrf(upper ? "U" : "L", &size, a, &lead, &info, 1);
    return info;
}

void lapack_triangular_solve(enum dtype wide, struct lapack_triangle kind, int64_t n, const void *a, int64_t rows, void *b)
{
    const integer size = (integer)n, lead = leading(n), height = (integer)rows, lead_b = leading(rows);
    const complex64_pair one = {1, 0};
    functions_of(wide)->trsm("R", kind.upper ? "U" : "L", kind.transpose ? "T" : "N", kind.unit ? "U" : "N", &height, &size, &one,
                             a, &lead, b, &lead_b, 1, 1, 1, 1);
}

int64_t lapack_qr_room(enum dtype wide, int64_t rows, int64_t columns, int64_t wanted)
{
    const integer m = (integer)rows, n = (integer)columns, lead = leading(rows), q = (integer)wanted,
                  k = (integer)least(least(rows, columns), wanted), ask = -1;
    complex64_pair factor = {0}, basis = {0};
    integer info = 0;
    functions_of(wide)->geqrf(&m, &n, NULL, &lead, NULL, &factor, &ask, &info);
    functions_of(wide)->basis(&m, &q, &k, NULL, &lead, NULL, &basis, &ask, &info);
    return most(answer_of(factor), answer_of(basis));
}

void lapack_qr(enum dtype wide, int64_t rows, int64_t columns, void *a, void *tau, void *work, int64_t room)
{
    const integer m = (integer)rows, n = (integer)columns, lead = leading(rows), lwork = (integer)room;
    integer info = 0;
    functions_of(wide)->geqrf(&m, &n, a, &lead, tau, work, &lwork, &info);
}

void lapack_qr_basis(enum dtype wide, int64_t rows, int64_t wanted, int64_t reflections, void *q, const void *tau, void *work,
                     int64_t room)
{
    const integer m = (integer)rows, n = (integer)wanted, k = (integer)reflections, lead = leading(rows), lwork = (integer)room;
    integer info = 0;
    functions_of(wide)->basis(&m, &n, &k, q, &lead, tau, work, &lwork, &info);
}

/* Doubles beside the numbers of `work`: integers (two to a double), and what only complex matrices want. */
static int64_t svd_integers(int64_t least_side) { return 4 * least_side; }
static int64_t svd_reals(const struct lapack_svd *svd)
{
    const int64_t n = least(svd->rows, svd->columns), m = most(svd->rows, svd->columns);
    if (svd->wide != DTYPE_C128)
        return 0;
    return svd->vectors == VECTORS_NONE ? 7 * n : most(5 * n * n + 5 * n, 2 * m * n + 2 * n * n + n);
}

/* room: -1 asks for it. */
static integer call_svd(const struct lapack_svd *svd, void *work, int64_t room, double *reals_room, integer *integers)
{
    const int64_t k = least(svd->rows, svd->columns);
    const integer m = (integer)svd->rows, n = (integer)svd->columns, lead = leading(m), lwork = (integer)room;
    const integer lead_v = leading(svd->vectors == VECTORS_ALL ? n : k);
    const char job = (char)svd->vectors;
    integer info = 0;
    if (svd->wide == DTYPE_C128)
        decompositions.zgesdd(&job, &m, &n, svd->a, &lead, svd->s, svd->u, &lead, svd->vh, &lead_v, work, &lwork, reals_room,
                              integers, &info, 1);
    else
        decompositions.dgesdd(&job, &m, &n, svd->a, &lead, svd->s, svd->u, &lead, svd->vh, &lead_v, work, &lwork, integers, &info,
                              1);
    return info;
}

int64_t lapack_svd_room(const struct lapack_svd *svd)
{
    const int64_t n = least(svd->rows, svd->columns), m = most(svd->rows, svd->columns);
    if (n > LAPACK_SVD_SIDE || m > INT32_MAX / 128)
        return -1;
    complex64_pair work = {0};
    call_svd(svd, &work, -1, NULL, NULL);
    const int64_t beside = svd_integers(n) + svd_reals(svd), number = svd->wide == DTYPE_C128 ? 2 : 1;
    return answer_of(work) + divide_up(beside, number);
}

bool lapack_svd(const struct lapack_svd *svd)
{
    const int64_t integers = svd_integers(least(svd->rows, svd->columns)), beside = integers + svd_reals(svd);
    double *const first = svd->work; /* integers, reals, then the numbers */
    const int64_t number = svd->wide == DTYPE_C128 ? 2 : 1, taken = divide_up(beside, number);
    return call_svd(svd, first + taken * number, svd->room - taken, first + integers, (integer *)(void *)first) == 0;
}
