/* Winograd's transforms of one line, for vectors of channels: F(2, 3) with the points 0, 1, -1, infinity, and F(4, 3) with
 * 0, a, -a, b, -b, infinity, a = 3/4, b = 3/2. The points of the textbooks (1 and 2) have two to three times the rounding error.
 *
 * With the matrices of Lavin and Gray ("Fast Algorithms for Convolutional Neural Networks", 2016), for a tile of TILE results:
 *   image_line     v = B' d   TILE + 2 pixels            filter_line   u = G g    3 weights
 *   result_line    y = A' m   TILE results               weights_line  dg = G' du
 *   gradient_line  m = A y    from TILE results' gradients
 * Two dimensions take the lines of the columns, then those of the rows. */
#ifndef KERNELS_CONV_WINOGRAD_LINES_H
#define KERNELS_CONV_WINOGRAD_LINES_H

#include "kernels/isa.h"

#define LINE static inline __attribute__((always_inline))

/* --- F(2, 3) -------------------------------------------------------------------------------------------------------- */

LINE void image_line_2(const vector_f32 *d, vector_f32 *v)
{
    v[0] = d[0] - d[2];
    v[1] = d[1] + d[2];
    v[2] = d[2] - d[1];
    v[3] = d[1] - d[3];
}

LINE void gradient_line_2(const vector_f32 *y, vector_f32 *m)
{
    m[0] = y[0];
    m[1] = y[0] + y[1];
    m[2] = y[0] - y[1];
    m[3] = -y[1];
}

LINE void result_line_2(const vector_f32 *m, vector_f32 *y)
{
    y[0] = m[0] + m[1] + m[2];
    y[1] = m[1] - m[2] - m[3];
}

LINE void filter_line_2(const vector_f32 *g, vector_f32 *u)
{
    u[0] = g[0];
    u[1] = (g[0] + g[1] + g[2]) * 0.5f;
    u[2] = (g[0] - g[1] + g[2]) * 0.5f;
    u[3] = g[2];
}

LINE void weights_line_2(const vector_f32 *du, vector_f32 *dg)
{
    const vector_f32 even = (du[1] + du[2]) * 0.5f;
    dg[0] = du[0] + even;
    dg[1] = (du[1] - du[2]) * 0.5f;
    dg[2] = even + du[3];
}

/* --- F(4, 3) -------------------------------------------------------------------------------------------------------- */

#define POINT_A 0.75f
#define POINT_B 1.5f
#define SQUARE_A (POINT_A * POINT_A)
#define SQUARE_B (POINT_B * POINT_B)
/* What G divides by: the products of a point's distances to the other ones. */
#define SCALE_0 (1 / (SQUARE_A * SQUARE_B))
#define SCALE_A (1 / (2 * SQUARE_A * (SQUARE_A - SQUARE_B)))
#define SCALE_B (1 / (2 * SQUARE_B * (SQUARE_B - SQUARE_A)))

LINE void image_line_4(const vector_f32 *d, vector_f32 *v)
{
    const vector_f32 even_a = d[4] - SQUARE_B * d[2], odd_a = POINT_A * (d[3] - SQUARE_B * d[1]);
    const vector_f32 even_b = d[4] - SQUARE_A * d[2], odd_b = POINT_B * (d[3] - SQUARE_A * d[1]);
    v[0] = SQUARE_A * SQUARE_B * d[0] - (SQUARE_A + SQUARE_B) * d[2] + d[4];
    v[1] = even_a + odd_a;
    v[2] = even_a - odd_a;
    v[3] = even_b + odd_b;
    v[4] = even_b - odd_b;
    v[5] = SQUARE_A * SQUARE_B * d[1] - (SQUARE_A + SQUARE_B) * d[3] + d[5];
}

LINE void gradient_line_4(const vector_f32 *y, vector_f32 *m)
{
    const vector_f32 even_a = y[0] + SQUARE_A * y[2], odd_a = POINT_A * (y[1] + SQUARE_A * y[3]);
    const vector_f32 even_b = y[0] + SQUARE_B * y[2], odd_b = POINT_B * (y[1] + SQUARE_B * y[3]);
    m[0] = y[0];
    m[1] = even_a + odd_a;
    m[2] = even_a - odd_a;
    m[3] = even_b + odd_b;
    m[4] = even_b - odd_b;
    m[5] = y[3];
}

LINE void result_line_4(const vector_f32 *m, vector_f32 *y)
{
    const vector_f32 even_a = m[1] + m[2], odd_a = POINT_A * (m[1] - m[2]);
    const vector_f32 even_b = m[3] + m[4], odd_b = POINT_B * (m[3] - m[4]);
    y[0] = m[0] + even_a + even_b;
    y[1] = odd_a + odd_b;
    y[2] = SQUARE_A * even_a + SQUARE_B * even_b;
    y[3] = SQUARE_A * odd_a + SQUARE_B * odd_b + m[5];
}

LINE void filter_line_4(const vector_f32 *g, vector_f32 *u)
{
    const vector_f32 even_a = g[0] + SQUARE_A * g[2], even_b = g[0] + SQUARE_B * g[2];
    u[0] = SCALE_0 * g[0];
    u[1] = SCALE_A * (even_a + POINT_A * g[1]);
    u[2] = SCALE_A * (even_a - POINT_A * g[1]);
    u[3] = SCALE_B * (even_b + POINT_B * g[1]);
    u[4] = SCALE_B * (even_b - POINT_B * g[1]);
    u[5] = g[2];
}

LINE void weights_line_4(const vector_f32 *du, vector_f32 *dg)
{
    const vector_f32 even_a = SCALE_A * (du[1] + du[2]), even_b = SCALE_B * (du[3] + du[4]);
    dg[0] = SCALE_0 * du[0] + even_a + even_b;
    dg[1] = SCALE_A * POINT_A * (du[1] - du[2]) + SCALE_B * POINT_B * (du[3] - du[4]);
    dg[2] = SQUARE_A * even_a + SQUARE_B * even_b + du[5];
}

#undef LINE

#endif
