"""An independent reader of XSpace files: the protobuf run time with a descriptor made here, no generated code.

Strings are declared as bytes, because one text that is no UTF-8 makes protobuf refuse the whole file. The tests hold
the reader of the product to what this one says.

Source of the numbers: tsl/profiler/protobuf/xplane.proto and xla/service/hlo.proto, xla_data.proto.
"""

from __future__ import annotations

from functools import cache
from typing import Any

MESSAGES = {
    "XSpace": "planes 1 *XPlane; errors 2 *bytes; warnings 3 *bytes; hostnames 4 *bytes",
    "XPlane": "id 1 int64; name 2 bytes; lines 3 *XLine; event_metadata 4 *EventEntry; stat_metadata 5 *StatEntry; "
    "stats 6 *XStat",
    "EventEntry": "key 1 int64; value 2 XEventMetadata",
    "StatEntry": "key 1 int64; value 2 XStatMetadata",
    "XLine": "id 1 int64; name 2 bytes; timestamp_ns 3 int64; events 4 *XEvent; duration_ps 9 int64; "
    "display_id 10 int64; display_name 11 bytes",
    "XEvent": "metadata_id 1 int64; offset_ps 2 int64; duration_ps 3 int64; stats 4 *XStat; num_occurrences 5 int64",
    "XStat": "metadata_id 1 int64; ?double_value 2 double; ?uint64_value 3 uint64; ?int64_value 4 int64; "
    "?str_value 5 bytes; ?bytes_value 6 bytes; ?ref_value 7 uint64; ?compressed_str_value 8 bytes",
    "XEventMetadata": "id 1 int64; name 2 bytes; metadata 3 bytes; display_name 4 bytes; stats 5 *XStat; child_id 6 *int64",
    "XStatMetadata": "id 1 int64; name 2 bytes; description 3 bytes",
}
VALUES = (
    "double_value", "uint64_value", "int64_value", "str_value", "bytes_value", "ref_value", "compressed_str_value",
)  # fmt: skip


@cache
def _classes() -> dict[str, Any]:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kinds = descriptor_pb2.FieldDescriptorProto
    plain = {
        "int64": kinds.TYPE_INT64,
        "uint64": kinds.TYPE_UINT64,
        "bytes": kinds.TYPE_BYTES,
        "double": kinds.TYPE_DOUBLE,
    }
    file = descriptor_pb2.FileDescriptorProto(name="oracle.proto", package="oracle", syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for text in fields.split("; "):
            field, number, kind = text.split()
            repeated, optional = kind.startswith("*"), field.startswith("?")
            kind = kind.lstrip("*")
            made = message.field.add(name=field.lstrip("?"), number=int(number), label=3 if repeated else 1)
            if kind in plain:
                made.type = plain[kind]
            else:
                made.type, made.type_name = kinds.TYPE_MESSAGE, f".oracle.{kind}"
            if optional:
                made.proto3_optional = True
                made.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{made.name}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"oracle.{name}")) for name in MESSAGES}


def read(data: bytes) -> Any:
    """The bytes of an XSpace as a message."""
    space = _classes()["XSpace"]()
    space.ParseFromString(data)
    return space


def new(name: str = "XSpace") -> Any:
    """An empty message, to write a file with."""
    return _classes()[name]()


def value(stat: Any) -> tuple[str, Any]:
    """Kind and value of a stat; ``("", None)`` if it has none."""
    for name in VALUES:
        if stat.HasField(name):
            return name, getattr(stat, name)
    return "", None
