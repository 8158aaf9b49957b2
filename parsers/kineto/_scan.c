/* One pass over a block of plain Kineto events, for `fastscan.py`.
 *
 * The function reads only blocks in which every event is plain: the JSON that Kineto writes, with nothing to repair.
 * At the first doubt it gives up and returns None, and the block is read by the portable code, which knows what to do
 * with the rest. So this file holds no repair, no counting, no encoding: only what decides the speed.
 *
 * Safety: every read is behind a check against `end`; the block is followed by padding, but nothing relies on it.
 * Nesting is skipped with a counter, not by recursion. Tables grow with what is found and are bounded by the block. A
 * probe sequence that grows long (chosen collisions) is a doubt like any other. The GIL is not held while scanning.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DIGITS 18
#define MAX_DEPTH 64
#define MAX_PROBES 512
#define MAX_KEYS 1024
#define NO_TEXT 0xFFFFFFFFu

static const int64_t NO_NUMBER = INT64_MIN;
static const int64_t LABEL_BASE = -((int64_t)1 << 62);

typedef struct {
    uint32_t offset, length;
} Span;

/* A set of distinct texts of the block, numbered in the order in which they are met. */
typedef struct {
    Span *spans;
    uint64_t *hashes;
    uint32_t *slots; /* number + 1, 0 for empty */
    uint32_t count, capacity, mask;
} Texts;

typedef struct {
    uint32_t *event;
    uint16_t *group; /* key * 2 + (1 for text) */
    int64_t *value;
    size_t count, capacity;
} Arguments;

typedef struct {
    int64_t *ts, *dur, *pid, *tid, *id;
    uint32_t *cat, *name;
    uint8_t *ph;
    uint32_t count, capacity;
} Events;

typedef struct {
    const uint8_t *text;
    size_t at, end;
    Texts names, tokens, labels, keys;
    uint8_t key_is_int[MAX_KEYS];
    uint32_t key_event[MAX_KEYS]; /* event + 1 in which the key was met last */
    Texts int_keys;
    const uint8_t *int_text;
    Arguments arguments;
    Events events;
} Scan;

/* ---- texts ------------------------------------------------------------------------------------------------- */

static uint64_t load8(const uint8_t *p) {
    uint64_t word;
    memcpy(&word, p, 8);
    return word;
}

static uint64_t hash_text(const uint8_t *p, size_t length) {
    uint64_t h = length * 0x9E3779B97F4A7C15u;
    while (length >= 8) {
        h = (h ^ load8(p)) * 0xC2B2AE3D27D4EB4Fu;
        h ^= h >> 29;
        p += 8;
        length -= 8;
    }
    uint64_t rest = 0;
    memcpy(&rest, p, length);
    h = (h ^ rest) * 0x165667B19E3779F9u;
    return h ^ (h >> 32);
}

static int texts_init(Texts *t, uint32_t slots) {
    t->count = 0;
    t->capacity = slots / 2;
    t->mask = slots - 1;
    t->spans = malloc(t->capacity * sizeof *t->spans);
    t->hashes = malloc(t->capacity * sizeof *t->hashes);
    t->slots = calloc(slots, sizeof *t->slots);
    return t->spans && t->hashes && t->slots;
}

static void texts_free(Texts *t) {
    free(t->spans);
    free(t->hashes);
    free(t->slots);
}

static int texts_grow(Texts *t) {
    uint32_t slots = (t->mask + 1) * 2;
    Span *spans = realloc(t->spans, (size_t)slots / 2 * sizeof *spans);
    if (spans) t->spans = spans;
    uint64_t *hashes = realloc(t->hashes, (size_t)slots / 2 * sizeof *hashes);
    if (hashes) t->hashes = hashes;
    uint32_t *fresh = calloc(slots, sizeof *fresh);
    if (!spans || !hashes || !fresh) {
        free(fresh);
        return 0;
    }
    free(t->slots);
    t->slots = fresh;
    t->mask = slots - 1;
    t->capacity = slots / 2;
    for (uint32_t i = 0; i < t->count; i++) {
        uint32_t slot = (uint32_t)t->hashes[i] & t->mask;
        while (t->slots[slot]) slot = (slot + 1) & t->mask;
        t->slots[slot] = i + 1;
    }
    return 1;
}

