"""From a comparison to what people and programs read: a table, a JSON document, a page, a figure."""

from __future__ import annotations

from pgdyno.report.document import document
from pgdyno.report.page import ReportFiles, write_report
from pgdyno.report.terminal import print_table, table

__all__ = ["ReportFiles", "document", "print_table", "table", "write_report"]
