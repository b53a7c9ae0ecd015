"""A plan and its domain become a model, a draw, a certificate and a directory, and back.

Offered: `making.release`, `model.build_model`, `reading.read_release`, `reading.Release`,
`certificate.Certificate`.
"""
