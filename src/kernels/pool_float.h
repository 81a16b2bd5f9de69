/* Template: pooling kernels for one type; REAL, TAG, LOWEST, IS_NAN, ADD, DIVIDE, and SCATTER_ROW and SPREAD_ROW
 * (do the first windows of a row with vectors, return how many) are the includer's. */
#define NAME_(name, tag) name##_##tag
#define NAME__(name, tag) NAME_(name, tag)
#define NAME(name) NAME__(name, TAG)

/* Windows of 2 x 2 that don't overlap and never leave the plane: the common case, branch-free. */
static void NAME(max_halving)(const REAL *in, const struct pool_shape *s, REAL *out, int32_t *index)
{
    const int32_t width = (int32_t)s->in_width;
    for (int64_t y = 0; y < s->out_height; ++y) {
        const REAL *restrict top = in + 2 * y * width, *restrict bottom = top + width;
        REAL *restrict best = out + y * s->out_width;
        int32_t *restrict where = index + y * s->out_width;
        const int32_t first = (int32_t)(2 * y * width), count = (int32_t)s->out_width;
        INDEPENDENT_ITERATIONS
        for (int32_t x = 0; x < count; ++x) {
            const REAL a = top[2 * x], b = top[2 * x + 1], c = bottom[2 * x], d = bottom[2 * x + 1];
            const int32_t at = first + 2 * x;
            const int take_b = (b > a) | IS_NAN(b);
            const REAL ab = take_b ? b : a;
            const int32_t at_ab = take_b ? at + 1 : at;
            const int take_c = (c > ab) | IS_NAN(c);
            const REAL abc = take_c ? c : ab;
            const int32_t at_abc = take_c ? at + width : at_ab;
            const int take_d = (d > abc) | IS_NAN(d);
            best[x] = take_d ? d : abc;
            where[x] = take_d ? at + width + 1 : at_abc;
        }
    }
}

static bool NAME(is_halving)(const struct pool_shape *s)
{
    return s->kernel_height == 2 && s->kernel_width == 2 && s->stride_height == 2 && s->stride_width == 2 && s->pad_height == 0 &&
           s->pad_width == 0 && s->dilation_height == 1 && s->dilation_width == 1 && 2 * s->out_height <= s->in_height &&
           2 * s->out_width <= s->in_width;
}

static void NAME(max)(const void *in_, const struct pool_shape *s, void *out_, int32_t *index)
{
    const REAL *const in = in_;
    REAL *const out = out_;
    if (NAME(is_halving)(s)) {
        NAME(max_halving)(in, s, out, index);
        return;
    }
    for (int64_t y = 0; y < s->out_height; ++y)
        for (int64_t x = 0; x < s->out_width; ++x) {
            int64_t top = y * s->stride_height - s->pad_height, left = x * s->stride_width - s->pad_width;
            const int64_t bottom_reach = top + (s->kernel_height - 1) * s->dilation_height + 1;
            const int64_t right_reach = left + (s->kernel_width - 1) * s->dilation_width + 1;
            const int64_t bottom = bottom_reach < s->in_height ? bottom_reach : s->in_height;
            const int64_t right = right_reach < s->in_width ? right_reach : s->in_width;
            while (top < 0)
                top += s->dilation_height;
            while (left < 0)
                left += s->dilation_width;
            REAL best = LOWEST;
            int64_t where = top * s->in_width + left;
            for (int64_t i = top; i < bottom; i += s->dilation_height)
                for (int64_t j = left; j < right; j += s->dilation_width) {
                    const REAL value = in[i * s->in_width + j];
                    if (value > best || IS_NAN(value)) {
                        best = value;
                        where = i * s->in_width + j;
                    }
                }
            out[y * s->out_width + x] = best;
            index[y * s->out_width + x] = (int32_t)where;
        }
}