/* Number of the text [offset, offset + length) of `base`; -1 if it cannot be had. With add = 0, -1 also if unknown. */
static int64_t texts_find(Texts *t, const uint8_t *base, const uint8_t *text, size_t offset, size_t length, int add) {
    uint64_t hash = hash_text(text + offset, length);
    uint32_t slot = (uint32_t)hash & t->mask;
    for (int probes = 0; t->slots[slot]; probes++) {
        uint32_t number = t->slots[slot] - 1;
        const Span *span = &t->spans[number];
        if (t->hashes[number] == hash && span->length == length &&
            memcmp(base + span->offset, text + offset, length) == 0)
            return number;
        if (probes == MAX_PROBES) return -1;
        slot = (slot + 1) & t->mask;
    }
    if (!add) return -1;
    if (t->count == t->capacity) {
        if (!texts_grow(t)) return -1;
        slot = (uint32_t)hash & t->mask;
        while (t->slots[slot]) slot = (slot + 1) & t->mask;
    }
    t->spans[t->count].offset = (uint32_t)offset;
    t->spans[t->count].length = (uint32_t)length;
    t->hashes[t->count] = hash;
    t->slots[slot] = ++t->count;
    return t->count - 1;
}

/* ---- pieces of JSON ---------------------------------------------------------------------------------------- */

static void skip_space(Scan *s) {
    while (s->at < s->end && s->text[s->at] <= ' ') s->at++;
}

static int take(Scan *s, uint8_t wanted) {
    skip_space(s);
    if (s->at >= s->end || s->text[s->at] != wanted) return 0;
    s->at++;
    return 1;
}

static int peek(Scan *s) {
    skip_space(s);
    return s->at < s->end ? s->text[s->at] : -1;
}

/* From behind an opening quote to behind the closing one; the span without quotes. */
static int take_string(Scan *s, size_t *start, size_t *length) {
    size_t from = s->at, look = s->at;
    for (;;) {
        const uint8_t *quote = look < s->end ? memchr(s->text + look, '"', s->end - look) : NULL;
        if (!quote) return 0;
        size_t at = (size_t)(quote - s->text), back = at;
        while (back > from && s->text[back - 1] == '\\') back--;
        if (((at - back) & 1) == 0) {
            *start = from;
            *length = at - from;
            s->at = at + 1;
            return 1;
        }
        look = at + 1;
    }
}

/* Any value; its span with quotes or brackets. Whether it is sound JSON inside is for the caller to check. */
static int take_value(Scan *s, size_t *start, size_t *length) {
    int first = peek(s);
    size_t from = s->at, inner, size;
    if (first < 0) return 0;
    if (first == '"') {
        s->at++;
        if (!take_string(s, &inner, &size)) return 0;
    } else if (first == '{' || first == '[') {
        int depth = 0;
        for (;;) {
            if (s->at >= s->end) return 0;
            uint8_t c = s->text[s->at++];
            if (c == '"') {
                if (!take_string(s, &inner, &size)) return 0;
            } else if (c == '{' || c == '[') {
                if (++depth > MAX_DEPTH) return 0;
            } else if (c == '}' || c == ']') {
                if (--depth == 0) break;
            }
        }
    } else {
        while (s->at < s->end) {
            uint8_t c = s->text[s->at];
            if (c <= ' ' || c == ',' || c == '}' || c == ']') break;
            if (c == '"' || c == '{' || c == '[' || c == ':') return 0;
            s->at++;
        }
    }
    *start = from;
    *length = s->at - from;
    return *length > 0;
}

/* A whole number in its JSON form of at most MAX_DIGITS digits. */
static int whole(const uint8_t *p, size_t length, int64_t *value) {
    int negative = length > 0 && p[0] == '-';
    p += negative;
    length -= (size_t)negative;
    if (length < 1 || length > MAX_DIGITS || (p[0] == '0' && length > 1)) return 0;
    int64_t sum = 0;
    for (size_t i = 0; i < length; i++) {
        uint8_t digit = (uint8_t)(p[i] - '0');
        if (digit > 9) return 0;
        sum = sum * 10 + digit;
    }
    *value = negative ? -sum : sum;
    return 1;
}

