/* The functions of linalg.h for one kind of number. A template: NUMBER its type, TAG its name, and
 *   CONJ(x), RE(x)   conjugate and real part
 *   SQUARED(x)       |x|^2
 *   MAGNITUDE(x)     what pivots are compared by, as LAPACK does */
#define NAME(function) ISA_PASTE(function, TAG)

/* y -= factor * x */
static inline void NAME(subtract)(NUMBER *y, const NUMBER *x, NUMBER factor, int64_t n)
{
    INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < n; ++i)
        y[i] -= factor * x[i];
}

static inline void NAME(swap_rows)(NUMBER *a, NUMBER *b, int64_t n)
{
    for (int64_t i = 0; i < n; ++i) {
        const NUMBER kept = a[i];
        a[i] = b[i];
        b[i] = kept;
    }
}

static int64_t NAME(lu)(void *matrix, int64_t n, int64_t *pivots)
{
    NUMBER *const a = matrix;
    int64_t missing = 0;
    for (int64_t k = 0; k < n; ++k) {
        int64_t best = k;
        for (int64_t i = k + 1; i < n; ++i)
            if (MAGNITUDE(a[i * n + k]) > MAGNITUDE(a[best * n + k]))
                best = i;
        pivots[k] = best;
        if (a[best * n + k] == 0) {
            missing = missing ? missing : k + 1;
            continue;
        }
        if (best != k)
            NAME(swap_rows)(a + k * n, a + best * n, n);
        for (int64_t i = k + 1; i < n; ++i) {
            const NUMBER factor = a[i * n + k] /= a[k * n + k];
            NAME(subtract)(a + i * n + k + 1, a + k * n + k + 1, factor, n - k - 1);
        }
    }
    return missing;
}

static void NAME(solve)(const void *matrix, int64_t n, void *values, int64_t columns, int lower, int unit)
{
    const NUMBER *const a = matrix;
    NUMBER *const b = values;
    for (int64_t step = 0; step < n; ++step) {
        const int64_t i = lower ? step : n - 1 - step;
        for (int64_t k = lower ? 0 : i + 1; k < (lower ? i : n); ++k)
            NAME(subtract)(b + i * columns, b + k * columns, a[i * n + k], columns);
        for (int64_t c = 0; !unit && c < columns; ++c)
            b[i * columns + c] /= a[i * n + i];
    }
}

static int64_t NAME(cholesky)(void *matrix, int64_t n)
{
    NUMBER *const a = matrix;
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j) {
            NUMBER sum = a[i * n + j];
            if (j > i) {
                a[i * n + j] = 0;
                continue;
            }
            for (int64_t k = 0; k < j; ++k)
                sum -= a[i * n + k] * CONJ(a[j * n + k]);
            if (j == i && !(RE(sum) > 0))
                return i + 1;
            a[i * n + j] = j == i ? sqrt(RE(sum)) : sum / a[j * n + j];
        }
    return 0;
}

/* The reflection I - tau (1, v) (1, v)^H that turns column k's tail into (beta, 0): leaves beta and v there, returns tau. */
static NUMBER NAME(reflect)(NUMBER *a, int64_t rows, int64_t columns, int64_t k)
{
    const NUMBER alpha = a[k * columns + k];
    double most = MAGNITUDE(alpha), tail = 0; /* squares of numbers near 1: others would overflow or vanish */
    for (int64_t i = k + 1; i < rows; ++i)
        most = MAGNITUDE(a[i * columns + k]) > most ? MAGNITUDE(a[i * columns + k]) : most;
    for (int64_t i = k + 1; i < rows && most > 0; ++i)
        tail += SQUARED(a[i * columns + k] / most);
    if (tail == 0 && alpha == RE(alpha))
        return 0;
    const double length = most * sqrt(SQUARED(alpha / most) + tail), beta = RE(alpha) >= 0 ? -length : length;
    for (int64_t i = k + 1; i < rows; ++i)
        a[i * columns + k] /= alpha - beta;
    a[k * columns + k] = beta;
    return (beta - alpha) / beta;
}

/* b (rows k.. of `width` columns) -= factor v (v^H b), v being reflection k; row by row through one element of v at a time. */
static void NAME(apply)(const NUMBER *a, int64_t rows, int64_t columns, int64_t k, NUMBER factor, NUMBER *b, int64_t width,
                        int64_t first)
{
    for (int64_t c = first; c < width; ++c) {
        NUMBER sum = b[k * width + c];
        for (int64_t i = k + 1; i < rows; ++i)
            sum += CONJ(a[i * columns + k]) * b[i * width + c];
        sum *= factor;
        b[k * width + c] -= sum;
        for (int64_t i = k + 1; i < rows; ++i)
            b[i * width + c] -= a[i * columns + k] * sum;
    }
}

static void NAME(qr)(void *matrix, int64_t rows, int64_t columns, void *factors)
{
    NUMBER *const a = matrix, *const tau = factors;
    for (int64_t k = 0; k < (rows < columns ? rows : columns); ++k) {
        tau[k] = NAME(reflect)(a, rows, columns, k);
        NAME(apply)(a, rows, columns, k, CONJ(tau[k]), a, columns, k + 1);
    }
}

static void NAME(qr_basis)(const void *matrix, int64_t rows, int64_t columns, const void *factors, void *basis, int64_t wanted)
{
    const NUMBER *const tau = factors;
    NUMBER *const q = basis;
    const int64_t count = rows < columns ? rows : columns;
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < wanted; ++j)
            q[i * wanted + j] = i == j;
    for (int64_t k = (count < wanted ? count : wanted) - 1; k >= 0; --k)
        NAME(apply)(matrix, rows, columns, k, tau[k], q, wanted, 0);
}