/* Every input belongs to one window at most, so the gradient is written once, with its zeros. */
static void NAME(max_backward_halving)(const REAL *dout, const int32_t *index, const struct pool_shape *s, REAL *din)
{
    const int32_t width = (int32_t)s->in_width, count = (int32_t)s->out_width;
    for (int64_t y = 0; y < s->out_height; ++y) {
        REAL *restrict top = din + 2 * y * width, *restrict bottom = top + width;
        const REAL *restrict from = dout + y * count;
        const int32_t *restrict where = index + y * count;
        const int32_t first = (int32_t)(2 * y * width);
        int32_t x = SCATTER_ROW(from, where, first, width, count, top, bottom);
        for (; x < count; ++x) {
            const int32_t at = where[x] - first - 2 * x;
            top[2 * x] = at == 0 ? from[x] : 0;
            top[2 * x + 1] = at == 1 ? from[x] : 0;
            bottom[2 * x] = at == width ? from[x] : 0;
            bottom[2 * x + 1] = at == width + 1 ? from[x] : 0;
        }
        for (x = 2 * count; x < width; ++x)
            top[x] = bottom[x] = 0;
    }
    for (int64_t i = 2 * s->out_height * width; i < s->in_height * width; ++i)
        din[i] = 0;
}

static void NAME(max_backward)(const void *dout_, const int32_t *index, const struct pool_shape *s, void *din_)
{
    const REAL *const dout = dout_;
    REAL *const din = din_;
    if (NAME(is_halving)(s)) {
        NAME(max_backward_halving)(dout, index, s, din);
        return;
    }
    const int64_t in_count = s->in_height * s->in_width, out_count = s->out_height * s->out_width;
    for (int64_t i = 0; i < in_count; ++i)
        din[i] = 0;
    for (int64_t i = 0; i < out_count; ++i)
        if ((uint64_t)(int64_t)index[i] < (uint64_t)in_count)
            din[index[i]] = ADD(din[index[i]], dout[i]);
}

struct NAME(window) {
    int64_t top, bottom, left, right;
    REAL divisor;
};

static struct NAME(window) NAME(average_window)(const struct pool_shape *s, int64_t y, int64_t x)
{
    struct NAME(window) w = {.top = y * s->stride_height - s->pad_height, .left = x * s->stride_width - s->pad_width};
    const int64_t padded_bottom = s->in_height + s->pad_height, padded_right = s->in_width + s->pad_width;
    w.bottom = w.top + s->kernel_height < padded_bottom ? w.top + s->kernel_height : padded_bottom;
    w.right = w.left + s->kernel_width < padded_right ? w.left + s->kernel_width : padded_right;
    const int64_t padded = (w.bottom - w.top) * (w.right - w.left);
    w.top = w.top > 0 ? w.top : 0;
    w.left = w.left > 0 ? w.left : 0;
    w.bottom = w.bottom < s->in_height ? w.bottom : s->in_height;
    w.right = w.right < s->in_width ? w.right : s->in_width;
    const int64_t inside = w.bottom > w.top && w.right > w.left ? (w.bottom - w.top) * (w.right - w.left) : 0;
    w.divisor = (REAL)(s->divisor ? s->divisor : s->count_padding ? padded : inside);
    return w;
}

static struct NAME(window) NAME(adaptive_window)(const struct pool_shape *s, int64_t y, int64_t x)
{
    struct NAME(window) w = {.top = y * s->in_height / s->out_height, .left = x * s->in_width / s->out_width};
    w.bottom = ((y + 1) * s->in_height + s->out_height - 1) / s->out_height;
    w.right = ((x + 1) * s->in_width + s->out_width - 1) / s->out_width;
    w.divisor = (REAL)((w.bottom - w.top) * (w.right - w.left));
    return w;
}

