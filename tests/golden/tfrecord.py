#!/usr/bin/env python3
"""Writes tests/golden/examples.tfrecord, and the same as examples.tfrecord.gz, without TensorFlow.

    python3 tfrecord.py FOLDER

The format is that of tensorflow/core/lib/io/record_writer.h, the messages are those of
tensorflow/core/example/{example,feature}.proto, written by the rules of
https://protobuf.dev/programming-guides/encoding. Each of the four records holds
  image   FloatList, packed: [i, i + 0.25, -i, 1e-3 * i]
  label   Int64List, packed: [i - 1]
  name    BytesList: one text, "größe i"
  ids     Int64List, one number a field, as old writers do: [2**63 - 1, -i]
  scale   FloatList, one number a field: [0.5]
and a field 9 of Example that readers do not know.
"""
import gzip
import pathlib
import struct
import sys


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(value):
    value &= 2**64 - 1
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def bytes_list(values):
    return field(1, b"".join(field(1, v) for v in values))


def float_list(values, packed=True):
    if packed:
        return field(2, field(1, struct.pack(f"<{len(values)}f", *values)))
    return field(2, b"".join(varint(1 << 3 | 5) + struct.pack("<f", v) for v in values))


def int64_list(values, packed=True):
    if packed:
        return field(3, field(1, b"".join(varint(v) for v in values)))
    return field(3, b"".join(varint(1 << 3) + varint(v) for v in values))


def example(features):
    entries = b"".join(field(1, field(1, k.encode()) + field(2, v)) for k, v in features.items())
    return field(1, entries) + varint(9 << 3) + varint(300)


def record(data):
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked(length)) + data + struct.pack("<I", masked(data))


def main(folder):
    assert crc32c(b"123456789") == 0xE3069283  # RFC 3720's check value
    content = b"".join(
        record(example({
            "image": float_list([i, i + 0.25, -i, 1e-3 * i]),
            "label": int64_list([i - 1]),
            "name": bytes_list([f"größe {i}".encode()]),
            "ids": int64_list([2**63 - 1, -i], packed=False),
            "scale": float_list([0.5], packed=False),
        })) for i in range(1, 5))
    (folder / "examples.tfrecord").write_bytes(content)
    (folder / "examples.tfrecord.gz").write_bytes(gzip.compress(content, mtime=0))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