/* Decimal microseconds to nanoseconds, exactly; digits beyond the third are rounded half away from zero. */
static int decimal_ns(const uint8_t *p, size_t length, int64_t *value) {
    int negative = length > 0 && p[0] == '-';
    p += negative;
    length -= (size_t)negative;
    const uint8_t *dot = length ? memchr(p, '.', length) : NULL;
    size_t whole_length = dot ? (size_t)(dot - p) : length;
    size_t places = dot ? length - whole_length - 1 : 0;
    int64_t units, part = 0;
    if (!length || p[0] == '-' || whole_length > 16 || !whole(p, whole_length, &units)) return 0;
    if (units >= 9000000000000000 || (dot && (places < 1 || places > 7))) return 0;
    int64_t scale = 1;
    for (size_t i = 0; i < places; i++) {
        uint8_t digit = (uint8_t)(dot[1 + i] - '0');
        if (digit > 9) return 0;
        part = part * 10 + digit;
        if (i >= 3) scale *= 10;
    }
    for (size_t i = places; i < 3; i++) part *= 10;
    part = (2 * part + scale) / (2 * scale);
    *value = negative ? -(units * 1000 + part) : units * 1000 + part;
    return 1;
}

/* ---- events ------------------------------------------------------------------------------------------------ */

#define GROW(array, capacity)                                              \
    do {                                                                   \
        void *fresh = realloc(array, (size_t)(capacity) * sizeof *(array)); \
        if (!fresh) return 0;                                              \
        array = fresh;                                                     \
    } while (0)

static int events_reserve(Events *e) {
    if (e->count < e->capacity) return 1;
    uint32_t capacity = e->capacity ? e->capacity * 2 : 4096;
    GROW(e->ts, capacity);
    GROW(e->dur, capacity);
    GROW(e->pid, capacity);
    GROW(e->tid, capacity);
    GROW(e->id, capacity);
    GROW(e->cat, capacity);
    GROW(e->name, capacity);
    GROW(e->ph, capacity);
    e->capacity = capacity;
    return 1;
}

static int arguments_add(Arguments *a, uint32_t event, uint32_t group, int64_t value) {
    if (a->count == a->capacity) {
        size_t capacity = a->capacity ? a->capacity * 2 : 32768;
        GROW(a->event, capacity);
        GROW(a->group, capacity);
        GROW(a->value, capacity);
        a->capacity = capacity;
    }
    a->event[a->count] = event;
    a->group[a->count] = (uint16_t)group;
    a->value[a->count++] = value;
    return 1;
}

static int is_key(const uint8_t *key, size_t length, const char *name) {
    return length == strlen(name) && memcmp(key, name, length) == 0;
}

/* An argument: a whole number where the key is one of those, else the text of its value. */
static int scan_argument(Scan *s, size_t key_start, size_t key_length) {
    size_t start, length;
    int64_t number;
    if (key_length < 1 || memchr(s->text + key_start, '\\', key_length)) return 0;
    int64_t key = texts_find(&s->keys, s->text, s->text, key_start, key_length, 1);
    if (key < 0 || key >= MAX_KEYS) return 0;
    uint32_t event = s->events.count;
    if (s->key_event[key] == 0) /* met for the first time in this block */
        s->key_is_int[key] = texts_find(&s->int_keys, s->int_text, s->text, key_start, key_length, 0) >= 0;
    if (s->key_event[key] == event + 1) return 0; /* the same key twice */
    s->key_event[key] = event + 1;
    if (!take_value(s, &start, &length)) return 0;
    const uint8_t *p = s->text + start;
    if (s->key_is_int[key]) {
        int quoted = p[0] == '"';
        size_t digits = length - 2 * (size_t)quoted;
        if (whole(p + quoted, digits, &number)) return arguments_add(&s->arguments, event, (uint32_t)key * 2, number);
        if (digits > MAX_DIGITS && (p[quoted] == '-' || (p[quoted] >= '0' && p[quoted] <= '9'))) return 0;
    }
    int64_t token = texts_find(&s->tokens, s->text, s->text, start, length, 1);
    return token >= 0 && arguments_add(&s->arguments, event, (uint32_t)key * 2 + 1, token);
}

static int scan_arguments(Scan *s) {
    size_t start, length;
    if (!take(s, '{')) return 0;
    if (peek(s) == '}') {
        s->at++;
        return 1;
    }
    for (;;) {
        if (!take(s, '"') || !take_string(s, &start, &length) || !take(s, ':')) return 0;
        if (!scan_argument(s, start, length)) return 0;
        int next = peek(s);
        s->at++;
        if (next == '}') return 1;
        if (next != ',') return 0;
    }
}

