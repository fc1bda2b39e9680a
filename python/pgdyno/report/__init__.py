"""Reports of a comparison: a table for the terminal, a JSON document, a page, figures."""

from __future__ import annotations

from pgdyno.report.document import document
from pgdyno.report.page import ReportFiles, write_report
from pgdyno.report.terminal import print_table, table

__all__ = ["ReportFiles", "document", "print_table", "table", "write_report"]
