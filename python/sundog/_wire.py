"""Protobuf messages without a protobuf runtime.

The library speaks protobuf. A generated module would tie users to one range of protobuf versions, and to
whatever else in their process has brought its own; the few messages here need a page of code instead. The
schema is the library's own .proto files, read at import: field numbers stand in one place only.
"""

from __future__ import annotations

import functools
import pathlib
import re
import struct
from typing import Any, Iterator, Mapping

_VARINTS = {"int32", "int64", "uint32", "uint64", "bool", "enum"}
_DEFAULTS = {"double": 0.0, "bool": False, "string": "", "bytes": b""}


class Field:
    """One field of a message: `kind` is a scalar type, "enum" or the Message's own type."""

    def __init__(self, name: str, number: int, kind: str, repeated: bool, optional: bool) -> None:
        self.name, self.number, self.kind = name, number, kind
        self.repeated, self.optional = repeated, optional
        self.type: MessageType | None = None

    def default(self) -> Any:
        if self.repeated:
            return []
        if self.type is not None or self.optional:
            return None
        return _DEFAULTS.get(self.kind, 0)


class MessageType:
    def __init__(self, name: str) -> None:
        self.name = name
        self.fields: dict[int, Field] = {}
        self.by_name: dict[str, Field] = {}

    def add(self, field: Field) -> None:
        self.fields[field.number] = field
        self.by_name[field.name] = field


class Message:
    """A message: its fields are attributes. A sub-message that is not there is None."""

    def __init__(self, message_type: MessageType, /, **values: Any) -> None:
        self._type = message_type
        for field in message_type.fields.values():
            setattr(self, field.name, values.pop(field.name, field.default()))
        if values:
            raise TypeError(f"{message_type.name} has no field {', '.join(values)}")

    def __repr__(self) -> str:
        shown = {f.name: getattr(self, f.name) for f in self._type.fields.values()}
        inside = ", ".join(f"{name}={value!r}" for name, value in shown.items() if value not in (None, [], "", 0, b""))
        return f"{self._type.name}({inside})"

    def to_bytes(self) -> bytes:
        return b"".join(_encoded_fields(self))


_TOKEN = re.compile(r"//[^\n]*|\"[^\"]*\"|[\w.]+|[{}=;\[\]<>,]")


def _parse_schema(text: str, types: dict[str, MessageType], enums: set[str]) -> list[tuple[str, str, Field]]:
    """Adds the messages of a .proto text to `types`; gives (scope, type name, field) still to resolve."""
    tokens = [t for t in _TOKEN.findall(text) if not t.startswith("//")]
    scope: list[str] = []
    pending: list[tuple[str, str, Field]] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token in ("syntax", "package", "import"):
            at = tokens.index(";", at) + 1
        elif token == "message":
            scope.append(tokens[at + 1])
            types[".".join(scope)] = MessageType(".".join(scope))
            at += 3
        elif token == "oneof":
            scope.append("")  # its fields belong to the message around it
            at += 3
        elif token == "enum":
            enums.add(".".join([s for s in scope if s] + [tokens[at + 1]]))
            at = tokens.index("}", at) + 1
        elif token == "}":
            scope.pop()
            at += 1
        elif token == ";":
            at += 1
        else:
            owner = ".".join(s for s in scope if s)
            repeated, optional = token == "repeated", token == "optional"
            at += repeated or optional
            kind, name, _, number = tokens[at : at + 4]
            in_oneof = scope[-1] == ""
            field = Field(name, int(number), kind, repeated, optional or in_oneof)
            types[owner].add(field)
            pending.append((owner, kind, field))
            at = tokens.index(";", at) + 1
    return pending


def _resolve(scope: str, kind: str, names: Any) -> str | None:
    """The full name that `kind` means inside `scope`, if it is one of `names`."""
    parts = scope.split(".")
    for depth in range(len(parts), -1, -1):
        full = ".".join(parts[:depth] + [kind])
        if full in names:
            return full
    return None


@functools.lru_cache(maxsize=None)
def schema() -> Mapping[str, MessageType]:
    """All message types of the library, by name ("Result", "LaunchPlan.Kernel")."""
    here = pathlib.Path(__file__).resolve().parent
    folder = here / "proto"
    if not folder.is_dir():
        folder = here.parents[1] / "core"  # in the source tree
    types: dict[str, MessageType] = {}
    enums: set[str] = set()
    pending = []
    for path in sorted(folder.glob("*.proto")):
        pending += _parse_schema(path.read_text(encoding="utf-8"), types, enums)
    for scope, kind, field in pending:
        if (full := _resolve(scope, kind, types)) is not None:
            field.kind, field.type = "message", types[full]
        elif _resolve(scope, kind, enums) is not None:
            field.kind = "enum"
    return types


def message(name: str, /, **values: Any) -> Message:
    return Message(schema()[name], **values)


def decode(name: str, data: bytes) -> Message:
    """The message of that type in `data`; ValueError if it is none."""
    return _decode(schema()[name], memoryview(data))


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _encoded_value(field: Field, value: Any) -> bytes:
    if field.kind in _VARINTS:
        return _varint(field.number << 3) + _varint(int(value))
    if field.kind == "double":
        return _varint(field.number << 3 | 1) + struct.pack("<d", value)
    if field.kind == "message":
        data = value.to_bytes()
    else:
        data = value.encode() if isinstance(value, str) else bytes(value)
    return _varint(field.number << 3 | 2) + _varint(len(data)) + data


def _encoded_fields(message: Message) -> Iterator[bytes]:
    for field in message._type.fields.values():
        value = getattr(message, field.name)
        if field.repeated:
            for item in value:
                yield _encoded_value(field, item)
        elif value is not None and (field.optional or value != field.default()):
            yield _encoded_value(field, value)


def _read_varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("the message is cut short")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _from_varint(kind: str, value: int) -> Any:
    if kind == "bool":
        return value != 0
    if kind in ("int32", "int64") and value >= 1 << 63:
        return value - (1 << 64)
    return value


def _read_chunk(field: Field, chunk: memoryview) -> Any:
    """The value, or for packed numbers the values, in a field of known length."""
    if field.type is not None:
        return _decode(field.type, chunk)
    if field.kind == "string":
        return bytes(chunk).decode()
    if field.kind == "bytes":
        return bytes(chunk)
    if field.kind == "double":
        return [struct.unpack_from("<d", chunk, at)[0] for at in range(0, len(chunk), 8)]
    values, at = [], 0
    while at < len(chunk):
        number, at = _read_varint(chunk, at)
        values.append(_from_varint(field.kind, number))
    return values


def _decode(message_type: MessageType, data: memoryview) -> Message:
    result = Message(message_type)
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        field, wire = message_type.fields.get(key >> 3), key & 7
        value: Any = None
        if wire == 0:
            number, at = _read_varint(data, at)
            value = _from_varint(field.kind, number) if field else None
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            if at + size > len(data):
                raise ValueError("the message is cut short")
            value = struct.unpack_from("<d" if wire == 1 else "<f", data, at)[0]
            at += size
        elif wire == 2:
            size, at = _read_varint(data, at)
            if at + size > len(data):
                raise ValueError("the message is cut short")
            value = _read_chunk(field, data[at : at + size]) if field else None
            at += size
        else:
            raise ValueError(f"the message has a field of the unknown kind {wire}")
        if field is None:
            continue  # of a later version
        packed = isinstance(value, list)
        if field.repeated:
            getattr(result, field.name).extend(value if packed else [value])
        else:
            setattr(result, field.name, value[-1] if packed and value else value)
    return result
