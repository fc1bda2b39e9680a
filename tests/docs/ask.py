"""What stands for ``pgdyno`` in a document's folder: hands its words to :mod:`tests.docs.forked`, and ends as the command did.

It runs by itself, without the package, and imports only what Python has built in: it is started for each command.
"""

import _socket
import marshal
import os
import struct
import sys


def main(place: str) -> int:
    """Ask for one command; its descriptors are ours."""
    result = marshal.dumps((sys.argv[2:], os.getcwd(), dict(os.environ)))  # noqa: PTH109 (pathlib is an import)
    server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    server.connect(place)
    server.sendmsg(
        [struct.pack("<Q", len(result))], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("3i", 0, 1, 2))]
    )
    while result:
        result = result[server.send(result) :]
    answer = server.recv(4)
    if len(answer) < 4:
        os.write(2, b"docs: the process that runs the commands has gone\n")
        return 70
    code = struct.unpack("<i", answer)[0]
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
