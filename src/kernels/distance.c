/* Distances and their gradients. See distance.h. */
#include "kernels/distance.h"

#include <math.h>

#include "kernels/isa.h"

static double sign_of(double x) { return (double)((x > 0) - (x < 0)); }

/* 1 or 0; NaN for coordinates that have no difference, as two infinities. */
static double differs(double gap) { return gap == 0 ? 0 : gap != gap ? gap : 1; }

static double distance(const double *x, const double *y, int64_t n, double p)
{
    double sum = 0;
    if (p == 0) {
        for (int64_t i = 0; i < n; ++i)
            sum += differs(x[i] - y[i]);
    } else if (p == 1) {
        for (int64_t i = 0; i < n; ++i)
            sum += fabs(x[i] - y[i]);
    } else if (p == 2) {
        for (int64_t i = 0; i < n; ++i)
            sum += (x[i] - y[i]) * (x[i] - y[i]);
        sum = sqrt(sum);
    } else if (p == (double)INFINITY) {
        for (int64_t i = 0; i < n; ++i) {
            const double gap = fabs(x[i] - y[i]);
            sum = gap > sum || gap != gap ? gap : sum;
        }
    } else {
        for (int64_t i = 0; i < n; ++i)
            sum += pow(fabs(x[i] - y[i]), p);
        sum = pow(sum, 1 / p);
    }
    return sum;
}

/* Of one coordinate. Nothing changes a distance of 0, as in torch. */
static double slope(double gap, double p, double whole)
{
    if (p == 0 || whole == 0 || (gap == 0 && p < 1))
        return 0;
    if (p == 1)
        return sign_of(gap);
    if (p == 2)
        return gap / whole;
    if (p == (double)INFINITY)
        return fabs(gap) == whole ? sign_of(gap) : 0;
    if (p < 2)
        return sign_of(gap) * pow(fabs(gap), p - 1) / pow(whole, p - 1);
    return gap * pow(fabs(gap), p - 2) / pow(whole, p - 1);
}

static void add_gradient(double *gradient, const double *x, const double *y, int64_t n, double p, double whole, double scale)
{
    for (int64_t i = 0; i < n; ++i)
        gradient[i] += scale * slope(x[i] - y[i], p, whole);
}

const struct distance_kernels KERNEL_TABLE(distance_kernels) = {.distance = distance, .add_gradient = add_gradient};
