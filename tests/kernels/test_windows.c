/* Kernels on windows of planes and volumes on every ISA: pooling, maxima of volumes, im2col; against plain loops over all windows. */
#include "kernel_check.h"
#include "kernels/pool.h"
#include "kernels/volume.h"

static const enum accumulate all_types[] = {ACCUMULATE_F64, ACCUMULATE_F32, ACCUMULATE_I64};

/* Along one axis; positions of the source first, first + step ... below last, before they are cut at its ends. */
struct window {
    int64_t first, last, step;
};

static struct window fixed_window(int64_t out, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation)
{
    const int64_t first = out * stride - pad;
    return (struct window){first, first + (kernel - 1) * dilation + 1, dilation};
}

static struct window adaptive_window(int64_t out, int64_t in, int64_t outs)
{
    return (struct window){out * in / outs, ((out + 1) * in + outs - 1) / outs, 1};
}

/* Integers in their own arithmetic. */
union number {
    double real;
    int64_t integer;
};

static union number number_at(enum accumulate type, const void *data, int64_t i)
{
    return type == ACCUMULATE_I64 ? (union number){.integer = ((const int64_t *)data)[i]}
                                  : (union number){.real = get_value(data, type, i)};
}

static int takes(enum accumulate type, union number best, union number x)
{
    return type == ACCUMULATE_I64 ? x.integer > best.integer : x.real > best.real || isnan(x.real);
}

static void put_number(enum accumulate type, void *data, int64_t i, union number x)
{
    if (type == ACCUMULATE_I64)
        ((int64_t *)data)[i] = x.integer;
    else
        put_value(data, type, i, x.real);
}

/* --- maxima ----------------------------------------------------------------------------------------------------------- */

/* Of one window of a volume; positions count through it. A window without any element keeps the lowest number. */
static int64_t window_maximum(enum accumulate type, const void *in, const int64_t *sizes, const struct window *w,
                              union number *best)
{
    int64_t where = -1;
    *best = type == ACCUMULATE_I64 ? (union number){.integer = INT64_MIN} : (union number){.real = -INFINITY};
    for (int64_t z = w[0].first; z < w[0].last; z += w[0].step)
        for (int64_t y = w[1].first; y < w[1].last; y += w[1].step)
            for (int64_t x = w[2].first; x < w[2].last; x += w[2].step) {
                if (z < 0 || y < 0 || x < 0 || z >= sizes[0] || y >= sizes[1] || x >= sizes[2])
                    continue;
                const int64_t at = (z * sizes[1] + y) * sizes[2] + x;
                const union number value = number_at(type, in, at);
                if (where >= 0 && !takes(type, *best, value))
                    continue;
                *best = value;
                where = at;
            }
    return where;
}

static struct window volume_window(const struct volume_shape *s, int axis, int64_t out)
{
    return s->adaptive ? adaptive_window(out, s->in[axis], s->out[axis])
                       : fixed_window(out, s->kernel[axis], s->stride[axis], s->pad[axis], s->dilation[axis]);
}

static void check_maxima(const char *isa, enum accumulate type, const struct volume_shape *s, const void *in, const void *out,
                         const int32_t *index)
{
    int64_t o = 0;
    for (int64_t z = 0; z < s->out[0]; ++z)
        for (int64_t y = 0; y < s->out[1]; ++y)
            for (int64_t x = 0; x < s->out[2]; ++x, ++o) {
                const struct window w[] = {volume_window(s, 0, z), volume_window(s, 1, y), volume_window(s, 2, x)};
                union number best;
                const int64_t where = window_maximum(type, in, s->in, w, &best);
                CHECK(index[o] == where, "%s: the maximum is at %d, expected %lld", isa, index[o], (long long)where);
                if (type == ACCUMULATE_I64)
                    CHECK_INT(((const int64_t *)out)[o], best.integer);
                else
                    CHECK_ELEMENT(isa, "maximum", type, out, o, best.real, 0);
            }
}

static int64_t volume(const int64_t *sizes) { return sizes[0] * sizes[1] * sizes[2]; }