/* x^H y */
static NUMBER NAME(dot)(const NUMBER *x, const NUMBER *y, int64_t n)
{
    NUMBER sum = 0;
    for (int64_t i = 0; i < n; ++i)
        sum += CONJ(x[i]) * y[i];
    return sum;
}

static double NAME(norm)(const NUMBER *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; ++i)
        sum += SQUARED(x[i]);
    return sqrt(sum);
}

static void NAME(complete)(void *rows, int64_t from, int64_t count, int64_t length)
{
    NUMBER *const basis = rows;
    int64_t unit = 0; /* unit vectors are tried in turn: each gives one of the missing directions, or lies among the others */
    for (int64_t k = from; k < count; ++k)
        for (double size = 0; size < 0.5 / sqrt((double)length) && unit < 2 * length; ++unit) {
            NUMBER *const x = basis + k * length;
            for (int64_t i = 0; i < length; ++i)
                x[i] = i == unit % length;
            for (int pass = 0; pass < 2; ++pass)
                for (int64_t other = 0; other < k; ++other)
                    NAME(subtract)(x, basis + other * length, NAME(dot)(basis + other * length, x, length), length);
            size = NAME(norm)(x, length);
            for (int64_t i = 0; i < length && size > 0; ++i)
                x[i] /= size;
        }
}

/* x and y turned so that they become orthogonal; the same turn for the rows of v. Returns whether there was anything to do. noise: the
 * square of a length that rounding alone explains. */
static int NAME(turn)(NUMBER *x, NUMBER *y, int64_t m, NUMBER *vx, NUMBER *vy, int64_t n, double noise)
{
    const NUMBER product = NAME(dot)(x, y, m);
    const double xx = RE(NAME(dot)(x, x, m)), yy = RE(NAME(dot)(y, y, m)), size = sqrt(SQUARED(product));
    if (!(size > 1e-15 * sqrt(xx) * sqrt(yy)) || size == 0 || xx < noise || yy < noise)
        return 0;
    const double slope = (yy - xx) / (2 * size);
    const double tangent = (slope >= 0 ? 1 : -1) / (fabs(slope) + sqrt(1 + slope * slope));
    const double cosine = 1 / sqrt(1 + tangent * tangent), sine = cosine * tangent;
    const NUMBER phase = CONJ(product) / size;
    for (int64_t i = 0; i < m; ++i) {
        const NUMBER a = x[i], b = y[i] * phase;
        x[i] = cosine * a - sine * b;
        y[i] = sine * a + cosine * b;
    }
    for (int64_t i = 0; i < n; ++i) {
        const NUMBER a = vx[i], b = vy[i] * phase;
        vx[i] = cosine * a - sine * b;
        vy[i] = sine * a + cosine * b;
    }
    return 1;
}

static void NAME(svd)(void *columns, int64_t n, int64_t m, void *right, double *s)
{
    NUMBER *const w = columns, *const v = right;
    for (int64_t i = 0; i < n * n; ++i)
        v[i] = i / n == i % n;
    double most = 0; /* squares of numbers near 1: others would overflow or vanish */
    for (int64_t i = 0; i < n * m; ++i)
        most = MAGNITUDE(w[i]) > most ? MAGNITUDE(w[i]) : most;
    for (int64_t i = 0; i < n * m && most > 0; ++i)
        w[i] /= most;
    const double whole = NAME(norm)(w, n * m), noise = whole * 1e-16;
    int turned = 1;
    for (int sweep = 0; turned && sweep < JACOBI_SWEEPS; ++sweep) {
        turned = 0;
        for (int64_t p = 0; p < n; ++p)
            for (int64_t q = p + 1; q < n; ++q)
                turned |= NAME(turn)(w + p * m, w + q * m, m, v + p * n, v + q * n, n, noise * noise);
    }
    for (int64_t k = 0; k < n; ++k)
        s[k] = NAME(norm)(w + k * m, m);
    for (int64_t k = 0; k < n; ++k) {
        int64_t best = k;
        for (int64_t i = k + 1; i < n; ++i)
            if (s[i] > s[best])
                best = i;
        if (best != k) {
            const double kept = s[k];
            s[k] = s[best];
            s[best] = kept;
            NAME(swap_rows)(w + k * m, w + best * m, m);
            NAME(swap_rows)(v + k * n, v + best * n, n);
        }
    }
    int64_t rank = 0; /* the vectors of noise are noise: others take their places */
    for (; rank < n && s[rank] > whole * 1e-15; ++rank)
        for (int64_t i = 0; i < m; ++i)
            w[rank * m + i] /= s[rank];
    NAME(complete)(w, rank, n, m);
    for (int64_t k = 0; k < n; ++k)
        s[k] = turned ? (double)NAN : most > 0 ? s[k] * most : s[k]; /* NaN: it didn't converge */
}

static double NAME(determinant)(const void *matrix, int64_t n, const int64_t *pivots, void *sign)
{
    const NUMBER *const a = matrix;
    NUMBER phase = 1;
    double logarithm = 0;
    for (int64_t k = 0; k < n; ++k) {
        const NUMBER pivot = a[k * n + k];
        const double size = sqrt(SQUARED(pivot));
        logarithm += log(size);
        phase *= size == 0 ? 0 : pivot / size;
        if (pivots[k] != k)
            phase = -phase;
    }
    *(NUMBER *)sign = phase;
    return logarithm;
}

static void NAME(conjugate)(void *matrix, int64_t count)
{
    NUMBER *const a = matrix;
    for (int64_t i = 0; i < count; ++i)
        a[i] = CONJ(a[i]);
}

#undef NAME
#undef NUMBER
#undef TAG
#undef CONJ
#undef RE
#undef SQUARED
#undef MAGNITUDE
