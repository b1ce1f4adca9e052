"""The process that optimizes with a GPU: reads a program, options and a limit in seconds, writes progress and one result.

Frames on standard output are a letter, a length and bytes: p a line of progress, r the result, e an error.
"""

import os
import struct
import sys

from sundog import _library
from sundog._library import SundogError
from sundog.optimizer import _here
from sundog.program import Program


def main() -> int:
    source = sys.stdin.buffer
    # What a library prints goes to standard error; the frames have their own copy of standard output.
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def send(kind: bytes, data: bytes) -> None:
        answer.write(struct.pack("<cq", kind, len(data)) + data)
        answer.flush()

    def part() -> bytes:
        (size,) = struct.unpack("<q", source.read(8))
        return source.read(size)

    program, settings, limit = part(), part(), part().decode()
    try:
        seconds = None if limit == "None" else float(limit)
        kernel = _here(Program.from_bytes(program), settings, seconds, lambda line: send(b"p", line.encode()))
        send(b"r", kernel.to_bytes())
    except SundogError as error:
        send(b"e", "\0".join([error.message, error.hint, error.code]).encode())
        return 1
    return 0


if __name__ == "__main__":
    _library.library()
    sys.exit(main())