/* Windows come from WINDOW(shape, y, x). */
#define AVERAGE(name, WINDOW)                                                              \
    static void NAME(name)(const void *in_, const struct pool_shape *s, void *out_)        \
    {                                                                                      \
        const REAL *const in = in_;                                                        \
        REAL *const out = out_;                                                            \
        for (int64_t y = 0; y < s->out_height; ++y)                                        \
            for (int64_t x = 0; x < s->out_width; ++x) {                                   \
                const struct NAME(window) w = WINDOW(s, y, x);                             \
                REAL sum = 0;                                                              \
                for (int64_t i = w.top; i < w.bottom; ++i)                                 \
                    for (int64_t j = w.left; j < w.right; ++j)                             \
                        sum = ADD(sum, in[i * s->in_width + j]);                           \
                out[y * s->out_width + x] = w.top < w.bottom && w.left < w.right ? DIVIDE(sum, w.divisor) : 0; \
            }                                                                              \
    }                                                                                      \
    static void NAME(name##_backward)(const void *dout_, const struct pool_shape *s, void *din_) \
    {                                                                                      \
        const REAL *const dout = dout_;                                                    \
        REAL *const din = din_;                                                            \
        for (int64_t i = 0; i < s->in_height * s->in_width; ++i)                           \
            din[i] = 0;                                                                    \
        for (int64_t y = 0; y < s->out_height; ++y)                                        \
            for (int64_t x = 0; x < s->out_width; ++x) {                                   \
                const struct NAME(window) w = WINDOW(s, y, x);                             \
                const REAL share = DIVIDE(dout[y * s->out_width + x], w.divisor);          \
                for (int64_t i = w.top; i < w.bottom; ++i)                                 \
                    for (int64_t j = w.left; j < w.right; ++j)                             \
                        din[i * s->in_width + j] = ADD(din[i * s->in_width + j], share);   \
            }                                                                              \
    }
AVERAGE(average_any, NAME(average_window))
AVERAGE(adaptive, NAME(adaptive_window))

static void NAME(average)(const void *in_, const struct pool_shape *s, void *out_)
{
    if (!NAME(is_halving)(s)) {
        NAME(average_any)(in_, s, out_);
        return;
    }
    const REAL divisor = (REAL)(s->divisor ? s->divisor : 4);
    for (int64_t y = 0; y < s->out_height; ++y) {
        const REAL *restrict top = (const REAL *)in_ + 2 * y * s->in_width, *restrict bottom = top + s->in_width;
        REAL *restrict out = (REAL *)out_ + y * s->out_width;
        INDEPENDENT_ITERATIONS
        for (int64_t x = 0; x < s->out_width; ++x) {
            const REAL above = ADD(ADD((REAL)0, top[2 * x]), top[2 * x + 1]);
            out[x] = DIVIDE(ADD(ADD(above, bottom[2 * x]), bottom[2 * x + 1]), divisor);
        }
    }
}

static void NAME(average_backward)(const void *dout_, const struct pool_shape *s, void *din_)
{
    if (!NAME(is_halving)(s)) {
        NAME(average_any_backward)(dout_, s, din_);
        return;
    }
    const REAL divisor = (REAL)(s->divisor ? s->divisor : 4);
    const int64_t width = s->in_width, count = s->out_width;
    REAL *const din = din_;
    for (int64_t y = 0; y < s->out_height; ++y) {
        const REAL *restrict dout = (const REAL *)dout_ + y * count;
        REAL *restrict top = din + 2 * y * width, *restrict bottom = top + width;
        for (int64_t x = SPREAD_ROW(dout, divisor, count, top, bottom); x < count; ++x)
            top[2 * x] = top[2 * x + 1] = bottom[2 * x] = bottom[2 * x + 1] = ADD((REAL)0, DIVIDE(dout[x], divisor));
        for (int64_t x = 2 * count; x < width; ++x)
            top[x] = bottom[x] = 0;
    }
    for (int64_t i = 2 * s->out_height * width; i < s->in_height * width; ++i)
        din[i] = 0;
}

static void NAME(adaptive_max)(const void *in_, const struct pool_shape *s, void *out_, int32_t *index)
{
    const REAL *const in = in_;
    REAL *const out = out_;
    for (int64_t y = 0; y < s->out_height; ++y)
        for (int64_t x = 0; x < s->out_width; ++x) {
            const struct NAME(window) w = NAME(adaptive_window)(s, y, x);
            REAL best = LOWEST;
            int64_t where = w.top * s->in_width + w.left;
            for (int64_t i = w.top; i < w.bottom; ++i)
                for (int64_t j = w.left; j < w.right; ++j) {
                    const REAL value = in[i * s->in_width + j];
                    if (value > best || IS_NAN(value)) {
                        best = value;
                        where = i * s->in_width + j;
                    }
                }
            out[y * s->out_width + x] = best;
            index[y * s->out_width + x] = (int32_t)where;
        }
}

#undef AVERAGE
#undef NAME
#undef NAME_
#undef NAME__
