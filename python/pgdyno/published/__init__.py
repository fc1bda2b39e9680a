"""Figures of published documents as data: what each measured, what it leaves open, and its arithmetic, recomputed."""

from pgdyno.published.document import PublishedDocument

from .document import read_document, read_documents

__all__ = ["PublishedDocument", "read_document", "read_documents"]
