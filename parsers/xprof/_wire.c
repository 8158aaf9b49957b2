/* The events of one line of an XSpace into columns: an accelerator of columns.py, with the same result for any bytes.
 *
 * count(octets, start, end)  -> (events, stats, own fields, position of damage or -1)
 * fill(octets, start, end, metadata_id, offset_ps, duration_ps, stat_event, stat_id, stat_kind, stat_value, stat_length)
 *                            -> (events, stats, lost events, lost stats, aggregated events)
 *
 * Nothing is read outside [start, end), and nothing is written beyond what count() said.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    uint64_t number;
    unsigned wire;
    uint64_t value;   /* number fields */
    int64_t start;    /* where the value lies */
    int64_t stop;     /* position behind the field */
} Field;

static inline int read_varint(const uint8_t *data, int64_t *at, int64_t end, uint64_t *value) {
    uint64_t result = 0;
    int64_t p = *at;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (p >= end) return 0;
        uint8_t octet = data[p++];
        result |= (uint64_t)(octet & 0x7F) << shift;
        if (octet < 0x80) {
            *at = p;
            *value = result;
            return 1;
        }
    }
    return 0;
}

/* The field at `at`; 0 if it is damaged. */
static inline int read_field(const uint8_t *data, int64_t at, int64_t end, Field *field) {
    uint64_t tag;
    if (!read_varint(data, &at, end, &tag)) return 0;
    field->number = tag >> 3;
    field->wire = (unsigned)(tag & 7);
    if (!field->number) return 0;
    field->start = at;
    switch (field->wire) {
    case 0:
        if (!read_varint(data, &at, end, &field->value)) return 0;
        field->stop = at;
        return 1;
    case 2: {
        uint64_t size;
        if (!read_varint(data, &at, end, &size) || size > (uint64_t)(end - at)) return 0;
        field->start = at;
        field->stop = at + (int64_t)size;
        return 1;
    }
    case 1:
    case 5: {
        int64_t size = field->wire == 1 ? 8 : 4;
        if (size > end - at) return 0;
        field->stop = at + size;
        return 1;
    }
    default:
        return 0;
    }
}

static int bounds(Py_buffer *view, Py_ssize_t start, Py_ssize_t end) {
    if (start < 0 || end < start || end > view->len) {
        PyErr_SetString(PyExc_ValueError, "positions outside the data");
        return 0;
    }
    return 1;
}

static PyObject *count(PyObject *self, PyObject *args) {
    Py_buffer view;
    Py_ssize_t start, end;
    if (!PyArg_ParseTuple(args, "y*nn", &view, &start, &end)) return NULL;
    PyObject *own = NULL;
    if (!bounds(&view, start, end) || !(own = PyList_New(0))) {
        PyBuffer_Release(&view);
        return NULL;
    }
    const uint8_t *data = view.buf;
    int64_t at = start, damage = -1;
    Py_ssize_t events = 0, stats = 0;
    while (at < end) {
        Field field;
        if (!read_field(data, at, end, &field)) {
            damage = at;
            break;
        }
        if (field.number == 4 && field.wire == 2) {
            events++;
            int64_t p = field.start;
            Field inner;
            while (p < field.stop && read_field(data, p, field.stop, &inner)) {
                stats += inner.number == 4 && inner.wire == 2;
                p = inner.stop;
            }
        } else {
            PyObject *item = field.wire == 0
                ? Py_BuildValue("(KIKL)", (unsigned long long)field.number, field.wire,
                                (unsigned long long)field.value, (long long)field.stop)
                : Py_BuildValue("(KILL)", (unsigned long long)field.number, field.wire,
                                (long long)field.start, (long long)field.stop);
            if (!item || PyList_Append(own, item) < 0) {
                Py_XDECREF(item);
                Py_DECREF(own);
                PyBuffer_Release(&view);
                return NULL;
            }
            Py_DECREF(item);
        }
        at = field.stop;
    }
    PyBuffer_Release(&view);
    PyObject *own_tuple = PyList_AsTuple(own);
    Py_DECREF(own);
    if (!own_tuple) return NULL;
    return Py_BuildValue("(nnNL)", events, stats, own_tuple, (long long)damage);
}

typedef struct {
    int64_t *metadata_id, *offset_ps, *duration_ps, *stat_id;
    uint32_t *stat_event, *stat_length;
    uint8_t *stat_kind;
    uint64_t *stat_value;
} Columns;