static void test_volume_maxima(const struct kernel_set *set, enum accumulate type, const struct volume_shape *s,
                               enum test_values values)
{
    const struct volume_float_kernels *const k = &set->volume->real[type];
    const int64_t n = volume(s->out), size = volume(s->in);
    const void *const in = random_values(type, size, values), *const dout = random_values(type, n, VALUES_ORDINARY);
    void *const out = room_for(type, n), *const din = room_for(type, size), *const expected = room_for(type, size);
    int32_t *const index = guarded(n, 4);
    int64_t *const wide = guarded(n, 8);
    k->max(in, s, out, index);
    check_maxima(set->isa, type, s, in, out, index);
    for (int add = 0; add < 2; ++add) {
        int64_t outside = 0;
        memset(expected, 0, (size_t)(size * accumulate_bytes(type)));
        for (int64_t i = 0; i < n; ++i) {
            wide[i] = i % 7 == 3 ? size + i : i % 7 == 5 ? -1 - i : index[i];
            if (wide[i] < 0 || wide[i] >= size) {
                ++outside;
                continue;
            }
            union number sum = number_at(type, dout, i);
            if (add && type == ACCUMULATE_I64)
                sum.integer += number_at(type, expected, wide[i]).integer;
            else if (add)
                sum.real += number_at(type, expected, wide[i]).real;
            put_number(type, expected, wide[i], sum);
        }
        CHECK_INT(k->scatter(dout, wide, n, din, size, add), outside);
        CHECK(same_values(type, din, expected, size), "%s: scatter of a volume, add %d", set->isa, add);
    }
    guarded_end(set->isa, "maxima of a volume");
}

static struct volume_shape volume_of(const struct pool_shape *p, int adaptive)
{
    return (struct volume_shape){{1, p->in_height, p->in_width},
                                 {1, p->out_height, p->out_width},
                                 {1, p->kernel_height, p->kernel_width},
                                 {1, p->stride_height, p->stride_width},
                                 {0, p->pad_height, p->pad_width},
                                 {1, p->dilation_height, p->dilation_width},
                                 adaptive};
}

static void test_plane_maxima(const struct kernel_set *set, enum accumulate type, const struct pool_shape *p, int adaptive,
                              enum test_values values)
{
    const struct pool_float_kernels *const k = &set->pool->real[type];
    const struct volume_shape s = volume_of(p, adaptive);
    const int64_t n = volume(s.out), size = volume(s.in);
    const void *const in = random_values(type, size, values), *const dout = random_values(type, n, VALUES_ORDINARY);
    void *const out = room_for(type, n), *const din = room_for(type, size), *const expected = room_for(type, size);
    int32_t *const index = guarded(n, 4);
    (adaptive ? k->adaptive_max : k->max)(in, p, out, index);
    check_maxima(set->isa, type, &s, in, out, index);
    memset(expected, 0, (size_t)(size * accumulate_bytes(type)));
    for (int64_t i = 0; i < n; ++i)
        if (type == ACCUMULATE_I64)
            ((int64_t *)expected)[index[i]] += ((const int64_t *)dout)[i];
        else
            put_value(expected, type, index[i], get_value(expected, type, index[i]) + get_value(dout, type, i));
    struct pool_shape backward = *p;
    if (adaptive)
        backward.kernel_height = backward.kernel_width = 0;
    k->max_backward(dout, index, &backward, din);
    for (int64_t i = 0; i < size; ++i)
        CHECK_ELEMENT(set->isa, "gradient of maxima", type, din, i, get_value(expected, type, i), 8 * tolerance_of(type));
    guarded_end(set->isa, "maxima of a plane");
}

/* --- averages --------------------------------------------------------------------------------------------------------- */

/* Elements of the window inside, and the divisor. */
static int64_t cut_window(const struct pool_shape *p, int64_t y, int64_t x, int adaptive, struct window *w)
{
    if (adaptive) {
        w[0] = adaptive_window(y, p->in_height, p->out_height);
        w[1] = adaptive_window(x, p->in_width, p->out_width);
    } else {
        w[0] = fixed_window(y, p->kernel_height, p->stride_height, p->pad_height, 1);
        w[1] = fixed_window(x, p->kernel_width, p->stride_width, p->pad_width, 1);
    }
    const int64_t sizes[] = {p->in_height, p->in_width}, pads[] = {p->pad_height, p->pad_width};
    int64_t padded = 1, inside = 1;
    for (int a = 0; a < 2; ++a) {
        w[a].last = w[a].last < sizes[a] + pads[a] ? w[a].last : sizes[a] + pads[a];
        padded *= w[a].last - w[a].first;
        w[a].first = w[a].first > 0 ? w[a].first : 0;
        w[a].last = w[a].last < sizes[a] ? w[a].last : sizes[a];
        inside *= w[a].last > w[a].first ? w[a].last - w[a].first : 0;
    }
    return adaptive ? inside : p->divisor ? p->divisor : p->count_padding ? padded : inside;
}

