"""The JSON schema of what the command line prints as JSON, by what prints it."""

from mfmadsl.report.schema.schema import json_schema

__all__ = ["json_schema"]
