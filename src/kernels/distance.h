/* Distances between points, in double precision.
 *
 * Invariant: coordinates are taken in order; p = 0 counts those that differ, infinity takes the largest difference; a
 * difference that is NaN makes the distance NaN. */
#ifndef KERNELS_DISTANCE_H
#define KERNELS_DISTANCE_H

#include <stdint.h>

struct distance_kernels {
    /* The p-norm of x - y, of n coordinates each. */
    double (*distance)(const double *x, const double *y, int64_t n, double p);
    /* gradient[i] += scale * d distance / d x[i] */
    void (*add_gradient)(double *gradient, const double *x, const double *y, int64_t n, double p, double distance, double scale);
};

#endif
