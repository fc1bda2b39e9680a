"""The bucket that the documents load from: somebody's, in an S3 that answers on this machine."""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import Iterator

from tests.loader.others import moto

BUCKET = "app-exports"
OBJECTS = {
    "2026/visitors-1.csv.gz": b"id,name,born\n11,Eve,1991-01-01\n12,Flo,1992-02-02\n",
    "2026/visitors-2.csv.gz": b"id,name,born\n13,Gus,1993-03-03\n",
}


@contextlib.contextmanager
def somebodys_bucket() -> Iterator[dict[str, str]]:
    """The environment of whoever may read it."""
    import boto3

    with moto() as url:
        place = {"AWS_ENDPOINT_URL": url, "AWS_REGION": "us-east-1"}
        keys = {"AWS_ACCESS_KEY_ID": "somebody", "AWS_SECRET_ACCESS_KEY": "somebody's"}
        client = boto3.client(
            "s3",
            endpoint_url=place["AWS_ENDPOINT_URL"],
            region_name=place["AWS_REGION"],
            aws_access_key_id=keys["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=keys["AWS_SECRET_ACCESS_KEY"],
        )
        client.create_bucket(Bucket=BUCKET)
        for key, text in OBJECTS.items():
            client.put_object(Bucket=BUCKET, Key=key, Body=gzip.compress(text))
        yield place | keys