/* pid, tid or id: a whole number, or a text that becomes a label. */
static int scan_identity(Scan *s, int64_t *out) {
    size_t start, length;
    if (*out != NO_NUMBER || !take_value(s, &start, &length)) return 0;
    const uint8_t *p = s->text + start;
    if (whole(p, length, out)) return 1;
    if (p[0] != '"') return 0;
    if (whole(p + 1, length - 2, out)) return 1;
    if (length - 2 > MAX_DIGITS && (p[1] == '-' || (p[1] >= '0' && p[1] <= '9'))) return 0;
    int64_t label = texts_find(&s->labels, s->text, s->text, start + 1, length - 2, 1);
    *out = LABEL_BASE + label;
    return label >= 0;
}

static int scan_time(Scan *s, int64_t *out) {
    size_t start, length;
    return *out == NO_NUMBER && take_value(s, &start, &length) && decimal_ns(s->text + start, length, out);
}

static int scan_text(Scan *s, uint32_t *out) {
    size_t start, length;
    if (*out != NO_TEXT || !take(s, '"') || !take_string(s, &start, &length)) return 0;
    int64_t number = texts_find(&s->names, s->text, s->text, start, length, 1);
    *out = (uint32_t)number;
    return number >= 0;
}

static int scan_phase(Scan *s, uint8_t *out) {
    size_t start, length;
    if (*out || !take(s, '"') || !take_string(s, &start, &length) || length != 1) return 0;
    *out = s->text[start];
    return *out > ' ' && *out < 128;
}

static int scan_event(Scan *s) {
    Events *e = &s->events;
    if (!events_reserve(e) || !take(s, '{')) return 0;
    uint32_t i = e->count;
    e->ts[i] = e->dur[i] = e->pid[i] = e->tid[i] = e->id[i] = NO_NUMBER;
    e->cat[i] = e->name[i] = NO_TEXT;
    e->ph[i] = 0;
    int has_arguments = 0;
    for (;;) {
        size_t start, length;
        int fine;
        if (!take(s, '"') || !take_string(s, &start, &length) || !take(s, ':')) return 0;
        const uint8_t *key = s->text + start;
        if (is_key(key, length, "ts"))
            fine = scan_time(s, &e->ts[i]);
        else if (is_key(key, length, "dur"))
            fine = scan_time(s, &e->dur[i]);
        else if (is_key(key, length, "ph"))
            fine = scan_phase(s, &e->ph[i]);
        else if (is_key(key, length, "cat"))
            fine = scan_text(s, &e->cat[i]);
        else if (is_key(key, length, "name"))
            fine = scan_text(s, &e->name[i]);
        else if (is_key(key, length, "pid"))
            fine = scan_identity(s, &e->pid[i]);
        else if (is_key(key, length, "tid"))
            fine = scan_identity(s, &e->tid[i]);
        else if (is_key(key, length, "id"))
            fine = scan_identity(s, &e->id[i]);
        else if (is_key(key, length, "args")) {
            fine = !has_arguments && scan_arguments(s);
            has_arguments = 1;
        } else /* any other key of an event is for the portable code */
            fine = (is_key(key, length, "bp") || is_key(key, length, "s")) && scan_argument(s, start, length);
        if (!fine) return 0;
        int next = peek(s);
        s->at++;
        if (next == '}') break;
        if (next != ',') return 0;
    }
    if (!e->ph[i] || e->ts[i] == NO_NUMBER) return 0;
    e->count++;
    return 1;
}

static int scan_block(Scan *s) {
    for (;;) {
        if (!scan_event(s)) return 0;
        int next = peek(s);
        if (next < 0) return 1;
        if (next != ',') return 0;
        s->at++;
    }
}

/* ---- the way to Python ------------------------------------------------------------------------------------- */

static PyObject *bytes_of(const void *data, size_t size) { return PyBytes_FromStringAndSize(data, (Py_ssize_t)size); }

static PyObject *spans_of(const Texts *t) { return bytes_of(t->spans, t->count * sizeof *t->spans); }

