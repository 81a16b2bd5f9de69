/* Template: kernels on volumes for one type; REAL, TAG, LOWEST, IS_NAN and ADD are the includer's. */
#define NAME_(name, tag) name##_##tag
#define NAME__(name, tag) NAME_(name, tag)
#define NAME(name) NAME__(name, TAG)

/* The window's range along one axis: positions first, first + step ... below last. */
static void NAME(range)(const struct volume_shape *s, int axis, int64_t out, int64_t *first, int64_t *last, int64_t *step)
{
    if (s->adaptive) {
        *first = out * s->in[axis] / s->out[axis];
        *last = ((out + 1) * s->in[axis] + s->out[axis] - 1) / s->out[axis];
        *step = 1;
        return;
    }
    *step = s->dilation[axis];
    *first = out * s->stride[axis] - s->pad[axis];
    const int64_t end = *first + (s->kernel[axis] - 1) * *step + 1;
    *last = end < s->in[axis] ? end : s->in[axis];
    if (*first < 0)
        *first += (-*first + *step - 1) / *step * *step;
}

static void NAME(max)(const void *in_, const struct volume_shape *s, void *out_, int32_t *index)
{
    const REAL *const in = in_;
    REAL *out = out_;
    int64_t low[3], high[3], step[3];
    for (int64_t z = 0; z < s->out[0]; ++z)
        for (int64_t y = 0; y < s->out[1]; ++y)
            for (int64_t x = 0; x < s->out[2]; ++x) {
                const int64_t at[] = {z, y, x};
                for (int a = 0; a < 3; ++a)
                    NAME(range)(s, a, at[a], &low[a], &high[a], &step[a]);
                int64_t where = (low[0] * s->in[1] + low[1]) * s->in[2] + low[2];
                REAL best = LOWEST;
                for (int64_t i = low[0]; i < high[0]; i += step[0])
                    for (int64_t j = low[1]; j < high[1]; j += step[1])
                        for (int64_t k = low[2]; k < high[2]; k += step[2]) {
                            const int64_t place = (i * s->in[1] + j) * s->in[2] + k;
                            if (in[place] > best || IS_NAN(in[place])) {
                                best = in[place];
                                where = place;
                            }
                        }
                *out++ = best;
                *index++ = (int32_t)where;
            }
}

static int64_t NAME(scatter)(const void *dout_, const int64_t *index, int64_t n, void *din_, int64_t size, bool add)
{
    const REAL *const dout = dout_;
    REAL *const din = din_;
    int64_t outside = 0;
    for (int64_t i = 0; i < size; ++i)
        din[i] = 0;
    for (int64_t i = 0; i < n; ++i)
        if ((uint64_t)index[i] >= (uint64_t)size)
            ++outside;
        else if (add)
            din[index[i]] = ADD(din[index[i]], dout[i]);
        else
            din[index[i]] = dout[i];
    return outside;
}

static void NAME(unfold)(const void *in_, const struct volume_shape *s, void *columns_)
{
    const REAL *const in = in_;
    REAL *to = columns_;
    for (int64_t ky = 0; ky < s->kernel[1]; ++ky)
        for (int64_t kx = 0; kx < s->kernel[2]; ++kx)
            for (int64_t oy = 0; oy < s->out[1]; ++oy) {
                const int64_t y = oy * s->stride[1] - s->pad[1] + ky * s->dilation[1];
                const bool inside = y >= 0 && y < s->in[1];
                for (int64_t ox = 0; ox < s->out[2]; ++ox) {
                    const int64_t x = ox * s->stride[2] - s->pad[2] + kx * s->dilation[2];
                    *to++ = inside && x >= 0 && x < s->in[2] ? in[y * s->in[2] + x] : 0;
                }
            }
}

static void NAME(fold)(const void *columns_, const struct volume_shape *s, void *out_)
{
    const REAL *from = columns_;
    REAL *const out = out_;
    for (int64_t i = 0; i < s->in[1] * s->in[2]; ++i)
        out[i] = 0;
    for (int64_t ky = 0; ky < s->kernel[1]; ++ky)
        for (int64_t kx = 0; kx < s->kernel[2]; ++kx)
            for (int64_t oy = 0; oy < s->out[1]; ++oy) {
                const int64_t y = oy * s->stride[1] - s->pad[1] + ky * s->dilation[1];
                const bool inside = y >= 0 && y < s->in[1];
                for (int64_t ox = 0; ox < s->out[2]; ++ox, ++from) {
                    const int64_t x = ox * s->stride[2] - s->pad[2] + kx * s->dilation[2];
                    if (inside && x >= 0 && x < s->in[2])
                        out[y * s->in[2] + x] = ADD(out[y * s->in[2] + x], *from);
                }
            }
}

#undef NAME
#undef NAME_
#undef NAME__
