"""The writes of Harvester v1.8.0's own upgrade from v1.7.1, and what this project does instead: data for a document.

hack/documents.py writes docs/releases/1.7-1.8-original.md from it; tests/hack/original compares it with the
listings in tests/golden.
"""
