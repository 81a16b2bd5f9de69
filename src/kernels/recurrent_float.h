/* Template: kernels of recurrent cells for one float type; REAL, TAG, SIGMOID and TANH are the includer's. */
#define NAME_(name, tag) name##_##tag
#define NAME__(name, tag) NAME_(name, tag)
#define NAME(name) NAME__(name, TAG)

enum { NAME(BLOCK) = 128 };

/* sums[i] = a[i] + b[i] + c[i] + d[i]; the biases may be NULL. */
static void NAME(add_up)(REAL *sums, const struct recurrent_sums *s, int64_t at, int64_t n)
{
    const REAL *const a = (const REAL *)s->input + at, *const b = (const REAL *)s->hidden + at;
    const REAL *const c = (const REAL *)s->input_bias, *const d = (const REAL *)s->hidden_bias;
    for (int64_t i = 0; i < n; ++i)
        sums[i] = a[i] + b[i];
    if (c)
        for (int64_t i = 0; i < n; ++i)
            sums[i] += c[at + i];
    if (d)
        for (int64_t i = 0; i < n; ++i)
            sums[i] += d[at + i];
}

static void NAME(keep)(void *kept, int64_t at, const REAL *values, int64_t n)
{
    for (int64_t i = 0; i < n; ++i)
        ((REAL *)kept)[at + i] = values[i];
}

static void NAME(lstm_block)(const struct lstm_row *row, int64_t at, int64_t n)
{
    const REAL *const cell = (const REAL *)row->cell + at;
    REAL *const hidden = (REAL *)row->hidden + at, *const after = (REAL *)row->after + at;
    REAL gate[4][NAME(BLOCK)], bounded[NAME(BLOCK)], next[NAME(BLOCK)];
    for (int g = 0; g < 4; ++g) {
        NAME(add_up)(gate[g], &row->sums, g * row->n + at, n);
        if (g == 2)
            for (int64_t i = 0; i < n; ++i)
                gate[g][i] = TANH(gate[g][i]);
        else
            for (int64_t i = 0; i < n; ++i)
                gate[g][i] = SIGMOID(gate[g][i]);
    }
    for (int64_t i = 0; i < n; ++i)
        next[i] = gate[1][i] * cell[i] + gate[0][i] * gate[2][i];
    for (int64_t i = 0; i < n; ++i)
        bounded[i] = TANH(next[i]);
    for (int64_t i = 0; i < n; ++i)
        after[i] = next[i];
    for (int64_t i = 0; i < n; ++i)
        hidden[i] = gate[3][i] * bounded[i];
    for (int g = 0; row->gate[0] && g < 4; ++g)
        NAME(keep)(row->gate[g], at, gate[g], n);
    if (row->tanh_after)
        NAME(keep)(row->tanh_after, at, bounded, n);
}

static void NAME(lstm)(const struct lstm_row *row)
{
    for (int64_t at = 0; at < row->n; at += NAME(BLOCK))
        NAME(lstm_block)(row, at, row->n - at < NAME(BLOCK) ? row->n - at : NAME(BLOCK));
}

static void NAME(lstm_gradient)(const struct lstm_gradient_row *row)
{
    const REAL *const dh = row->grad_hidden, *const dc = row->grad_after, *const cell = row->cell, *const after = row->after;
    const REAL *const in = row->gate[0], *const forget = row->gate[1], *const candidate = row->gate[2], *const out = row->gate[3];
    REAL *const grad = row->grad_gates, *const grad_cell = row->grad_cell;
    const int64_t n = row->n;
    INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < n; ++i) {
        const REAL h = dh ? dh[i] : 0, bounded = TANH(after[i]);
        const REAL c = (dc ? dc[i] : 0) + h * out[i] * (1 - bounded * bounded);
        grad[i] = c * candidate[i] * (1 - in[i]) * in[i];
        grad[n + i] = c * cell[i] * (1 - forget[i]) * forget[i];
        grad[2 * n + i] = c * in[i] * (1 - candidate[i] * candidate[i]);
        grad[3 * n + i] = h * bounded * (1 - out[i]) * out[i];
        grad_cell[i] = c * forget[i];
    }
}

static void NAME(gru_block)(const struct gru_row *row, int64_t at, int64_t n)
{
    const struct recurrent_sums *const s = &row->sums;
    const REAL *const before = (const REAL *)row->before + at;
    REAL *const after = (REAL *)row->after + at;
    REAL gate[3][NAME(BLOCK)], part[NAME(BLOCK)];
    for (int g = 0; g < 2; ++g) {
        NAME(add_up)(gate[g], s, g * row->n + at, n);
        for (int64_t i = 0; i < n; ++i)
            gate[g][i] = SIGMOID(gate[g][i]);
    }
    const int64_t third = 2 * row->n + at;
    for (int64_t i = 0; i < n; ++i) {
        const REAL bias = s->hidden_bias ? ((const REAL *)s->hidden_bias)[third + i] : 0;
        part[i] = ((const REAL *)s->hidden)[third + i] + bias;
    }
    for (int64_t i = 0; i < n; ++i) {
        const REAL bias = s->input_bias ? ((const REAL *)s->input_bias)[third + i] : 0;
        gate[2][i] = ((const REAL *)s->input)[third + i] + bias + gate[0][i] * part[i];
    }
    for (int64_t i = 0; i < n; ++i)
        gate[2][i] = TANH(gate[2][i]);
    for (int64_t i = 0; i < n; ++i)
        after[i] = gate[2][i] + gate[1][i] * (before[i] - gate[2][i]);
    for (int g = 0; row->gate[0] && g < 3; ++g)
        NAME(keep)(row->gate[g], at, gate[g], n);
    if (row->hidden_part)
        NAME(keep)(row->hidden_part, at, part, n);
}

static void NAME(gru)(const struct gru_row *row)
{
    for (int64_t at = 0; at < row->n; at += NAME(BLOCK))
        NAME(gru_block)(row, at, row->n - at < NAME(BLOCK) ? row->n - at : NAME(BLOCK));
}

static void NAME(gru_gradient)(const struct gru_gradient_row *row)
{
    const REAL *const dh = row->grad_after, *const before = row->before, *const part = row->hidden_part;
    const REAL *const reset = row->gate[0], *const update = row->gate[1], *const candidate = row->gate[2];
    REAL *const input = row->grad_input, *const hidden = row->grad_hidden, *const grad_before = row->grad_before;
    const int64_t n = row->n;
    INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < n; ++i) {
        const REAL c = dh[i] * (1 - update[i]) * (1 - candidate[i] * candidate[i]);
        const REAL u = dh[i] * (before[i] - candidate[i]) * (1 - update[i]) * update[i];
        const REAL r = c * part[i] * (1 - reset[i]) * reset[i];
        input[i] = hidden[i] = r;
        input[n + i] = hidden[n + i] = u;
        input[2 * n + i] = c;
        hidden[2 * n + i] = c * reset[i];
        grad_before[i] = dh[i] * update[i];
    }
}

#undef NAME
#undef NAME_
#undef NAME__
