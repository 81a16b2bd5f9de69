/* Template: loss kernels for one float type; REAL, TAG and F (name of a math function in that type) are the includer's. */
#define NAME_(name, tag) name##_##tag
#define NAME__(name, tag) NAME_(name, tag)
#define NAME(name) NAME__(name, TAG)

/* VALUE and SLOPE see x, t, w, p (positive weight) and parameter. */
#define LOSS(name, VALUE, SLOPE)                                                                                          \
    static void NAME(name)(const struct loss_operands *o, void *out_, int64_t n)                                           \
    {                                                                                                                      \
        const REAL parameter = (REAL)o->parameter;                                                                         \
        (void)parameter;                                                                                                   \
        REAL *const out = out_;                                                                                            \
        for (int64_t i = 0; i < n; ++i) {                                                                                  \
            const REAL x = ((const REAL *)o->x)[i], t = ((const REAL *)o->t)[i];                                           \
            const REAL p = o->positive_weight ? ((const REAL *)o->positive_weight)[i] : 1;                                 \
            (void)p;                                                                                                       \
            const REAL value = VALUE;                                                                                      \
            out[i] = o->weight ? value * ((const REAL *)o->weight)[i] : value;                                             \
        }                                                                                                                  \
    }                                                                                                                      \
    static void NAME(name##_backward)(const struct loss_operands *o, const void *g_, int64_t g_step, double scale_, void *out_, \
                                      int64_t n)                                                                           \
    {                                                                                                                      \
        const REAL parameter = (REAL)o->parameter, scale = (REAL)scale_;                                                   \
        (void)parameter;                                                                                                   \
        const REAL *const g = g_;                                                                                          \
        REAL *const out = out_;                                                                                            \
        for (int64_t i = 0; i < n; ++i) {                                                                                  \
            const REAL x = ((const REAL *)o->x)[i], t = ((const REAL *)o->t)[i];                                           \
            const REAL p = o->positive_weight ? ((const REAL *)o->positive_weight)[i] : 1;                                 \
            (void)p;                                                                                                       \
            (void)x;                                                                                                       \
            const REAL slope = SLOPE;                                                                                      \
            out[i] = (o->weight ? slope * ((const REAL *)o->weight)[i] : slope) * g[i * g_step] * scale;                   \
        }                                                                                                                  \
    }

static inline REAL NAME(sign)(REAL d) { return d > 0 ? 1 : d < 0 ? -1 : d; }
/* Torch clamps the logarithms of cross entropy at -100. */
static inline REAL NAME(clamped)(REAL logarithm) { return logarithm < -100 ? -100 : logarithm; }
static inline REAL NAME(smooth)(REAL d, REAL beta)
{
    const REAL size = d < 0 ? -d : d;
    return size < beta ? (REAL)0.5 * size * size / beta : size - (REAL)0.5 * beta;
}
static inline REAL NAME(smooth_slope)(REAL d, REAL beta) { return d <= -beta ? -1 : d >= beta ? 1 : d / beta; }
static inline REAL NAME(softplus_negative)(REAL x) { return F(log1p)(F(exp)(-F(fabs)(x))) + (x < 0 ? -x : 0); }
static inline REAL NAME(sigmoid)(REAL x) { return 1 / (1 + F(exp)(-x)); }
static inline REAL NAME(safe_variance)(REAL x) { return (1 - x) * x < (REAL)1e-12 ? (REAL)1e-12 : (1 - x) * x; }

LOSS(square, (x - t) * (x - t), 2 * (x - t))
LOSS(absolute, F(fabs)(x - t), NAME(sign)(x - t))
LOSS(smooth_loss, NAME(smooth)(x - t, parameter), NAME(smooth_slope)(x - t, parameter))
LOSS(cross_entropy, (t - 1) * NAME(clamped)(F(log1p)(-x)) - t * NAME(clamped)(F(log)(x)), (x - t) / NAME(safe_variance)(x))
LOSS(logits, (1 - t) * x + (1 + (p - 1) * t) * NAME(softplus_negative)(x), (p * t + 1 - t) * NAME(sigmoid)(x) - p * t)
LOSS(divergence, (t == 0 ? 0 : t * F(log)(t)) - t * x, -t)
LOSS(divergence_log, F(exp)(t) * (t - x), -F(exp)(t))
LOSS(divergence_target, (t == 0 ? 0 : t * F(log)(t)) - t * x, t == 0 ? 0 : F(log)(t) + 1 - x)
LOSS(divergence_log_target, F(exp)(t) * (t - x), F(exp)(t) * (t + 1 - x))
LOSS(margin, NAME(softplus_negative)(t *x), -t *NAME(sigmoid)(-t *x))

static int64_t NAME(likelihood)(const struct likelihood *l, void *losses_, double *sum, double *weights)
{
    const REAL *const x = l->x, *const weight = l->weight;
    REAL *const losses = losses_;
    double total = 0, weight_total = 0;
    for (int64_t i = 0; i < l->positions; ++i) {
        const int64_t target = l->target[i];
        REAL loss = 0;
        if (target != l->ignore) {
            if (target < 0 || target >= l->classes)
                return i;
            const REAL w = weight ? weight[target] : 1;
            loss = -x[target * l->class_stride + i * l->position_stride] * w;
            total += (double)loss;
            weight_total += (double)w;
        }
        if (losses)
            losses[i] = loss;
    }
    *sum += total;
    *weights += weight_total;
    return -1;
}

static int64_t NAME(likelihood_backward)(const struct likelihood *l, const void *g_, int64_t g_step, double scale, void *dx_)
{
    const REAL *const weight = l->weight, *const g = g_;
    REAL *const dx = dx_;
    for (int64_t i = 0; i < l->positions; ++i) {
        const int64_t target = l->target[i];
        if (target == l->ignore)
            continue;
        if (target < 0 || target >= l->classes)
            return i;
        dx[target * l->class_stride + i * l->position_stride] = -(weight ? weight[target] : 1) * g[i * g_step] * (REAL)scale;
    }
    return -1;
}

#undef LOSS
#undef NAME
#undef NAME_
#undef NAME__
