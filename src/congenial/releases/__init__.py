"""A plan and its domain become a model, a draw, a certificate and a directory, and back.

`making` releases, as a whole or in parts: `model` has the noise, invariant, method and claim;
`accuracy` the error margins known before the draw; `shared_facts` the hash that the ledger
compares; `intervals` those of the counts drawn; `specification` the statement as numbers,
`sentences` the same as text, `certificate` the same as a file; `rows`, `measurements` and
`directory` the other files, which `atomic_directory` puts in place at once. `reading` goes back;
`format_1` reads older certificates, and `margin_views` lays one margin out, places by cells.

Offered: `making.make_release.release`, `model.build_model`, `reading.read_release`,
`reading.Release`, `certificate.Certificate`.
"""
