"""Tables and figures: as text, in notebooks, and as Markdown, CSV, PNG and SVG files.

Offered: `exhibit.Exhibit`, `exhibit.Figure`, `files.as_csv`, `files.as_image`.
"""
