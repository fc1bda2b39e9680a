"""What stands for the extension aws_s3: functions of its published signatures that read a folder of the server's machine.

A bucket is a folder, an object a file in it. What ends in ``.gz`` is decompressed, as the extension does with objects whose
Content-Encoding says so. An object whose key begins with ``gated`` waits while somebody holds the lock :data:`GATE`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

REGION = "eu-central-1"
GATE = 4711
_SCHEMAS = """
CREATE SCHEMA aws_commons;
CREATE TYPE aws_commons._s3_uri_1 AS (bucket text, file_path text, region text);
CREATE FUNCTION aws_commons.create_s3_uri(bucket text, file_path text, region text) RETURNS aws_commons._s3_uri_1
    LANGUAGE sql AS 'SELECT ROW($1, $2, $3)::aws_commons._s3_uri_1';
CREATE SCHEMA aws_s3;
CREATE FUNCTION aws_s3.table_import_from_s3(
    table_name text, column_list text, options text, s3_info aws_commons._s3_uri_1) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    place text := 'FOLDER/' || s3_info.bucket || '/' || s3_info.file_path;
    listed text := CASE WHEN column_list = '' THEN '' ELSE '(' || column_list || ')' END;
    input text := quote_literal(place);
    imported bigint;
BEGIN
    IF s3_info.region <> 'REGION' THEN
        RAISE EXCEPTION 'HTTP 301. The bucket is in another region';
    END IF;
    IF s3_info.file_path LIKE 'gated%' THEN
        PERFORM pg_advisory_xact_lock_shared(GATE);
    END IF;
    IF place LIKE '%.gz' THEN
        input := 'PROGRAM ' || quote_literal('gzip -dc ' || place);
    END IF;
    EXECUTE 'COPY ' || table_name || ' ' || listed || ' FROM ' || input || ' WITH ' || options;
    GET DIAGNOSTICS imported = ROW_COUNT;
    RETURN format('%s rows imported into relation "%s" from file %s of %s bytes',
                  imported, table_name, s3_info.file_path, (pg_stat_file(place)).size);
END $$;
"""


def schemas(folder: Path) -> str:
    """SQL that makes them, for buckets below a folder."""
    return _SCHEMAS.replace("FOLDER", str(folder)).replace("REGION", REGION).replace("GATE", str(GATE))