static void test_averages(const struct kernel_set *set, const struct kernel_set *base, enum accumulate type,
                          const struct pool_shape *p, int adaptive, enum test_values values)
{
    const struct pool_float_kernels *const k = &set->pool->real[type], *const b = &base->pool->real[type];
    const int64_t n = p->out_height * p->out_width, size = p->in_height * p->in_width;
    const void *const in = random_values(type, size, values), *const dout = random_values(type, n, values);
    void *const out = room_for(type, n), *const din = room_for(type, size), *const base_out = room_for(type, n);
    void *const base_din = room_for(type, size);
    double *const expected = guarded(size, 8);
    (adaptive ? k->adaptive : k->average)(in, p, out);
    (adaptive ? b->adaptive : b->average)(in, p, base_out);
    (adaptive ? k->adaptive_backward : k->average_backward)(dout, p, din);
    (adaptive ? b->adaptive_backward : b->average_backward)(dout, p, base_din);
    CHECK(same_values(type, out, base_out, n) && same_values(type, din, base_din, size), "%s: averages differ", set->isa);
    for (int64_t i = 0; i < size; ++i)
        expected[i] = 0;
    for (int64_t o = 0; values != VALUES_EXTREME && o < n; ++o) {
        struct window w[2];
        const int64_t divisor = cut_window(p, o / p->out_width, o % p->out_width, adaptive, w);
        double sum = 0, share = divisor == 0 ? 0 : get_value(dout, type, o) / (double)divisor;
        share = type == ACCUMULATE_I64 ? trunc(share) : share;
        for (int64_t i = w[0].first; i < w[0].last; ++i)
            for (int64_t j = w[1].first; j < w[1].last; ++j) {
                sum += get_value(in, type, i * p->in_width + j);
                expected[i * p->in_width + j] += share;
            }
        const double average = w[0].last > w[0].first && w[1].last > w[1].first ? sum / (double)divisor : 0;
        CHECK_ELEMENT(set->isa, "average", type, out, o, type == ACCUMULATE_I64 ? trunc(average) : average, 8 * tolerance_of(type));
    }
    for (int64_t i = 0; values != VALUES_EXTREME && i < size; ++i)
        CHECK_ELEMENT(set->isa, "gradient of averages", type, din, i, expected[i], 16 * tolerance_of(type));
    guarded_end(set->isa, "averages");
}

static void test_index_widths(const struct kernel_set *set)
{
    for (int s = 0; s < TEST_SIZES; ++s) {
        const int64_t n = test_sizes[s];
        int32_t *const narrow = guarded(n, 4), *const again = guarded(n, 4);
        int64_t *const wide = guarded(n, 8);
        for (int64_t i = 0; i < n; ++i)
            narrow[i] = (int32_t)check_random(&test_state);
        set->pool->widen_index(narrow, wide, n);
        for (int64_t i = 0; i < n; ++i)
            CHECK_INT(wide[i], narrow[i]);
        set->pool->narrow_index(wide, again, n);
        CHECK(memcmp(narrow, again, (size_t)n * 4) == 0, "%s: narrowed indices", set->isa);
        guarded_end(set->isa, "indices");
    }
}

/* --- im2col ----------------------------------------------------------------------------------------------------------- */

