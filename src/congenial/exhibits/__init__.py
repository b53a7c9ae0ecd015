"""Tables and figures as files: Markdown, CSV, PNG and SVG.

Offered: `exhibit.Exhibit`, `exhibit.Figure`, `files.as_csv`, `files.as_image`.
"""