/* One stat; 0 if it is damaged. */
static int read_stat(const uint8_t *data, int64_t at, int64_t end, Columns *out, Py_ssize_t row) {
    uint64_t id = 0, value = 0;
    uint32_t length = 0;
    uint8_t kind = 0;
    Field field;
    while (at < end) {
        if (!read_field(data, at, end, &field)) return 0;
        at = field.stop;
        if (field.wire == 0) {
            if (field.number == 1) id = field.value;
            else if (field.number == 3 || field.number == 4 || field.number == 7) {
                kind = (uint8_t)field.number;
                value = field.value;
                length = 0;
            }
        } else if (field.wire == 2) {
            if (field.number == 5 || field.number == 6 || field.number == 8) {
                int64_t size = field.stop - field.start;
                kind = (uint8_t)field.number;
                value = (uint64_t)field.start;
                length = size > (int64_t)UINT32_MAX ? UINT32_MAX : (uint32_t)size;
            }
        } else if (field.wire == 1 && field.number == 2) {
            const uint8_t *p = data + field.start;
            value = 0;
            for (int i = 7; i >= 0; i--) value = value << 8 | p[i];
            kind = 2;
            length = 0;
        }
    }
    out->stat_id[row] = (int64_t)id;
    out->stat_kind[row] = kind;
    out->stat_value[row] = value;
    out->stat_length[row] = length;
    return 1;
}

static PyObject *fill(PyObject *self, PyObject *args) {
    Py_buffer view, b[8];
    Py_ssize_t start, end;
    if (!PyArg_ParseTuple(args, "y*nnw*w*w*w*w*w*w*w*", &view, &start, &end, &b[0], &b[1], &b[2], &b[3], &b[4], &b[5],
                          &b[6], &b[7]))
        return NULL;
    Py_ssize_t most_events = b[0].len / 8, most_stats = b[4].len / 8;
    int fits = bounds(&view, start, end);
    if (fits && (b[1].len / 8 < most_events || b[2].len / 8 < most_events || b[3].len / 4 < most_stats ||
                 b[5].len < most_stats || b[6].len / 8 < most_stats || b[7].len / 4 < most_stats)) {
        PyErr_SetString(PyExc_ValueError, "columns of different lengths");
        fits = 0;
    }
    Py_ssize_t events = 0, stats = 0, lost = 0, lost_stats = 0, aggregated = 0;
    if (fits) {
        Columns out = {b[0].buf, b[1].buf, b[2].buf, b[4].buf, b[3].buf, b[7].buf, b[5].buf, b[6].buf};
        const uint8_t *data = view.buf;
        int64_t at = start;
        Py_BEGIN_ALLOW_THREADS
        while (at < end) {
            Field field;
            if (!read_field(data, at, end, &field)) break;
            at = field.stop;
            if (field.number != 4 || field.wire != 2) continue;
            if (events >= most_events) break;
            uint64_t metadata_id = 0, offset = 0, duration = 0;
            int sound = 1, occurrences = 0;
            Py_ssize_t first_stat = stats, bad_stats = 0;
            int64_t p = field.start;
            while (p < field.stop) {
                Field inner;
                if (!read_field(data, p, field.stop, &inner)) {
                    sound = 0;
                    break;
                }
                p = inner.stop;
                if (inner.wire == 0) {
                    if (inner.number == 1) metadata_id = inner.value;
                    else if (inner.number == 2) offset = inner.value;
                    else if (inner.number == 3) duration = inner.value;
                    else if (inner.number == 5) occurrences = 1;
                } else if (inner.wire == 2 && inner.number == 4) {
                    if (stats >= most_stats) continue;
                    out.stat_event[stats] = (uint32_t)events;
                    if (read_stat(data, inner.start, inner.stop, &out, stats)) stats++;
                    else bad_stats++;
                }
            }
            if (!sound || occurrences) {
                stats = first_stat;
                lost += !sound;
                aggregated += sound;
                continue;
            }
            lost_stats += bad_stats;
            out.metadata_id[events] = (int64_t)metadata_id;
            out.offset_ps[events] = (int64_t)offset;
            out.duration_ps[events] = (int64_t)duration;
            events++;
        }
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&view);
    for (int i = 0; i < 8; i++) PyBuffer_Release(&b[i]);
    if (!fits) return NULL;
    return Py_BuildValue("(nnnnn)", events, stats, lost, lost_stats, aggregated);
}

static PyMethodDef methods[] = {
    {"count", count, METH_VARARGS, "How many events and stats lie between two positions, and the other fields there."},
    {"fill", fill, METH_VARARGS, "Events and stats into columns."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_wire", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__wire(void) { return PyModule_Create(&module); }