static void test_columns(const struct kernel_set *set, enum accumulate type, const struct volume_shape *s, enum test_values values)
{
    const struct volume_float_kernels *const k = &set->volume->real[type];
    const int64_t size = s->in[1] * s->in[2], taps = s->kernel[1] * s->kernel[2], pixels = s->out[1] * s->out[2];
    const void *const in = random_values(type, size, values), *const columns = random_values(type, taps * pixels, VALUES_ORDINARY);
    void *const out = room_for(type, taps * pixels), *const plane = room_for(type, size);
    double *const expected = guarded(size, 8);
    k->unfold(in, s, out);
    k->fold(columns, s, plane);
    for (int64_t i = 0; i < size; ++i)
        expected[i] = 0;
    for (int64_t c = 0; c < taps * pixels; ++c) {
        const int64_t tap = c / pixels, pixel = c % pixels;
        const int64_t y = pixel / s->out[2] * s->stride[1] - s->pad[1] + tap / s->kernel[2] * s->dilation[1];
        const int64_t x = pixel % s->out[2] * s->stride[2] - s->pad[2] + tap % s->kernel[2] * s->dilation[2];
        const int inside = y >= 0 && x >= 0 && y < s->in[1] && x < s->in[2];
        CHECK_ELEMENT(set->isa, "column", type, out, c, inside ? get_value(in, type, y * s->in[2] + x) : 0, 0);
        if (inside)
            expected[y * s->in[2] + x] += get_value(columns, type, c);
    }
    for (int64_t i = 0; i < size; ++i)
        CHECK_ELEMENT(set->isa, "sum of columns", type, plane, i, expected[i], 8 * tolerance_of(type));
    guarded_end(set->isa, "columns of windows");
}

/* --- shapes ----------------------------------------------------------------------------------------------------------- */

static int64_t windows(int64_t in, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation)
{
    const int64_t room = in + 2 * pad - dilation * (kernel - 1) - 1;
    return room < 0 ? 0 : room / stride + 1;
}

/* {height, width, kernel, stride, pad, dilation} */
static const int64_t planes[][6] = {
    {2, 2, 2, 2, 0, 1},  {6, 7, 2, 2, 0, 1},  {5, 33, 2, 2, 0, 1}, {4, 64, 2, 2, 0, 1}, {3, 130, 2, 2, 0, 1}, {1, 1, 1, 1, 0, 1},
    {7, 9, 3, 2, 1, 1},  {8, 8, 3, 1, 1, 1},  {9, 11, 3, 2, 1, 2}, {5, 5, 5, 5, 0, 1},  {6, 17, 3, 3, 0, 2},  {4, 4, 2, 3, 1, 1},
    {10, 6, 4, 1, 2, 1}, {3, 31, 2, 2, 1, 1}, {2, 16, 2, 2, 0, 1}, {2, 18, 2, 2, 0, 1}, {1, 5, 2, 2, 1, 3},
};
static const int64_t adaptive_sizes[][2] = {{1, 1}, {3, 4}, {7, 2}, {5, 40}};

static void test_plane(const struct kernel_set *set, const struct kernel_set *base, const int64_t *v, enum accumulate type,
                       enum test_values values)
{
    struct pool_shape p = {v[0], v[1], 0, 0, v[2], v[2], v[3], v[3], v[4], v[4], v[5], v[5], 0, false};
    p.out_height = windows(p.in_height, v[2], v[3], v[4], v[5]);
    p.out_width = windows(p.in_width, v[2], v[3], v[4], v[5]);
    struct volume_shape s = volume_of(&p, 0);
    test_plane_maxima(set, type, &p, 0, values);
    test_columns(set, type, &s, values);
    s.in[0] = 4, s.kernel[0] = 2, s.stride[0] = 2, s.pad[0] = 1;
    s.out[0] = windows(4, 2, 2, 1, 1);
    test_volume_maxima(set, type, &s, values);
    for (int a = 0; a < 4; ++a) {
        struct pool_shape q = {.in_height = v[0], .in_width = v[1]};
        q.out_height = adaptive_sizes[a][0];
        q.out_width = adaptive_sizes[a][1];
        struct volume_shape r = volume_of(&q, 1);
        r.in[0] = 3, r.out[0] = 2;
        test_plane_maxima(set, type, &q, 1, values);
        test_averages(set, base, type, &q, 1, values);
        test_volume_maxima(set, type, &r, values);
    }
    if (v[5] != 1)
        return;
    for (int divisor = 0; divisor < 3; ++divisor) {
        p.divisor = divisor == 2 ? 7 : 0;
        p.count_padding = divisor == 1;
        test_averages(set, base, type, &p, 0, values);
    }
}

static void test_set(const struct kernel_set *set, const struct kernel_set *base)
{
    for (int t = 0; t < 3; ++t)
        for (enum test_values values = VALUES_ORDINARY; values <= VALUES_EXTREME; ++values)
            for (size_t i = 0; i < sizeof planes / sizeof planes[0]; ++i)
                test_plane(set, base, planes[i], all_types[t], values);
    test_index_widths(set);
}

int main(void) { return for_each_kernel_set(test_set); }