/* Arguments ordered by group, each group by event: (group numbers and sizes, events, values). */
static PyObject *grouped(const Arguments *a, uint32_t keys) {
    uint32_t groups = keys * 2;
    PyObject *sizes = bytes_of(NULL, groups * sizeof(uint32_t));
    PyObject *events = bytes_of(NULL, a->count * sizeof(uint32_t));
    PyObject *values = bytes_of(NULL, a->count * sizeof(int64_t));
    size_t *next = calloc((size_t)groups + 1, sizeof *next);
    if (!sizes || !events || !values || !next) {
        Py_XDECREF(sizes);
        Py_XDECREF(events);
        Py_XDECREF(values);
        free(next);
        return PyErr_NoMemory();
    }
    uint32_t *size = (uint32_t *)PyBytes_AS_STRING(sizes);
    uint32_t *event = (uint32_t *)PyBytes_AS_STRING(events);
    int64_t *value = (int64_t *)PyBytes_AS_STRING(values);
    memset(size, 0, groups * sizeof *size);
    for (size_t i = 0; i < a->count; i++) size[a->group[i]]++;
    for (uint32_t g = 0; g < groups; g++) next[g + 1] = next[g] + size[g];
    for (size_t i = 0; i < a->count; i++) {
        size_t to = next[a->group[i]]++;
        event[to] = a->event[i];
        value[to] = a->value[i];
    }
    free(next);
    return Py_BuildValue("(NNN)", sizes, events, values);
}

static PyObject *result_of(const Scan *s) {
    const Events *e = &s->events;
    size_t n = e->count;
    PyObject *arguments = grouped(&s->arguments, s->keys.count);
    if (!arguments) return NULL;
    return Py_BuildValue("(nNNNNNNNNNNNNN)", (Py_ssize_t)n, bytes_of(e->ph, n), bytes_of(e->ts, n * 8),
                         bytes_of(e->dur, n * 8), bytes_of(e->pid, n * 8), bytes_of(e->tid, n * 8),
                         bytes_of(e->id, n * 8), bytes_of(e->cat, n * 4), bytes_of(e->name, n * 4),
                         spans_of(&s->names), spans_of(&s->labels), spans_of(&s->keys), spans_of(&s->tokens),
                         arguments);
}

static int scan_init(Scan *s, const uint8_t *int_text, size_t int_length) {
    s->int_text = int_text;
    if (!texts_init(&s->names, 4096) || !texts_init(&s->tokens, 4096) || !texts_init(&s->labels, 64) ||
        !texts_init(&s->keys, 256) || !texts_init(&s->int_keys, 256))
        return 0;
    /* Keys that hold whole numbers, each ended by a zero byte. */
    for (size_t from = 0; from < int_length;) {
        const uint8_t *stop = memchr(int_text + from, 0, int_length - from);
        if (!stop) break;
        size_t length = (size_t)(stop - int_text) - from;
        if (texts_find(&s->int_keys, int_text, int_text, from, length, 1) < 0) return 0;
        from += length + 1;
    }
    return 1;
}

static void scan_free(Scan *s) {
    texts_free(&s->names);
    texts_free(&s->tokens);
    texts_free(&s->labels);
    texts_free(&s->keys);
    texts_free(&s->int_keys);
    free(s->arguments.event);
    free(s->arguments.group);
    free(s->arguments.value);
    free(s->events.ts);
    free(s->events.dur);
    free(s->events.pid);
    free(s->events.tid);
    free(s->events.id);
    free(s->events.cat);
    free(s->events.name);
    free(s->events.ph);
}

static PyObject *scan(PyObject *module, PyObject *args) {
    (void)module;
    const char *text, *int_text;
    Py_ssize_t size, begin, end, int_length;
    if (!PyArg_ParseTuple(args, "y#nny#", &text, &size, &begin, &end, &int_text, &int_length)) return NULL;
    if (begin < 0 || begin > end || end > size || (uint64_t)size >= UINT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "begin and end must lie in the block, which must be below 4 GiB");
        return NULL;
    }
    Scan *s = calloc(1, sizeof *s);
    if (!s) return PyErr_NoMemory();
    s->text = (const uint8_t *)text;
    s->at = (size_t)begin;
    s->end = (size_t)end;
    int plain;
    Py_BEGIN_ALLOW_THREADS
    plain = scan_init(s, (const uint8_t *)int_text, (size_t)int_length) && scan_block(s);
    Py_END_ALLOW_THREADS
    PyObject *result = plain ? result_of(s) : Py_NewRef(Py_None);
    scan_free(s);
    free(s);
    return result;
}

static PyMethodDef METHODS[] = {
    {"scan", scan, METH_VARARGS,
     "scan(block, begin, end, int_keys) -> tuple or None\n\n"
     "Read the events in block[begin:end]; None if any of them is not plain. See fastscan.py for the parts."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "_scan", "One pass over a block of plain Kineto events.", 0, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__scan(void) { return PyModule_Create(&MODULE); }
