"""Files that lie elsewhere: objects of S3 and of stores that speak its language, files behind ``https://``.

::

    word -> find -> Remote (its beginning, what says that it is the same) -> Served -> the engine, over a socket
                                                                               |
                                                        ranges, several at a time, each tried again where it broke

Nothing of an object is written to a disk here. It is read in ranges, under the condition that it is still the one that was
found, and verified by its checksum if the store has one, before the engine gets the end mark.
"""

from pgdyno.loader.remote.find import Remote, find, is_address
from pgdyno.loader.remote.s3 import S3
from pgdyno.loader.remote.seekable import Seekable
from pgdyno.loader.remote.serve import LocalServer

__all__ = ["S3", "LocalServer", "Remote", "Seekable", "find", "is_address"]
